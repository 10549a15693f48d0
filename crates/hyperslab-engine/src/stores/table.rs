//! The files of one archive by their numbers, opened when they are needed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use hyperslab_core::FileIndex;

use super::padded::PaddedStore;
use super::{FileStore, Store};
use crate::brief_lock::lock_briefly;
use crate::read_error::ReadError;

/// Files held open at a time beside the opened one; one more closes them all.
const MOST_HELD: usize = 64;

/// The opened file, number 0, and the others that its chunks lie in.
pub struct Stores {
    opened: Option<Arc<dyn Store>>,
    folder: PathBuf,
    others: Vec<String>,
    others_are_padded: bool,
    held: Mutex<HashMap<FileIndex, Arc<dyn Store>>>,
}

impl Stores {
    /// `others` are relative to `folder`; an archive that is a folder has no file number 0.
    pub fn new(opened: Option<Arc<dyn Store>>, folder: PathBuf, others: Vec<String>) -> Self {
        Self { opened, folder, others, others_are_padded: false, held: Mutex::default() }
    }

    /// The other files go on with zeros behind their ends, as HDF5's external raw files do.
    #[must_use]
    pub fn with_padded_others(self) -> Self {
        Self { others_are_padded: true, ..self }
    }

    /// The file with this number.
    pub fn get(&self, index: FileIndex) -> Result<Arc<dyn Store>, ReadError> {
        if let (0, Some(opened)) = (index, &self.opened) {
            return Ok(Arc::clone(opened));
        }
        if let Some(held) = lock_briefly(&self.held).and_then(|held| held.get(&index).cloned()) {
            return Ok(held);
        }
        let file = FileStore::open(&self.path(index)?)?;
        let store: Arc<dyn Store> =
            if self.others_are_padded { Arc::new(PaddedStore(file)) } else { Arc::new(file) };
        if let Some(mut held) = lock_briefly(&self.held) {
            if held.len() >= MOST_HELD {
                held.clear();
            }
            held.insert(index, Arc::clone(&store));
        }
        Ok(store)
    }

    /// What people call the archive.
    pub fn name(&self) -> String {
        self.opened
            .as_ref()
            .map_or_else(|| self.folder.display().to_string(), |opened| opened.name().to_owned())
    }

    /// Fails if the opened file is another one now.
    pub fn check_unchanged(&self) -> Result<(), ReadError> {
        self.opened.as_ref().map_or(Ok(()), |opened| opened.check_unchanged())
    }

    fn path(&self, index: FileIndex) -> Result<PathBuf, ReadError> {
        let place = usize::try_from(index).ok().and_then(|number| number.checked_sub(1));
        let name = place.and_then(|place| self.others.get(place)).ok_or_else(|| ReadError::System {
            file: self.name(),
            problem: format!("file number {index} of its chunks has no name; the file is damaged"),
        })?;
        Ok(self.folder.join(name))
    }
}
