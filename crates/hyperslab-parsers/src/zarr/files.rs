//! The files that references name.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use hyperslab_core::FileIndex;

use crate::error::Error;

/// The name of a file without the protocol that says that it is here; others keep theirs.
pub(crate) fn local(name: &str) -> &str {
    let stripped = ["file://", "local://"].into_iter().find_map(|protocol| name.strip_prefix(protocol));
    stripped.unwrap_or(name)
}

/// Where a file of this machine is that a document in `folder` names: beside the document; or, if it is not there, below
/// the working directory, where fsspec looks.
pub fn place_of(folder: &Path, name: &str) -> PathBuf {
    let beside = folder.join(name);
    if Path::new(name).is_relative() && !beside.exists() {
        if let Some(found) = std::path::absolute(name).ok().filter(|path| path.exists()) {
            return found;
        }
    }
    beside
}

/// Names of files, each once, with their numbers from 1 on.
#[derive(Default)]
pub(crate) struct Files {
    pub names: Vec<String>,
    numbers: HashMap<String, FileIndex>,
}

impl Files {
    /// With these already.
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

/// What is wrong with a reference file.
pub(super) fn invalid(problem: impl Into<String>) -> Error {
    Error::invalid("a reference file", 0, problem)
}
