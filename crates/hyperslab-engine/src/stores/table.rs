//! The files of one archive, by number. They are opened on demand.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_core::{CoalescePolicy, FileIndex};

use super::contract::{FarStore, Stop, Store};
use super::file::FileStore;
use super::file_version::FileVersion;
use super::held::HeldFiles;
use super::padded::PaddedStore;
use super::remote::Expected;
use super::remote::RemoteFolder;
use crate::read_error::ReadError;

/// A file other than the opened one that holds chunks.
#[derive(Clone, Debug)]
pub struct OtherFile {
    /// Its path, as the opener understands it.
    pub path: PathBuf,
    /// The version in which the chunks were found; `None` for any version.
    pub version: Option<FileVersion>,
    /// Whether it continues with zeros after its end, as HDF5's external raw files do.
    pub is_padded: bool,
}

/// Opens one of the other files.
pub type Opener = Arc<dyn Fn(&Path) -> Result<Arc<dyn Store>, ReadError> + Send + Sync>;

/// What is found where a chunk is sought.
pub(crate) enum Found {
    /// Nothing: the chunk was never written.
    Nothing,
    /// A file.
    Open(FileStore),
    /// All of its bytes.
    Fetched(Vec<u8>),
}

/// The opened file, number 0, and the others that hold its chunks.
pub struct Stores {
    opened: Option<Arc<dyn Store>>,
    /// The folder of the keys, if the others are remote and the archive is not one remote file.
    folder: Option<Arc<RemoteFolder>>,
    /// The opened file if it is not kept open. Its number is 0 all the same.
    own: Option<OtherFile>,
    name: String,
    others: Vec<OtherFile>,
    /// The file of references that names the others. There is no opened file then.
    are_referenced: bool,
    /// How many requests are worth making at a time, if the others are remote.
    far_requests: Option<usize>,
    open: Opener,
    held: Arc<HeldFiles>,
}

impl Stores {
    /// `others` are relative to `folder`. An archive that is a folder has no file number 0.
    pub fn new(opened: Option<Arc<dyn Store>>, folder: &Path, others: Vec<String>) -> Self {
        let name =
            opened.as_ref().map_or_else(|| folder.display().to_string(), |opened| opened.name().to_owned());
        let others = others.into_iter().map(|name| folder.join(name)).collect();
        let open = |path: &Path| Ok(Arc::new(FileStore::open(path)?) as Arc<dyn Store>);
        Self::with_opener(opened, name, others, Arc::new(open))
    }

    /// For an archive called `name` whose other files are not in a folder.
    pub fn with_opener(
        opened: Option<Arc<dyn Store>>,
        name: String,
        others: Vec<PathBuf>,
        open: Opener,
    ) -> Self {
        let other = |path| OtherFile { path, version: None, is_padded: false };
        let others = others.into_iter().map(other).collect();
        Self { opened, ..Self::of_files(name, others, open, None) }
    }

    /// Sets how to open the other files.
    #[must_use]
    pub fn opened_by(self, open: Opener) -> Self {
        Self { open, ..self }
    }

    /// The other files lie in a remote folder.
    #[must_use]
    pub fn below(self, folder: Arc<RemoteFolder>) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// For references called `name`, whose number 0 is not a file. `far_requests` are worth making at a time, if some
    /// of the others are remote.
    pub fn of_references(
        name: String,
        others: Vec<OtherFile>,
        far_requests: Option<usize>,
        open: Opener,
    ) -> Self {
        Self { are_referenced: true, ..Self::of_files(name, others, open, far_requests) }
    }

    /// For an archive that is a list of files, numbered from 1. `far_requests` are worth making at a time, if some are
    /// remote.
    pub fn of_files(name: String, others: Vec<OtherFile>, open: Opener, far_requests: Option<usize>) -> Self {
        let are_referenced = false;
        Self {
            opened: None,
            folder: None,
            own: None,
            name,
            others,
            are_referenced,
            far_requests,
            open,
            held: Arc::default(),
        }
    }

    /// The other files continue with zeros after their ends, as HDF5's external raw files do.
    #[must_use]
    pub fn with_padded_others(mut self) -> Self {
        self.others.iter_mut().for_each(|other| other.is_padded = true);
        self
    }

    /// The same, except that from now on the opened file is opened on demand.
    #[must_use]
    pub fn closed(self, own: OtherFile) -> Self {
        Self { opened: None, own: Some(own), ..self }
    }

    /// The same files under the same numbers, then more files. They are kept open together.
    #[must_use]
    pub fn with(&self, more: Vec<OtherFile>) -> Self {
        Self {
            opened: self.opened.clone(),
            folder: self.folder.clone(),
            own: self.own.clone(),
            name: self.name.clone(),
            others: self.others.iter().cloned().chain(more).collect(),
            are_referenced: self.are_referenced,
            far_requests: self.far_requests,
            open: Arc::clone(&self.open),
            held: Arc::clone(&self.held),
        }
    }

    /// What opens them.
    pub fn opener(&self) -> &Opener {
        &self.open
    }

    /// The number that the next file would get.
    pub fn next_number(&self) -> usize {
        self.others.len() + 1
    }

    /// The files besides the opened one. The first one's number is 1.
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
        if other.version.is_some_and(|before| !store.version().is_some_and(|now| now.keeps(&before))) {
            let file = store.name().to_owned();
            return Err(if self.are_referenced {
                ReadError::StaleReferences { file, references: self.name.clone() }
            } else {
                ReadError::FileChanged { file }
            });
        }
        Ok(if other.is_padded { Arc::new(PaddedStore(store)) } else { store })
    }

    /// What there is now of a file that may not exist. Reads all of a remote one.
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

    /// A file's name for people.
    pub(crate) fn name_of(&self, index: FileIndex) -> String {
        let path = self.other(index).map(|other| other.path.display().to_string());
        match (path, &self.folder) {
            (Ok(path), Some(folder)) => format!("{}/{path}", folder.name()),
            (Ok(path), None) => path,
            (Err(_), _) => self.name(),
        }
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn Store>, ReadError> {
        if let Some(held) = self.held.get(path) {
            return Ok(held);
        }
        let store = (self.open)(path)?;
        self.held.hold(path, &store);
        Ok(store)
    }

    /// The archive's name for people.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// How many requests are worth making at a time, if the archive is remote.
    pub fn far_requests(&self) -> Option<usize> {
        let folder = || self.folder.as_ref().map(|folder| folder.most_in_flight());
        let opened = || self.opened.as_ref()?.far().map(FarStore::most_in_flight);
        self.far_requests.or_else(folder).or_else(opened)
    }

    /// How requests to the archive's files should be merged. Opens no file.
    pub fn policy(&self) -> CoalescePolicy {
        match &self.opened {
            Some(opened) => opened.policy(),
            None if self.far_requests().is_some() => CoalescePolicy::REMOTE,
            None => CoalescePolicy::LOCAL,
        }
    }

    /// Fails if the opened file has changed.
    pub fn check_unchanged(&self) -> Result<(), ReadError> {
        self.opened.as_ref().map_or(Ok(()), |opened| opened.check_unchanged())
    }

    fn other(&self, index: FileIndex) -> Result<&OtherFile, ReadError> {
        let position = usize::try_from(index).ok().and_then(|number| number.checked_sub(1));
        let found = position.map_or(self.own.as_ref(), |position| self.others.get(position));
        found.ok_or_else(|| ReadError::System {
            file: self.name(),
            problem: format!("file number {index} of its chunks has no name; the file is damaged"),
        })
    }
}
