//! The files that references name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hyperslab_core::FileIndex;

use crate::error::Error;

/// The name of a file without the protocol of local files. Names with other protocols stay as they are.
pub(crate) fn local(name: &str) -> &str {
    let stripped = ["file://", "local://"].into_iter().find_map(|protocol| name.strip_prefix(protocol));
    stripped.unwrap_or(name)
}

/// The location of a local file that a document in `folder` names: beside the document or, if there is no such file,
/// below the working directory, where fsspec looks.
pub fn place_of(folder: &Path, name: &str) -> PathBuf {
    let beside = folder.join(name);
    if Path::new(name).is_relative()
        && !beside.exists()
        && let Some(found) = std::path::absolute(name).ok().filter(|path| path.exists())
    {
        return found;
    }
    beside
}

/// Names of files, each once, numbered from 1.
#[derive(Default)]
pub(crate) struct Files {
    pub names: Vec<String>,
    numbers: HashMap<String, FileIndex>,
}

impl Files {
    /// Starts with these names.
    pub fn of(names: &[String]) -> Self {
        let numbers = names.iter().cloned().zip(1..).collect();
        Self { names: names.to_vec(), numbers }
    }

    /// The number of a file.
    pub fn number(&mut self, name: &str) -> FileIndex {
        if let Some(&known) = self.numbers.get(name) {
            return known;
        }
        self.names.push(name.to_owned());
        let number = FileIndex::try_from(self.names.len()).unwrap_or(FileIndex::MAX);
        self.numbers.insert(name.to_owned(), number);
        number
    }
}

/// The error of a reference file.
pub(super) fn invalid(problem: impl Into<String>) -> Error {
    Error::invalid("a reference file", 0, problem)
}
