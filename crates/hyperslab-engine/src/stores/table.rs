//! The files of one archive by their numbers, opened when they are needed.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hyperslab_core::FileIndex;

use super::padded::PaddedStore;
use super::remote::RemoteFolder;
use super::{Expected, FarStore, FileStore, FileVersion, Stop, Store};
use crate::brief_lock::lock_briefly;
use crate::read_error::ReadError;

/// Files held open at a time beside the opened one; one more closes them all.
const MOST_HELD: usize = 64;

/// A file beside the opened one, which chunks lie in.
#[derive(Clone, Debug)]
pub struct OtherFile {
    /// Where it is, as the opener understands it.
    pub path: PathBuf,
    /// Which version of it the chunks were found in; `None` for whichever there is.
    pub version: Option<FileVersion>,
    /// Whether it goes on with zeros behind its end, as HDF5's external raw files do.
    pub is_padded: bool,
}

/// Opens one of the other files.
pub type Opener = Arc<dyn Fn(&Path) -> Result<Arc<dyn Store>, ReadError> + Send + Sync>;

/// What there is where a chunk is sought.
pub(crate) enum Found {
    /// Nothing: the chunk was never written.
    Nothing,
    /// A file.
    Open(FileStore),
    /// All that there is.
    Fetched(Vec<u8>),
}

/// The opened file, number 0, and the others that its chunks lie in.
pub struct Stores {
    opened: Option<Arc<dyn Store>>,
    /// Where the others are keys, if they are far away without the archive being one far file.
    folder: Option<Arc<RemoteFolder>>,
    name: String,
    others: Vec<OtherFile>,
    /// What knows the others is a file of references; there is no opened file then.
    are_referenced: bool,
    open: Opener,
    held: Arc<Mutex<HashMap<PathBuf, Arc<dyn Store>>>>,
}

impl Stores {
    /// `others` are relative to `folder`; an archive that is a folder has no file number 0.
    pub fn new(opened: Option<Arc<dyn Store>>, folder: &Path, others: Vec<String>) -> Self {
        let name =
            opened.as_ref().map_or_else(|| folder.display().to_string(), |opened| opened.name().to_owned());
        let others = others.into_iter().map(|name| folder.join(name)).collect();
        let open = |path: &Path| Ok(Arc::new(FileStore::open(path)?) as Arc<dyn Store>);
        Self::with_opener(opened, name, others, Arc::new(open))
    }

    /// Of an archive called `name`, whose other files are elsewhere than in a folder.
    pub fn with_opener(
        opened: Option<Arc<dyn Store>>,
        name: String,
        others: Vec<PathBuf>,
        open: Opener,
    ) -> Self {
        let other = |path| OtherFile { path, version: None, is_padded: false };
        let others = others.into_iter().map(other).collect();
        Self { opened, folder: None, name, others, are_referenced: false, open, held: Arc::default() }
    }

    /// The other files lie in a folder far away.
    #[must_use]
    pub fn below(self, folder: Arc<RemoteFolder>) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// Of a file of references, which is called `name`; its own number 0 is no file.
    pub fn of_references(name: String, others: Vec<OtherFile>, open: Opener) -> Self {
        Self { opened: None, folder: None, name, others, are_referenced: true, open, held: Arc::default() }
    }

    /// The other files go on with zeros behind their ends, as HDF5's external raw files do.
    #[must_use]
    pub fn with_padded_others(mut self) -> Self {
        self.others.iter_mut().for_each(|other| other.is_padded = true);
        self
    }

    /// The same files under the same numbers, then more; they are held open together.
    #[must_use]
    pub fn with(&self, more: Vec<OtherFile>) -> Self {
        Self {
            opened: self.opened.clone(),
            folder: self.folder.clone(),
            name: self.name.clone(),
            others: self.others.iter().cloned().chain(more).collect(),
            are_referenced: self.are_referenced,
            open: Arc::clone(&self.open),
            held: Arc::clone(&self.held),
        }
    }

    /// The number that the first file more would have.
    pub fn next_number(&self) -> usize {
        self.others.len() + 1
    }

    /// The files beside the opened one; the first one's number is 1.
    pub fn others(&self) -> &[OtherFile] {
        &self.others
    }

    /// The file with this number.
    pub fn get(&self, index: FileIndex) -> Result<Arc<dyn Store>, ReadError> {
        if let (0, Some(opened)) = (index, &self.opened) {
            return Ok(Arc::clone(opened));
        }
        let other = self.other(index)?;
        let store = self.open(&other.path)?;
        if other.version.is_some_and(|version| Some(version) != store.version()) {
            let file = store.name().to_owned();
            return Err(if self.are_referenced {
                ReadError::StaleReferences { file, references: self.name.clone() }
            } else {
                ReadError::FileChanged { file }
            });
        }
        Ok(if other.is_padded { Arc::new(PaddedStore(store)) } else { store })
    }

    /// What there is of a file that may not be there, as it is now. Of a far one all.
    pub(crate) fn find(
        &self,
        index: FileIndex,
        expected: Expected,
        stop: Stop<'_>,
    ) -> Result<Found, ReadError> {
        let path = &self.other(index)?.path;
        Ok(match &self.folder {
            Some(folder) => {
                let whole = folder.whole(&path.to_string_lossy(), expected, stop)?;
                whole.map_or(Found::Nothing, Found::Fetched)
            }
            None => FileStore::find(path)?.map_or(Found::Nothing, Found::Open),
        })
    }

    /// What people call a file.
    pub(crate) fn name_of(&self, index: FileIndex) -> String {
        let path = self.other(index).map(|other| other.path.display().to_string());
        match (path, &self.folder) {
            (Ok(path), Some(folder)) => format!("{}/{path}", folder.name()),
            (Ok(path), None) => path,
            (Err(_), _) => self.name(),
        }
    }

    fn open(&self, path: &PathBuf) -> Result<Arc<dyn Store>, ReadError> {
        if let Some(held) = lock_briefly(&self.held).and_then(|held| held.get(path).cloned()) {
            return Ok(held);
        }
        let store = (self.open)(path)?;
        if let Some(mut held) = lock_briefly(&self.held) {
            if held.len() >= MOST_HELD {
                held.clear();
            }
            held.insert(path.clone(), Arc::clone(&store));
        }
        Ok(store)
    }

    /// What people call the archive.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// How many requests are worth making at a time, where the archive is far away.
    pub(crate) fn far_requests(&self) -> Option<usize> {
        let folder = self.folder.as_ref().map(|folder| folder.most_in_flight());
        folder.or_else(|| self.opened.as_ref()?.far().map(FarStore::most_in_flight))
    }

    /// Fails if the opened file is another one now.
    pub fn check_unchanged(&self) -> Result<(), ReadError> {
        self.opened.as_ref().map_or(Ok(()), |opened| opened.check_unchanged())
    }

    fn other(&self, index: FileIndex) -> Result<&OtherFile, ReadError> {
        let place = usize::try_from(index).ok().and_then(|number| number.checked_sub(1));
        place.and_then(|place| self.others.get(place)).ok_or_else(|| ReadError::System {
            file: self.name(),
            problem: format!("file number {index} of its chunks has no name; the file is damaged"),
        })
    }
}
