//! References that keep their chunks in tables, such as Kerchunk's Parquet. An array's table is read when the array is
//! first used.

use std::collections::HashMap;
use std::path::PathBuf;

use hyperslab_core::Tree;
use hyperslab_parsers as parsers;
use hyperslab_parsers::zarr::Table;

use crate::error::Error;
use crate::referenced::Referenced;
use crate::resolved::Resolved;
use crate::source_resolver::SourceResolver;
use crate::tree_path::array_paths;

/// Reads the table of an array's chunks when the array is first used.
pub trait TableReader: Send + Sync {
    /// The table of the array at this path, and the names of the files that hold its chunks.
    fn read(&self, path: &str) -> Result<(Table, Vec<String>), Error>;
}

/// Zarr metadata documents, and what reads the table of an array, given its path.
pub(crate) struct LazyTables {
    documents: HashMap<String, Vec<u8>>,
    /// By array number.
    paths: Vec<String>,
    tables: Box<dyn TableReader>,
    name: String,
    folder: PathBuf,
    resolver: SourceResolver,
}

impl LazyTables {
    /// The tree of all arrays, without chunks as yet.
    pub(crate) fn new(
        documents: HashMap<String, Vec<u8>>,
        tables: Box<dyn TableReader>,
        folder: PathBuf,
        resolver: SourceResolver,
    ) -> Result<(Self, Tree), parsers::Error> {
        let tree = parsers::zarr::parse_tables(documents.clone(), [], &[], &folder, resolver.allowed())?;
        let paths = array_paths(&tree).into_iter().map(Option::unwrap_or_default).collect();
        let name = folder.display().to_string();
        Ok((Self { documents, paths, tables, name, folder, resolver }, tree))
    }

    /// An array with its chunks.
    pub(crate) fn array(&self, number: usize) -> Result<Resolved, Error> {
        let fault = |problem| Error::parse_of(&self.folder, problem);
        let (table, files) = self.tables.read(&self.paths[number])?;
        let prefix = format!("{}/", self.paths[number]);
        let own =
            |(key, bytes): (&String, &Vec<u8>)| Some((key.strip_prefix(&prefix)?.to_owned(), bytes.clone()));
        let documents = self.documents.iter().filter_map(own);
        let (tables, allowed) = ([(String::new(), table)], self.resolver.allowed());
        let tree = parsers::zarr::parse_tables(documents, tables, &files, &self.folder, allowed);
        let mut tree = tree.map_err(fault)?;
        let missing = || parsers::Error::Unsupported { feature: "an array in the root".to_owned() };
        let array = tree.arrays.pop().ok_or_else(|| fault(missing()))?;
        let named = Referenced::of_names(self.name.clone(), &self.folder, &tree.other_files);
        Ok(Resolved::new(array, named.stores(self.resolver.clone())))
    }
}
