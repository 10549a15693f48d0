//! NumPy columns as the table of an array's chunks.

use std::collections::BTreeMap;

use hyperslab_archive::{Error, TableReader};
use hyperslab_parsers as parsers;
use hyperslab_parsers::zarr::Table;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

/// For each chunk, by linear index: file, offset and length; and the bytes of the inline chunks.
pub(crate) type Columns<'py> = (
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u64>,
    PyReadonlyArray1<'py, u64>,
    BTreeMap<u64, Vec<u8>>,
);

/// A function that takes the path of an array and returns its columns, and the names of the files that the columns
/// number.
pub(crate) struct Tables {
    pub(crate) function: Py<PyAny>,
    /// The archive's name in errors.
    pub(crate) name: String,
}

impl TableReader for Tables {
    fn read(&self, path: &str) -> Result<(Table, Vec<String>), Error> {
        Python::attach(|py| {
            let raised = |error: PyErr| Error::Caller(error.into());
            let found = self.function.call1(py, (path,)).map_err(raised)?;
            let (columns, files): (Columns<'_>, Vec<String>) = found.extract(py).map_err(raised)?;
            let table = table(columns, files.len());
            Ok((table.map_err(|problem| Error::parse(self.name.clone(), problem))?, files))
        })
    }
}

/// Columns as a table.
pub(crate) fn table(
    (files, offsets, lengths, inline): Columns<'_>,
    count: usize,
) -> Result<Table, parsers::Error> {
    let slice = |_| parsers::Error::Unsupported { feature: "columns with gaps".to_owned() };
    let (files, offsets) = (files.as_slice().map_err(slice)?, offsets.as_slice().map_err(slice)?);
    Table::new(files, offsets, lengths.as_slice().map_err(slice)?, inline, count)
}
