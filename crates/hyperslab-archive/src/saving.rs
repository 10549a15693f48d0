//! Saves references: writes archives into one file that opens at once.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use hyperslab_core::{Array, Attribute, FileIndex, Group, Link, PlanError, Unreadable};
use hyperslab_engine::{FarStore as _, FileVersion, Identity, ReadError, Stores};
use hyperslab_parsers::references::{SourceFile, Writer};

use crate::archive::{Archive, ArchiveKind};
use crate::array::stored_fill;
use crate::error::{Error, Problem};
use crate::role::role;
use crate::url::{beside, folder_of, is_url, shown};
use crate::whole_array::WholeArray;

/// Why references cannot be saved.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The system cannot write the file.
    #[error(transparent)]
    System(#[from] std::io::Error),
    /// An archive cannot be read.
    #[error(transparent)]
    Source(#[from] Error),
    /// The path of a source is not text.
    #[error("{} is not UTF-8", .0.display())]
    Path(PathBuf),
}

/// Writes the references of archives to a file at `path`, which will stand in `folder`. An archive named "" becomes the
/// root, the others become groups. Returns the number of arrays and the number of stored chunks.
pub fn save_references(
    path: &Path,
    folder: &Path,
    archives: &[(String, Arc<Archive>)],
) -> Result<(u64, u64), SaveError> {
    let mut saving =
        Saving { folder, out: Writer::new(BufWriter::new(File::create(path)?))?, chunk_count: 0 };
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
    out: Writer<BufWriter<File>>,
    chunk_count: u64,
}

impl Saving<'_> {
    fn archive(&mut self, name: &str, archive: &Arc<Archive>) -> Result<(), SaveError> {
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
        archive: &Arc<Archive>,
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
            Err(Problem::Open(error)) => return Err(SaveError::Source(*error)),
        };
        let array = Array { attributes, dimensions, max_shape, role, ..whole.array().clone() };
        let used = used_files(&array);
        let mut moved = HashMap::new();
        for file in used {
            moved.insert(file, self.file(archive, &whole, file, numbers)?);
        }
        let heap_file = match &archive.kind {
            _ if !array.element.has_pointers() || stored_fill(&array).is_some() => None,
            ArchiveKind::References(open) => open.found.heap_file(number),
            ArchiveKind::Collection(open) => open.heaps.get(&number).map(|heap| heap.number),
            _ => Some(0),
        };
        let heap_file = heap_file.map(|file| self.file(archive, &whole, file, numbers)).transpose()?;
        self.chunk_count += whole.manifests().iter().map(|(manifest, _)| manifest.chunk_count()).sum::<u64>();
        self.out.array(&array, heap_file, |file| moved.get(&file).copied().unwrap_or(FileIndex::MAX))?;
        Ok(())
    }

    /// The path relative to the references' folder if it lies below that folder, else the absolute path.
    fn relative(&self, path: &Path) -> Result<String, SaveError> {
        let absolute = std::path::absolute(path)?;
        let relative = absolute.strip_prefix(self.folder).unwrap_or(&absolute);
        relative.to_str().map(str::to_owned).ok_or_else(|| SaveError::Path(path.to_owned()))
    }

    fn unreadable(
        &mut self,
        described: &Array,
        attributes: Vec<Attribute>,
        reason: Unreadable,
    ) -> Result<(), SaveError> {
        let array = Array { attributes, segments: Err(reason), role: role(described), ..described.clone() };
        Ok(self.out.array(&array, None, |file| file)?)
    }

    /// The new number of a file of an archive.
    fn file(
        &mut self,
        archive: &Archive,
        whole: &WholeArray,
        number: FileIndex,
        numbers: &mut HashMap<PathBuf, FileIndex>,
    ) -> Result<FileIndex, SaveError> {
        let position = usize::try_from(number).unwrap_or(usize::MAX).checked_sub(1);
        let known = match position {
            None => archive.own_file(),
            Some(position) => whole.stores().others().get(position).cloned(),
        };
        let Some(file) = known else { return Ok(FileIndex::MAX) };
        if let Some(&number) = numbers.get(&file.path) {
            return Ok(number);
        }
        let text = file.path.to_str().ok_or_else(|| SaveError::Path(file.path.clone()))?;
        let own = archive.path.to_str().filter(|own| is_url(own) && position.is_some());
        let target = own.map_or_else(|| text.to_owned(), |own| beside(own, text));
        if position.is_some() {
            archive.resolver.check(Path::new(&target)).map_err(Error::from)?;
        }
        let path = if is_url(&target) { shown(&target) } else { self.relative(Path::new(&target))? };
        let identity = identity(archive, whole.stores(), position);
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

/// What is known of a remote file that holds chunks of an archive.
fn identity(archive: &Archive, stores: &Stores, position: Option<usize>) -> Option<Identity> {
    match (&archive.kind, position) {
        (ArchiveKind::Remote(store), None) => store.identity(),
        (ArchiveKind::Collection(open), Some(position)) => {
            open.identities.get(&stores.others().get(position)?.path).cloned()
        }
        (_, Some(position)) if stores.others().get(position)?.path.to_str().is_some_and(is_url) => {
            let number = FileIndex::try_from(position + 1).ok()?;
            stores.get(number).ok()?.far()?.identity()
        }
        _ => None,
    }
}

/// The numbers of the files that hold chunks of an array.
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
fn led_to(archive: &Archive, file: &str) -> Result<String, ReadError> {
    let own = archive.path.to_string_lossy();
    if is_url(&own) {
        let target = beside(&own, file);
        return archive.resolver.check(Path::new(&target)).map(|()| target);
    }
    let found = archive.resolver.linked_file(&archive.path, file)?;
    let found = found.unwrap_or_else(|| folder_of(&archive.path).join(file));
    Ok(found.to_str().map_or_else(|| file.to_owned(), str::to_owned))
}

/// A link of one archive, changed to fit the file of all: its numbers are shifted, and its paths start at the archive's
/// group.
fn move_link(link: &mut Link, name: &str, archive: &Archive, first_group: usize, first_array: usize) {
    match link {
        Link::Group(number) => *number += first_group,
        Link::Array(number) => *number += first_array,
        Link::Soft(path) if path.starts_with('/') && !name.is_empty() => *path = format!("/{name}{path}"),
        Link::External { file, .. } => match led_to(archive, file) {
            Ok(moved) => *file = moved,
            // References must not lead where the file they are made of may not lead.
            Err(refused) => *link = Link::Unreadable(Unreadable::unsupported(refused.to_string())),
        },
        Link::Soft(_) | Link::Unreadable(_) => {}
    }
}
