//! Reference files (JSON): which kind one is, and the files that it names.

use std::collections::HashMap;
use std::path::Path;

use hyperslab_core::FileIndex;

use super::hierarchy::{Hierarchy, Location};
use super::{chunkstore, document, kerchunk};
use crate::allowed::Allowed;
use crate::error::Error;

/// The hierarchy of a reference file.
pub(super) fn read(bytes: &[u8], folder: &Path, allowed: &Allowed) -> Result<Hierarchy, Error> {
    let parsed = kerchunk::References::of(bytes).or_else(|error| {
        let quoted = document::with_quoted_words(std::str::from_utf8(bytes).map_err(|_| error)?);
        kerchunk::References::of(quoted.as_bytes())
    });
    let parsed = parsed.map_err(|error| kerchunk::invalid(error.to_string()))?;
    if parsed.is_consolidated {
        let entries = vec![(".zmetadata".into(), Location::Inline(bytes.into()))];
        return chunkstore::resolved(Hierarchy::new(entries, Vec::new(), folder, allowed));
    }
    let (entries, files) = parsed.resolved()?;
    Ok(Hierarchy::new(entries, files, folder, allowed))
}

/// The name of a file without the protocol that says that it is here; others keep theirs.
pub(crate) fn local(name: &str) -> &str {
    let stripped = ["file://", "local://"].into_iter().find_map(|protocol| name.strip_prefix(protocol));
    stripped.unwrap_or(name)
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
