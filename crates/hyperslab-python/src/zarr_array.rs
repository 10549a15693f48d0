//! `ZarrArray`: an array of a Zarr folder that others write to. Each read looks for its chunks again. It writes them too.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use hyperslab_archive::{
    ArraySelection, FolderTarget, GivenTarget, KeyEncoding, KeyTarget, Keys, ReadOptions, Values, write_keys,
};
use hyperslab_core::{AxisIndices, AxisSelection, Orthogonal};
use hyperslab_engine::{RemoteFolder, default_thread_count};
use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::exceptions::{PyMemoryError, PyValueError};
use pyo3::prelude::*;
use pyo3::pybacked::PyBackedBytes;
use pyo3::types::{PyBytes, PyTuple};

use crate::callbacks::Signals;
use crate::chunk_encoding::{self, Filters};
use crate::panics::detached;
use crate::points::Points;
use crate::remote::RemoteFile;
use crate::zarr_parts::ZarrParts;
use crate::{axes, dtypes, errors, integers};

/// An array of a folder that others write to.
#[pyclass(frozen, module = "hyperslab._core")]
pub(crate) struct ZarrArray(hyperslab_archive::ZarrArray);

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl ZarrArray {
    #[new]
    #[pyo3(signature = (document, folder, fill=None))]
    fn new(document: &[u8], folder: &Bound<'_, PyAny>, fill: Option<Vec<u8>>) -> PyResult<Self> {
        let keys = match folder.cast::<RemoteFile>() {
            Ok(far) => {
                let file = &far.get().0;
                Keys::Far(Arc::new(RemoteFolder::new(file.location.clone(), file.options.clone())))
            }
            Err(_) => Keys::Local(folder.extract::<PathBuf>()?),
        };
        let name = keys.name();
        let made = hyperslab_archive::ZarrArray::new(document, keys, fill);
        made.map(Self).map_err(|reason| errors::unreadable(&reason, format!("{name}: {reason}")))
    }

    /// The dtype of an element.
    #[getter]
    fn dtype<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        dtypes::dtype(py, &self.0.element())
    }

    /// The shape of what one key holds.
    #[getter]
    fn key_shape<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        integers::tuple(py, self.0.key_shape())
    }

    /// Whether its chunks can be written, apart from their codecs.
    #[getter]
    fn is_writable(&self) -> bool {
        hyperslab_archive::is_writable(self.0.document())
    }

    /// Writes parts of keys below a folder.
    fn write_keys(
        &self,
        py: Python<'_>,
        parts: &ZarrParts,
        folder: PathBuf,
        values: Given<'_>,
        encoding: Asked,
    ) -> PyResult<()> {
        let target = FolderTarget { folder: &folder, keys: &parts.keys, is_new: false };
        self.write(py, parts, &values, &encoding, &target, None)
    }

    /// Writes a slab, which begins with whole keys, into the array's own folder, which nobody reads yet. Returns the
    /// checksums of its chunks before encoding.
    fn write_slab<'py>(
        &self,
        py: Python<'py>,
        first: Vec<u64>,
        values: Given<'_>,
        encoding: Asked,
    ) -> PyResult<Bound<'py, PyArray1<u32>>> {
        let Keys::Local(folder) = self.0.keys() else {
            return Err(PyValueError::new_err("slabs are written to local folders only"));
        };
        // Before anything is made for each chunk: an element has at least one byte.
        let element_count = values.1.iter().try_fold(1_u64, |count, length| count.checked_mul(*length));
        if element_count.is_none_or(|count| count > values.0.len() as u64) {
            return Err(PyMemoryError::new_err("the values do not have that shape"));
        }
        let slab = ZarrParts::of_slab(self.0.document(), &first, &values.1)?;
        let unit = self.0.document().unit_shape().unwrap_or_default();
        let count = values.1.iter().zip(unit).map(|(length, unit)| length.div_ceil((*unit).max(1)));
        let checksums: Vec<AtomicU32> = (0..count.product::<u64>()).map(|_| AtomicU32::new(0)).collect();
        let target = FolderTarget { folder, keys: &slab.keys, is_new: true };
        self.write(py, &slab, &values, &encoding, &target, Some(&checksums))?;
        Ok(checksums.into_iter().map(AtomicU32::into_inner).collect::<Vec<_>>().into_pyarray(py))
    }

    /// What keys are to hold, given what they hold; `None` if one is to be removed.
    fn encode_keys<'py>(
        &self,
        py: Python<'py>,
        parts: &ZarrParts,
        old: Vec<Option<PyBackedBytes>>,
        values: Given<'_>,
        encoding: Asked,
    ) -> PyResult<Vec<Option<Bound<'py, PyBytes>>>> {
        let target = GivenTarget::new(old.iter().map(Option::as_deref).collect());
        self.write(py, parts, &values, &encoding, &target, None)?;
        Ok(target.into_made().into_iter().map(|made| made.map(|bytes| PyBytes::new(py, &bytes))).collect())
    }

    /// Reads a selection, in an array of this shape, into the bytes of its output.
    fn read_into(
        &self,
        shape: Vec<u64>,
        asked: Vec<Bound<'_, PyAny>>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        self.read(&shape, &ArraySelection::Axes(axes::parse(&asked)?), out, threads)
    }

    /// Reads what zarr-python's items ask for, if together they are one box that fills an output of this shape.
    fn read_items(
        &self,
        items: Vec<Bound<'_, PyTuple>>,
        shape: Vec<u64>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<bool> {
        let Some(parts) = ZarrParts::of(items, shape.clone(), false)? else { return Ok(false) };
        let Some((first, whole)) = parts.as_box(self.0.key_shape(), &shape) else { return Ok(false) };
        let axes = first.iter().zip(&shape).enumerate();
        let axes = axes.map(|(axis, (&first, &length))| AxisSelection::interval(axis, first, length));
        let axes = axes.map(|axis| axis.map(AxisIndices::Regular)).collect::<Result<_, _>>();
        let Ok(selection) = axes.and_then(Orthogonal::new) else { return Ok(false) };
        self.read(&whole, &ArraySelection::Axes(selection), out, threads)?;
        Ok(true)
    }

    /// Reads points, in an array of this shape.
    fn read_points_into(
        &self,
        shape: Vec<u64>,
        points: &Points,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        self.read(&shape, &ArraySelection::Points(&points.0), out, threads)
    }
}

/// The bytes of values, and their shape.
type Given<'py> = (PyReadonlyArray1<'py, u8>, Vec<u64>);
/// The steps of an encoding, whether chunks of nothing but the fill value are left out, and how many threads encode.
type Asked = (Filters, bool, Option<usize>);

impl ZarrArray {
    fn write(
        &self,
        py: Python<'_>,
        parts: &ZarrParts,
        values: &Given<'_>,
        (filters, leaves_out_fill, threads): &Asked,
        target: &dyn KeyTarget,
        checksums: Option<&[AtomicU32]>,
    ) -> PyResult<()> {
        let filters = chunk_encoding::filters(filters)?;
        let threads = threads.unwrap_or_else(default_thread_count);
        let leaves_out_fill = *leaves_out_fill;
        let encoding =
            KeyEncoding { filters: &filters, threads, leaves_out_fill, checksums, interrupts: &Signals };
        let values = Values { bytes: values.0.as_slice()?, shape: &values.1 };
        let write = || write_keys(self.0.document(), &parts.parts, values, encoding, target);
        detached(py, write)?.map_err(|error| parts.failure(error))
    }

    fn read(
        &self,
        shape: &[u64],
        selection: &ArraySelection<'_>,
        out: &Bound<'_, PyArray1<u8>>,
        threads: Option<usize>,
    ) -> PyResult<()> {
        let mut bytes = out.try_readwrite()?;
        let bytes = bytes.as_slice_mut()?;
        let options = ReadOptions { thread_count: threads, ..ReadOptions::default() };
        let read = || self.0.read_into(shape, selection, bytes, options, &Signals);
        detached(out.py(), read)?.map_err(errors::of_archive)
    }
}
