//! Several files as one archive: Python's recipes for its arrays.

use std::collections::HashMap;
use std::sync::Arc;

use hyperslab_archive::{Archive, CombinedArray, CombinedGroup, Conversion};
use hyperslab_core::{Along, Counterparts, Packing};
use pyo3::prelude::*;

use crate::archive_file::{ArchiveFile, opened, options};
use crate::panics::detached;

/// Paths, files, arrays, kinds, axes and lengths of one row of counterparts.
type Columns = (String, Vec<usize>, Vec<usize>, Vec<usize>, Vec<Option<usize>>, Vec<Option<u64>>);

/// Masked numbers, factor, offset, and whether to compute in 32 bits.
type PackedBy = (Vec<f64>, Option<f64>, Option<f64>, bool);

/// How the elements of one kind of counterparts are converted for the combined array.
#[derive(FromPyObject)]
struct ConversionRecipe {
    stored_as: Option<String>,
    packing: Option<PackedBy>,
}

/// An array made of counterparts, read from the attributes of a Python object. `CombinedArray` explains them.
#[derive(FromPyObject)]
pub(crate) struct ArrayRecipe {
    files: Vec<usize>,
    arrays: Vec<usize>,
    kinds: Vec<usize>,
    conversions: HashMap<usize, ConversionRecipe>,
    axis: Option<usize>,
    is_stacked: bool,
    element: Option<String>,
    dropped: Vec<String>,
    texts: Vec<(String, String)>,
    values: Option<(String, Vec<u64>, Vec<u8>)>,
}

impl From<ConversionRecipe> for Conversion {
    fn from(recipe: ConversionRecipe) -> Self {
        let packing = |(masked, scale, offset, is_single)| Packing { masked, scale, offset, is_single };
        Self { stored_as: recipe.stored_as, packing: recipe.packing.map(packing) }
    }
}

impl From<ArrayRecipe> for CombinedArray {
    fn from(recipe: ArrayRecipe) -> Self {
        let conversions = recipe.conversions.into_iter();
        Self {
            files: recipe.files,
            arrays: recipe.arrays,
            kinds: recipe.kinds,
            conversions: conversions.map(|(kind, conversion)| (kind, conversion.into())).collect(),
            axis: recipe.axis,
            is_stacked: recipe.is_stacked,
            element: recipe.element,
            dropped: recipe.dropped,
            texts: recipe.texts,
            values: recipe.values,
        }
    }
}

/// A group that files have together: its path, a file that has it, and its number there.
type FoundGroup = (String, usize, usize);

/// The groups of several files, as path, file and number, and their arrays by path.
#[pyfunction]
#[pyo3(name = "counterparts")]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn find_counterparts(
    py: Python<'_>,
    files: Vec<Bound<'_, ArchiveFile>>,
    dimension: Option<String>,
    axis: Option<usize>,
    ignored: Vec<String>,
) -> PyResult<(Vec<FoundGroup>, Vec<Columns>)> {
    let along = match (dimension, axis) {
        (Some(name), _) => Along::Dimension(name),
        (None, Some(axis)) => Along::Axis(axis),
        (None, None) => Along::Nothing,
    };
    let files = archives(&files);
    detached(py, || {
        let ignored: Vec<&str> = ignored.iter().map(String::as_str).collect();
        let (groups, found) = hyperslab_archive::find_counterparts(&files, &along, &ignored);
        let columns = |own: Counterparts| (own.path, own.files, own.arrays, own.kinds, own.axes, own.lengths);
        (groups, found.into_iter().map(columns).collect())
    })
}

/// An archive whose arrays are combined from several files.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // as above
pub(crate) fn combine(
    py: Python<'_>,
    name: String,
    version: String,
    files: Vec<Bound<'_, ArchiveFile>>,
    groups: Vec<CombinedGroup>,
    arrays: Vec<(String, ArrayRecipe)>,
    chunk_cache_nbytes: usize,
) -> PyResult<ArchiveFile> {
    let (files, options) = (archives(&files), options(chunk_cache_nbytes, None));
    opened(py, || {
        let arrays: Vec<(String, CombinedArray)> =
            arrays.into_iter().map(|(path, recipe)| (path, recipe.into())).collect();
        Archive::combine(name, version, &files, groups, &arrays, &options)
    })
}

fn archives(files: &[Bound<'_, ArchiveFile>]) -> Vec<Arc<Archive>> {
    files.iter().map(|file| Arc::clone(&file.get().0)).collect()
}
