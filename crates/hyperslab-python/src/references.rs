//! References: archives written into one file that opens at once, and arrays of such a file.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use hyperslab_core::{Array, FileIndex, Group, Link, PlanError, Unreadable};
use hyperslab_engine::{FileStore, FileVersion, OtherFile, ReadError, Store};
use hyperslab_parsers::references::{self, References, SourceFile};
use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;

use crate::archive_file::{ArchiveFile, Failure, LocalSource, Opened};
use crate::dtypes::has_pointers;
use crate::virtual_sources::{Problem, Resolved, WholeArray, next_number};

/// A file of references that is open.
pub(crate) struct OpenReferences {
    pub(crate) store: Arc<FileStore>,
    pub(crate) found: References,
}

impl OpenReferences {
    pub(crate) fn open(store: Arc<FileStore>) -> Result<Self, Failure> {
        let found = References::read(&LocalSource(&*store))?;
        store.check_unchanged()?;
        Ok(Self { store, found })
    }

    /// The files that its chunks lie in, as they were.
    pub(crate) fn files(&self, folder: &Path) -> Vec<OtherFile> {
        let file = |file: &SourceFile| {
            let modified = file.modified.and_then(|(seconds, nanoseconds)| {
                UNIX_EPOCH
                    .checked_add(Duration::from_secs(seconds))?
                    .checked_add(Duration::from_nanos(nanoseconds.into()))
            });
            let version = file.nbytes.map(|nbytes| FileVersion::new(nbytes, modified));
            OtherFile { path: folder.join(&file.path), version, is_padded: file.is_padded }
        };
        self.found.files.iter().map(file).collect()
    }

    /// An array with its chunks.
    pub(crate) fn array(&self, opened: &Opened, number: usize) -> Result<Resolved, Problem> {
        let fault = |failure: Failure| Problem::File(opened.path.clone(), Box::new(failure));
        let array = self.found.array(&LocalSource(&*self.store), number);
        self.store.check_unchanged().map_err(|error| fault(error.into()))?;
        let array = array.map_err(|error| fault(error.into()))?;
        Ok(Resolved { array, stores: opened.stores.with(Vec::new()), number: next_number() })
    }
}

/// Fails if a file that chunks lie in is another one now.
pub(crate) fn check_sources(opened: &Opened) -> Result<(), ReadError> {
    (1..opened.stores.next_number()).try_for_each(|number| {
        let number = FileIndex::try_from(number).unwrap_or(FileIndex::MAX);
        opened.stores.get(number).map(|_| ())
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
    Source(PathBuf, Failure),
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
        let whole = match WholeArray::of(archive, number) {
            Ok(whole) => whole,
            Err(Problem::Plan(PlanError::Unreadable(reason))) => {
                return self.unreadable(described, attributes, reason);
            }
            Err(Problem::Plan(PlanError::Selection(error))) => {
                return self.unreadable(described, attributes, error.into());
            }
            Err(Problem::File(path, failure)) => return Err(SaveError::Source(path, *failure)),
        };
        let array = Array { attributes, dimensions, max_shape, ..whole.array().clone() };
        let used = used_files(&array);
        let mut moved = HashMap::new();
        for file in used {
            moved.insert(file, self.file(archive, &whole, file, numbers)?);
        }
        let heap_file = match (&archive.references, has_pointers(&array.element)) {
            (_, false) => None,
            (Some(open), true) => open.found.heap_file(number),
            (None, true) => Some(0),
        };
        let heap_file = heap_file.map(|file| self.file(archive, &whole, file, numbers)).transpose()?;
        self.chunk_count += whole.manifests().iter().map(|(manifest, _)| manifest.chunk_count()).sum::<u64>();
        self.out.array(&array, heap_file, |file| moved.get(&file).copied().unwrap_or(FileIndex::MAX))?;
        Ok(())
    }

    fn unreadable(
        &mut self,
        described: &Array,
        attributes: Vec<hyperslab_core::Attribute>,
        reason: Unreadable,
    ) -> Result<(), SaveError> {
        let array = Array { attributes, segments: Err(reason), ..described.clone() };
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
        let place = usize::try_from(number).unwrap_or(usize::MAX);
        let known = match (&archive.store, place.checked_sub(1)) {
            (Some(store), None) => Some(OtherFile {
                path: archive.path.clone(),
                version: Some(store.version()),
                is_padded: false,
            }),
            (None, None) => None,
            (_, Some(place)) => whole.stores().others().get(place).cloned(),
        };
        let Some(file) = known else { return Ok(FileIndex::MAX) };
        if let Some(&number) = numbers.get(&file.path) {
            return Ok(number);
        }
        let version = file.version.or_else(|| FileVersion::of(&file.path));
        let absolute = std::path::absolute(&file.path)?;
        let path = absolute.strip_prefix(self.folder).unwrap_or(&absolute);
        let path = path.to_str().ok_or_else(|| SaveError::Path(file.path.clone()))?.to_owned();
        let modified =
            version.and_then(|version| version.modified()?.duration_since(SystemTime::UNIX_EPOCH).ok());
        let stored = SourceFile {
            path,
            nbytes: version.map(|version| version.nbytes()),
            modified: modified.map(|since| (since.as_secs(), since.subsec_nanos())),
            etag: None,
            is_padded: file.is_padded,
        };
        let number = self.out.file(stored);
        numbers.insert(file.path, number);
        Ok(number)
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

/// A link of one archive as it must be in the file of all: numbers go up, paths from the root start at its group.
fn move_link(link: &mut Link, name: &str, archive: &Opened, first_group: usize, first_array: usize) {
    match link {
        Link::Group(number) => *number += first_group,
        Link::Array(number) => *number += first_array,
        Link::Soft(path) if path.starts_with('/') && !name.is_empty() => *path = format!("/{name}{path}"),
        Link::External { file, .. } => {
            let folder = archive.path.parent().unwrap_or(Path::new(""));
            if let Some(moved) = folder.join(&*file).to_str() {
                moved.clone_into(file);
            }
        }
        Link::Soft(_) | Link::Unreadable(_) => {}
    }
}
