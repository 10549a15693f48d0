//! References whose chunks are in tables that are read array by array, when each is first used: Kerchunk's Parquet.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;

use hyperslab_core::{Link, Tree};
use hyperslab_parsers as parsers;
use hyperslab_parsers::zarr::Table;
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::errors;
use crate::failure::Failure;
use crate::referenced::{Reach, Referenced};
use crate::virtual_sources::{Problem, Resolved};

/// Of each chunk of an array, by its linear index: file, offset, length; and the bytes of those at hand.
pub(crate) type Columns<'py> = (
    PyReadonlyArray1<'py, u32>,
    PyReadonlyArray1<'py, u64>,
    PyReadonlyArray1<'py, u64>,
    BTreeMap<u64, Vec<u8>>,
);

/// Metadata documents of Zarr, and what gives the table of an array by its path.
pub(crate) struct LazyTables {
    documents: HashMap<String, Vec<u8>>,
    /// Of arrays, by their numbers.
    paths: Vec<String>,
    function: Py<PyAny>,
    name: String,
    folder: PathBuf,
    reach: Reach,
}

impl LazyTables {
    /// With the tree of all arrays, as yet without chunks. `function` gives the columns and the names of the files.
    pub(crate) fn new(
        documents: HashMap<String, Vec<u8>>,
        function: Py<PyAny>,
        folder: PathBuf,
        reach: Reach,
    ) -> Result<(Self, Tree), parsers::Error> {
        let tree = parsers::zarr::parse_tables(documents.clone(), [], &[], &folder, reach.allowed())?;
        let mut paths = vec![String::new(); tree.arrays.len()];
        let mut waiting = vec![(String::new(), 0)];
        while let Some((prefix, number)) = waiting.pop() {
            for (name, link) in tree.groups.get(number).map_or(&[][..], |group| &group.links) {
                match link {
                    Link::Group(number) => waiting.push((format!("{prefix}{name}/"), *number)),
                    Link::Array(number) => paths[*number] = format!("{prefix}{name}"),
                    _ => {}
                }
            }
        }
        let name = folder.display().to_string();
        Ok((Self { documents, paths, function, name, folder, reach }, tree))
    }

    /// An array with its chunks.
    pub(crate) fn array(&self, number: usize) -> Result<Resolved, Problem> {
        let fault = |failure| Problem::File(self.folder.clone(), Box::new(failure));
        let (table, files) =
            self.table(&self.paths[number]).map_err(|error| fault(Failure::Raised(error)))?;
        let prefix = format!("{}/", self.paths[number]);
        let own =
            |(key, bytes): (&String, &Vec<u8>)| Some((key.strip_prefix(&prefix)?.to_owned(), bytes.clone()));
        let documents = self.documents.iter().filter_map(own);
        let (tables, allowed) = ([(String::new(), table)], self.reach.allowed());
        let tree = parsers::zarr::parse_tables(documents, tables, &files, &self.folder, allowed);
        let mut tree = tree.map_err(|error| fault(Failure::Parse(error)))?;
        let missing = || parsers::Error::Unsupported { feature: "an array in the root".to_owned() };
        let array = tree.arrays.pop().ok_or_else(|| fault(Failure::Parse(missing())))?;
        let named = Referenced::of_names(self.name.clone(), &self.folder, &tree.other_files);
        Ok(Resolved::new(array, named.stores(self.reach.clone())))
    }

    fn table(&self, path: &str) -> PyResult<(Table, Vec<String>)> {
        Python::attach(|py| {
            let found = self.function.call1(py, (path,))?;
            let (columns, files): (Columns<'_>, Vec<String>) = found.extract(py)?;
            let table = table(columns, files.len());
            Ok((table.map_err(|error| errors::of_parser(&self.name, error))?, files))
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
