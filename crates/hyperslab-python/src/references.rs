//! References: archives written into one file that opens at once, and arrays of such a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyperslab_core::{Array, ByteRange, FileIndex, Group, Link, PlanError, Unreadable};
use hyperslab_engine::{
    FarStore as _, FileStore, FileVersion, Identity, OtherFile, ReadError, RemoteStore, Store, Stores,
};
use hyperslab_parsers::references::{self, References, SourceFile};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::archive_file::{ArchiveFile, Bytes, Opened};
use crate::failure::Failure;
use crate::hdf5_places::{self, Naming};
use crate::open_far::beside;
use crate::referenced::{Referenced, folder_of, is_url, place, shown};
use crate::sources::{Interrupts, LocalSource, RemoteSource};
use crate::stored_array::role;
use crate::virtual_sources::{Problem, Resolved, WholeArray};

/// A file of references as it was when it was opened. A local one is not held open: thousands may be in use at a time.
pub(crate) struct OpenReferences {
    place: Place,
    pub(crate) found: References,
}

enum Place {
    Local(PathBuf, FileVersion),
    Far(Arc<RemoteStore>),
}

impl OpenReferences {
    pub(crate) fn open(path: &Path, store: &FileStore) -> Result<Self, Failure> {
        let found = References::read(&LocalSource(store));
        store.check_unchanged()?;
        Ok(Self { place: Place::Local(path.to_owned(), store.version()), found: found? })
    }

    /// Of a file far away that was read.
    pub(crate) fn far(store: Arc<RemoteStore>, found: References) -> Self {
        Self { place: Place::Far(store), found }
    }

    /// Which version of the file it was.
    pub(crate) fn version(&self) -> Option<String> {
        match &self.place {
            Place::Local(_, version) => Some(version.to_string()),
            Place::Far(store) => store.version(),
        }
    }

    fn read_array(&self, number: usize) -> Result<Array, Failure> {
        let (path, version) = match &self.place {
            Place::Local(path, version) => (path, version),
            Place::Far(store) => {
                let interrupts = Interrupts::default();
                let source = RemoteSource::new(store, &[], &interrupts);
                let array = self.found.array(&source, number);
                let failure = source.failure();
                if let Some(raised) = interrupts.raised() {
                    return Err(Failure::Raised(raised));
                }
                return array.map_err(|error| failure.map_or(Failure::Parse(error), Failure::Read));
            }
        };
        let store = FileStore::open(path)?;
        let array = self.found.array(&LocalSource(&store), number);
        store.check_unchanged()?;
        if store.version() != *version {
            return Err(ReadError::FileChanged { file: store.name().to_owned() }.into());
        }
        Ok(array?)
    }

    /// The files that its chunks lie in, as they were.
    pub(crate) fn referenced(&self, name: String, folder: &Path) -> Referenced {
        let mut identities = HashMap::new();
        let file = |file: &SourceFile| {
            let path = place(folder, &file.path);
            let (nbytes, modified) = (file.nbytes, file.modified);
            let version = if path.to_str().is_some_and(is_url) {
                let modified = modified.and_then(|(seconds, _)| i64::try_from(seconds).ok()).unwrap_or(0);
                let identity = |nbytes| Identity { nbytes, etag: file.etag.clone(), modified };
                identities.extend(nbytes.map(|nbytes| (path.clone(), identity(nbytes))));
                None
            } else {
                let modified = modified.and_then(|(seconds, nanoseconds)| {
                    UNIX_EPOCH
                        .checked_add(Duration::from_secs(seconds))?
                        .checked_add(Duration::from_nanos(nanoseconds.into()))
                });
                nbytes.map(|nbytes| FileVersion::new(nbytes, modified))
            };
            OtherFile { path, version, is_padded: file.is_padded }
        };
        let files = self.found.files.iter().map(file).collect();
        Referenced { name, files, identities }
    }

    /// An array with its chunks.
    pub(crate) fn array(&self, opened: &Opened, number: usize) -> Result<Resolved, Problem> {
        let array = self.read_array(number);
        let array = array.map_err(|failure| Problem::File(opened.path.clone(), Box::new(failure)))?;
        Ok(Resolved::new(array, opened.stores.with(Vec::new())))
    }
}

/// Fails if a file that chunks lie in is another one now.
pub(crate) fn check_sources(opened: &Opened) -> Result<(), ReadError> {
    (1..opened.stores.next_number()).try_for_each(|number| {
        let number = FileIndex::try_from(number).unwrap_or(FileIndex::MAX);
        let store = opened.stores.get(number)?;
        match store.far() {
            Some(far) if store.nbytes() > 0 => {
                far.read_ranges(&[ByteRange { offset: 0, length: 1 }], &|| false).map(drop)
            }
            _ => Ok(()), // it was checked when it was opened
        }
    })
}

/// Write the references of archives to a file at `path`, which will stand in `folder`: of one that is named "" as the
/// root, of others as groups. Gives the numbers of arrays and of their stored chunks.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn save_references(
    py: Python<'_>,
    path: PathBuf,
    folder: PathBuf,
    archives: Vec<(String, Py<ArchiveFile>)>,
) -> PyResult<(u64, u64)> {
    let archives: Vec<(String, Arc<Opened>)> =
        archives.into_iter().map(|(name, file)| (name, file.get().opened())).collect();
    py.detach(|| save(&path, &folder, &archives)).map_err(|failure| match failure {
        SaveError::System(error) => PyOSError::new_err((error.raw_os_error(), error.to_string(), path)),
        SaveError::Source(path, failure) => failure.into_python(&path),
        SaveError::Path(path) => PyValueError::new_err(format!("{} is no UTF-8", path.display())),
    })
}

enum SaveError {
    System(std::io::Error),
    Source(PathBuf, Box<Failure>),
    Path(PathBuf),
}

impl From<std::io::Error> for SaveError {
    fn from(error: std::io::Error) -> Self {
        Self::System(error)
    }
}

fn save(path: &Path, folder: &Path, archives: &[(String, Arc<Opened>)]) -> Result<(u64, u64), SaveError> {
    let mut saving =
        Saving { folder, out: references::Writer::new(BufWriter::new(File::create(path)?))?, chunk_count: 0 };
    let mut first_group = 1;
    if !matches!(archives, [(name, _)] if name.is_empty()) {
        let mut links = Vec::new();
        for (name, archive) in archives {
            links.push((name.clone(), Link::Group(first_group)));
            first_group += archive.tree.groups.len();
        }
        saving.out.group(Group { attributes: Vec::new(), links });
    }
    for (name, archive) in archives {
        saving.archive(name, archive)?;
    }
    let array_count = saving.out.array_count() as u64;
    let mut out = saving.out.finish()?;
    out.flush()?;
    Ok((array_count, saving.chunk_count))
}

struct Saving<'a> {
    folder: &'a Path,
    out: references::Writer<BufWriter<File>>,
    chunk_count: u64,
}

impl Saving<'_> {
    fn archive(&mut self, name: &str, archive: &Arc<Opened>) -> Result<(), SaveError> {
        let (first_group, first_array) = (self.out.group_count(), self.out.array_count());
        for group in &archive.tree.groups {
            let mut group = group.clone();
            group.attributes.retain(|attribute| !archive.hidden.contains(&attribute.name.as_str()));
            for (_, link) in &mut group.links {
                move_link(link, name, archive, first_group, first_array);
            }
            self.out.group(group);
        }
        let mut numbers = HashMap::new();
        for number in 0..archive.tree.arrays.len() {
            self.array(archive, number, &mut numbers)?;
        }
        Ok(())
    }

    fn array(
        &mut self,
        archive: &Arc<Opened>,
        number: usize,
        numbers: &mut HashMap<PathBuf, FileIndex>,
    ) -> Result<(), SaveError> {
        let described = &archive.tree.arrays[number];
        let mut attributes = described.attributes.clone();
        attributes.retain(|attribute| !archive.hidden.contains(&attribute.name.as_str()));
        let (dimensions, max_shape) = (described.dimensions.clone(), described.max_shape.clone());
        let role = role(described);
        let whole = match WholeArray::listed(archive, number) {
            Ok(whole) => whole,
            Err(Problem::Plan(PlanError::Unreadable(reason))) => {
                return self.unreadable(described, attributes, reason);
            }
            Err(Problem::Plan(PlanError::Selection(error))) => {
                return self.unreadable(described, attributes, error.into());
            }
            Err(Problem::File(path, failure)) => return Err(SaveError::Source(path, failure)),
        };
        let array = Array { attributes, dimensions, max_shape, role, ..whole.array().clone() };
        let used = used_files(&array);
        let mut moved = HashMap::new();
        for file in used {
            moved.insert(file, self.file(archive, &whole, file, numbers)?);
        }
        let heap_file = match &archive.bytes {
            _ if !array.element.has_pointers() => None,
            Bytes::References(open) => open.found.heap_file(number),
            Bytes::Collection(open) => open.heaps.get(&number).map(|heap| heap.number),
            _ => Some(0),
        };
        let heap_file = heap_file.map(|file| self.file(archive, &whole, file, numbers)).transpose()?;
        self.chunk_count += whole.manifests().iter().map(|(manifest, _)| manifest.chunk_count()).sum::<u64>();
        self.out.array(&array, heap_file, |file| moved.get(&file).copied().unwrap_or(FileIndex::MAX))?;
        Ok(())
    }

    /// A path relative to the references' folder if it lies below it, else absolute.
    fn relative(&self, path: &Path) -> Result<String, SaveError> {
        let absolute = std::path::absolute(path)?;
        let relative = absolute.strip_prefix(self.folder).unwrap_or(&absolute);
        relative.to_str().map(str::to_owned).ok_or_else(|| SaveError::Path(path.to_owned()))
    }

    fn unreadable(
        &mut self,
        described: &Array,
        attributes: Vec<hyperslab_core::Attribute>,
        reason: Unreadable,
    ) -> Result<(), SaveError> {
        let array = Array { attributes, segments: Err(reason), role: role(described), ..described.clone() };
        Ok(self.out.array(&array, None, |file| file)?)
    }

    /// The new number of a file of an archive.
    fn file(
        &mut self,
        archive: &Opened,
        whole: &WholeArray,
        number: FileIndex,
        numbers: &mut HashMap<PathBuf, FileIndex>,
    ) -> Result<FileIndex, SaveError> {
        let place = usize::try_from(number).unwrap_or(usize::MAX).checked_sub(1);
        let known = match place {
            None => archive.own_file(),
            Some(place) => whole.stores().others().get(place).cloned(),
        };
        let Some(file) = known else { return Ok(FileIndex::MAX) };
        if let Some(&number) = numbers.get(&file.path) {
            return Ok(number);
        }
        let text = file.path.to_str().ok_or_else(|| SaveError::Path(file.path.clone()))?;
        let own = archive.path.to_str().filter(|own| is_url(own) && place.is_some());
        let target = own.map_or_else(|| text.to_owned(), |own| beside(own, text));
        if place.is_some() {
            let checked = archive.reach.check(Path::new(&target));
            checked.map_err(|error| SaveError::Source(archive.path.clone(), Box::new(error.into())))?;
        }
        let path = if is_url(&target) { shown(&target) } else { self.relative(Path::new(&target))? };
        let identity = identity(archive, whole.stores(), place);
        let version = file.version.or_else(|| FileVersion::of(&file.path));
        let modified =
            version.and_then(|version| version.modified()?.duration_since(SystemTime::UNIX_EPOCH).ok());
        let stored = match identity {
            Some(Identity { nbytes, etag, modified }) => SourceFile {
                path,
                nbytes: Some(nbytes),
                modified: u64::try_from(modified).ok().filter(|&since| since > 0).map(|since| (since, 0)),
                etag,
                is_padded: file.is_padded,
            },
            None => SourceFile {
                path,
                nbytes: version.map(|version| version.nbytes()),
                modified: modified.map(|since| (since.as_secs(), since.subsec_nanos())),
                etag: None,
                is_padded: file.is_padded,
            },
        };
        let number = self.out.file(stored);
        numbers.insert(file.path, number);
        Ok(number)
    }
}

/// What is known of a file far away that chunks of an archive were found in.
fn identity(archive: &Opened, stores: &Stores, place: Option<usize>) -> Option<Identity> {
    match (&archive.bytes, place) {
        (Bytes::Remote(store), None) => store.identity(),
        (Bytes::Collection(open), Some(place)) => {
            open.identities.get(&stores.others().get(place)?.path).cloned()
        }
        (_, Some(place)) if stores.others().get(place)?.path.to_str().is_some_and(is_url) => {
            let number = FileIndex::try_from(place + 1).ok()?;
            stores.get(number).ok()?.far()?.identity()
        }
        _ => None,
    }
}

/// Numbers of the files that chunks of an array lie in.
fn used_files(array: &Array) -> Vec<FileIndex> {
    let segments = array.segments.as_deref().unwrap_or_default();
    let mut files: Vec<FileIndex> = Vec::new();
    for segment in segments {
        files.extend(segment.manifest.files());
    }
    files.sort_unstable();
    files.dedup();
    files
}

/// The file that an external link leads to.
fn led_to(archive: &Opened, file: &str) -> Result<String, ReadError> {
    let own = archive.path.to_string_lossy();
    if is_url(&own) {
        let target = beside(&own, file);
        return archive.reach.check(Path::new(&target)).map(|()| target);
    }
    let found = hdf5_places::find(Naming::Link, &archive.path, file, &archive.reach)?;
    let found = found.unwrap_or_else(|| folder_of(&archive.path).join(file));
    Ok(found.to_str().map_or_else(|| file.to_owned(), str::to_owned))
}

/// A link of one archive as it must be in the file of all: numbers go up, paths from the root start at its group.
fn move_link(link: &mut Link, name: &str, archive: &Opened, first_group: usize, first_array: usize) {
    match link {
        Link::Group(number) => *number += first_group,
        Link::Array(number) => *number += first_array,
        Link::Soft(path) if path.starts_with('/') && !name.is_empty() => *path = format!("/{name}{path}"),
        Link::External { file, .. } => match led_to(archive, file) {
            Ok(moved) => *file = moved,
            // What a file may not lead to, references that are made of it do not lead to either.
            Err(refused) => *link = Link::Unreadable(Unreadable::unsupported(refused.to_string())),
        },
        Link::Soft(_) | Link::Unreadable(_) => {}
    }
}
