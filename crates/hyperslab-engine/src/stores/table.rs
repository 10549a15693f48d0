//! The files of one archive by their numbers, opened when they are needed.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use hyperslab_core::FileIndex;

use super::{FarStore, FileStore, Store};
use crate::brief_lock::lock_briefly;
use crate::read_error::ReadError;

/// Files held open at a time beside the opened one; one more closes them all.
const MOST_HELD: usize = 64;

/// Opens a file by its name relative to the opened one.
pub type Opener = Box<dyn Fn(&str) -> Result<Arc<dyn Store>, ReadError> + Send + Sync>;

/// The opened file, number 0, and the others that its chunks lie in.
pub struct Stores {
    opened: Option<Arc<dyn Store>>,
    name: String,
    others: Vec<String>,
    open: Opener,
    held: Mutex<HashMap<FileIndex, Arc<dyn Store>>>,
}

impl Stores {
    /// `others` are relative to `folder`; an archive that is a folder has no file number 0.
    pub fn new(opened: Option<Arc<dyn Store>>, folder: PathBuf, others: Vec<String>) -> Self {
        let name =
            opened.as_ref().map_or_else(|| folder.display().to_string(), |opened| opened.name().to_owned());
        let open = move |other: &str| Ok(Arc::new(FileStore::open(&folder.join(other))?) as Arc<dyn Store>);
        Self::with_opener(opened, name, others, Box::new(open))
    }

    /// Of an archive called `name`, whose other files are elsewhere than in a folder.
    pub fn with_opener(
        opened: Option<Arc<dyn Store>>,
        name: String,
        others: Vec<String>,
        open: Opener,
    ) -> Self {
        Self { opened, name, others, open, held: Mutex::default() }
    }

    /// The file with this number.
    pub fn get(&self, index: FileIndex) -> Result<Arc<dyn Store>, ReadError> {
        if let (0, Some(opened)) = (index, &self.opened) {
            return Ok(Arc::clone(opened));
        }
        if let Some(held) = lock_briefly(&self.held).and_then(|held| held.get(&index).cloned()) {
            return Ok(held);
        }
        let store = (self.open)(self.other(index)?)?;
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
        self.name.clone()
    }

    /// How many requests are worth making at a time, where the archive is far away.
    pub(crate) fn far_requests(&self) -> Option<usize> {
        self.opened.as_ref()?.far().map(FarStore::most_in_flight)
    }

    /// Fails if the opened file is another one now.
    pub fn check_unchanged(&self) -> Result<(), ReadError> {
        self.opened.as_ref().map_or(Ok(()), |opened| opened.check_unchanged())
    }

    fn other(&self, index: FileIndex) -> Result<&str, ReadError> {
        let place = usize::try_from(index).ok().and_then(|number| number.checked_sub(1));
        let name = place.and_then(|place| self.others.get(place)).ok_or_else(|| ReadError::System {
            file: self.name(),
            problem: format!("file number {index} of its chunks has no name; the file is damaged"),
        })?;
        Ok(name)
    }
}
