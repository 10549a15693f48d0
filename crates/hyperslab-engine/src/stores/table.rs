//! The files of one archive by their numbers, opened when they are needed.

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
    /// The opened file where it is not held open: its number is 0 all the same.
    own: Option<OtherFile>,
    name: String,
    others: Vec<OtherFile>,
    /// What knows the others is a file of references; there is no opened file then.
    are_referenced: bool,
    /// Requests worth making at a time where the others are far away.
    far_requests: Option<usize>,
    open: Opener,
    held: Arc<HeldFiles>,
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
        Self { opened, ..Self::of_files(name, others, open, None) }
    }

    /// The other files are opened so.
    #[must_use]
    pub fn opened_by(self, open: Opener) -> Self {
        Self { open, ..self }
    }

    /// The other files lie in a folder far away.
    #[must_use]
    pub fn below(self, folder: Arc<RemoteFolder>) -> Self {
        Self { folder: Some(folder), ..self }
    }

    /// Of references, which are called `name`; their own number 0 is no file. `far_requests` are worth making at a time,
    /// where some of the others are far away.
    pub fn of_references(
        name: String,
        others: Vec<OtherFile>,
        far_requests: Option<usize>,
        open: Opener,
    ) -> Self {
        Self { are_referenced: true, ..Self::of_files(name, others, open, far_requests) }
    }

    /// Of an archive that is a list of files, the first of which has the number 1; `far_requests` are worth making at a
    /// time where some are far away.
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

    /// The other files go on with zeros behind their ends, as HDF5's external raw files do.
    #[must_use]
    pub fn with_padded_others(mut self) -> Self {
        self.others.iter_mut().for_each(|other| other.is_padded = true);
        self
    }

    /// The same, but for the opened file, which is opened when it is needed from now on.
    #[must_use]
    pub fn closed(self, own: OtherFile) -> Self {
        Self { opened: None, own: Some(own), ..self }
    }

    /// The same files under the same numbers, then more; they are held open together.
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

    fn open(&self, path: &Path) -> Result<Arc<dyn Store>, ReadError> {
        if let Some(held) = self.held.get(path) {
            return Ok(held);
        }
        let store = (self.open)(path)?;
        self.held.hold(path, &store);
        Ok(store)
    }

    /// What people call the archive.
    pub fn name(&self) -> String {
        self.name.clone()
    }

    /// How many requests are worth making at a time, where the archive is far away.
    pub fn far_requests(&self) -> Option<usize> {
        let folder = || self.folder.as_ref().map(|folder| folder.most_in_flight());
        let opened = || self.opened.as_ref()?.far().map(FarStore::most_in_flight);
        self.far_requests.or_else(folder).or_else(opened)
    }

    /// Which requests the archive's files like, told without opening any.
    pub fn policy(&self) -> CoalescePolicy {
        match &self.opened {
            Some(opened) => opened.policy(),
            None if self.far_requests().is_some() => CoalescePolicy::REMOTE,
            None => CoalescePolicy::LOCAL,
        }
    }

    /// Fails if the opened file is another one now.
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
