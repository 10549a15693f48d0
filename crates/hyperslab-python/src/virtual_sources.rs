//! The sources of a virtual array: found, opened and parsed when the array is first used, each file once.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{
    Array, ChunkGrid, FileIndex, Link, Manifest, Orthogonal, PlanError, ReadPlan, SegmentIndex, Tree,
    Unreadable, resolve,
};
use hyperslab_engine::{OtherFile, Stores};

use crate::archive_file::{Bytes, Opened, SourceFile};
use crate::failure::Failure;
use crate::hdf5_places::{self, Naming};
use crate::lazy_indexes::check_found;
use crate::sought::Sought;

/// Virtual arrays whose sources are virtual arrays, at most so many deep.
const MOST_DEPTH: usize = 16;
/// Links that a path may lead over.
const MOST_HOPS: usize = 32;

/// Of so many segments no index is made: they are all looked at.
const FEW_SEGMENTS: usize = 64;

/// A virtual array as one with segments, and the files that these lie in.
pub(crate) struct Resolved {
    pub(crate) array: Array,
    pub(crate) stores: Stores,
    /// Finds the segments of a selection, unless there are none.
    index: Option<SegmentIndex>,
    /// Tells it, in the cache of chunks, from arrays of files and from one that another thread resolved.
    pub(crate) number: u64,
}

impl Resolved {
    pub(crate) fn new(array: Array, stores: Stores) -> Self {
        Self::numbered(array, stores, next_number())
    }

    /// Whose chunks in the cache are those of others with this number.
    pub(crate) fn numbered(array: Array, stores: Stores, number: u64) -> Self {
        let index = array.segments.as_deref().ok().and_then(SegmentIndex::new);
        Self { array, stores, index, number }
    }
}

/// The number of the next one, above those of arrays of files.
static NEXT_NUMBER: AtomicU64 = AtomicU64::new(1 << 32);

/// A number that no array of this process has.
fn next_number() -> u64 {
    NEXT_NUMBER.fetch_add(1, Ordering::Relaxed)
}

/// An array whose segments are known: as its file has it, resolved, or with the chunks that a read looked for.
#[derive(Clone)]
pub(crate) enum WholeArray {
    Stored(Arc<Opened>, usize),
    Virtual(Arc<Resolved>),
    Sought(Arc<Sought>),
}

impl WholeArray {
    /// An array of an open file, whose number was checked.
    pub(crate) fn of(file: &Arc<Opened>, number: usize) -> Result<Self, Problem> {
        let described = &file.tree.arrays[number];
        let segment_count = described.segments.as_ref().map_or(0, Vec::len);
        let is_indexed = segment_count > FEW_SEGMENTS && matches!(file.bytes, Bytes::Collection(_));
        if described.virtual_mappings.is_empty() && !file.is_lazy(number) && !is_indexed {
            return Ok(Self::Stored(Arc::clone(file), number));
        }
        file.resolved(number).map(Self::Virtual)
    }

    /// The same for other archives to show its chunks, which must be listed for that.
    pub(crate) fn listed(file: &Arc<Opened>, number: usize) -> Result<Self, Problem> {
        if matches!(file.bytes, Bytes::Keys(_)) {
            let feature = "combining or indexing Zarr hierarchies far away, whose chunks nobody lists,";
            return Err(Problem::from(Unreadable::unsupported(feature)));
        }
        Self::of(file, number)
    }

    pub(crate) fn array(&self) -> &Array {
        match self {
            Self::Stored(file, number) => &file.tree.arrays[*number],
            Self::Virtual(resolved) => &resolved.array,
            Self::Sought(sought) => &sought.array,
        }
    }

    /// The plan of a selection.
    pub(crate) fn plan(&self, selection: &Orthogonal) -> Result<ReadPlan, PlanError> {
        let index = match self {
            Self::Stored(..) | Self::Sought(_) => None,
            Self::Virtual(resolved) => resolved.index.as_ref(),
        };
        match index {
            None => ReadPlan::new(self.array(), selection),
            Some(index) => ReadPlan::indexed(self.array(), index, selection),
        }
    }

    pub(crate) fn stores(&self) -> &Stores {
        match self {
            Self::Stored(file, _) => &file.stores,
            Self::Virtual(resolved) => &resolved.stores,
            Self::Sought(sought) => &sought.stores,
        }
    }

    /// Tells arrays apart in the cache of chunks.
    pub(crate) fn number(&self) -> u64 {
        match self {
            Self::Stored(_, number) => *number as u64,
            Self::Virtual(resolved) => resolved.number,
            Self::Sought(sought) => sought.number,
        }
    }

    /// Each manifest once, however many segments show its chunks, with its grid.
    pub(crate) fn manifests(&self) -> Vec<(&Manifest, &ChunkGrid)> {
        let mut seen = HashSet::new();
        let segments = self.array().segments.as_deref().unwrap_or_default().iter();
        let new = segments.filter(|segment| seen.insert(Arc::as_ptr(&segment.manifest)));
        new.map(|segment| (&*segment.manifest, &segment.grid)).collect()
    }
}

/// Why a virtual array has no segments.
pub(crate) enum Problem {
    /// It is of a kind that we cannot read, or contradicts itself.
    Plan(PlanError),
    /// A source's file cannot be read.
    File(PathBuf, Box<Failure>),
}

impl From<Unreadable> for Problem {
    fn from(reason: Unreadable) -> Self {
        Self::Plan(reason.into())
    }
}

impl From<PlanError> for Problem {
    fn from(problem: PlanError) -> Self {
        Self::Plan(problem)
    }
}

/// Resolve an array of an open file.
pub(crate) fn resolved(opened: &Opened, number: usize) -> Result<Resolved, Problem> {
    let own = File { path: opened.path.clone(), tree: TreeOf::Opened(&opened.tree), numbers: Vec::new() };
    let mut sources = Sources {
        opened,
        places: own.path.canonicalize().map(|path| (path, 0)).into_iter().collect(),
        files: vec![own],
        names: HashMap::new(),
        arrays: HashMap::new(),
        resolving: Vec::new(),
        table: Vec::new(),
    };
    let array = sources.array((0, number))?;
    sources.arrays.clear(); // so that the array need not be copied
    if opened.indexes.is_some() {
        check_found(opened, number, &array)?;
    }
    let stores = opened.stores.with(sources.table);
    Ok(Resolved::new(Arc::unwrap_or_clone(array), stores))
}

/// A file's place in `Sources::files`, and an array's number in it.
type Place = (usize, usize);

/// A path's end.
#[derive(Clone, Copy)]
enum Node {
    Group(usize, usize),
    Array(Place),
}

#[derive(Clone)]
enum TreeOf<'o> {
    Opened(&'o Tree),
    Source(Arc<SourceFile>),
}

impl TreeOf<'_> {
    fn tree(&self) -> &Tree {
        match self {
            Self::Opened(tree) => tree,
            Self::Source(file) => &file.tree,
        }
    }
}

struct File<'o> {
    path: PathBuf,
    tree: TreeOf<'o>,
    /// The numbers, in the resolved array's table, of the files of its manifests; the opened file's are as they are.
    numbers: Vec<FileIndex>,
}

struct Sources<'o> {
    opened: &'o Opened,
    files: Vec<File<'o>>,
    /// Files by their canonical paths.
    places: HashMap<PathBuf, usize>,
    /// Files by the one that names them, and the name.
    names: HashMap<(usize, String), Option<usize>>,
    /// Arrays ready to be shown.
    arrays: HashMap<Place, Arc<Array>>,
    /// Virtual arrays that are being resolved, each a source of the one before.
    resolving: Vec<Place>,
    table: Vec<OtherFile>,
}

impl Sources<'_> {
    /// The source of a mapping of a virtual array in file `from`; `None` if there is no such file or array.
    fn source(&mut self, from: usize, file: &str, path: &str) -> Result<Option<Arc<Array>>, Problem> {
        let Some(file) = self.file(from, file)? else { return Ok(None) };
        match self.follow(Node::Group(file, 0), path, 0)? {
            Some(Node::Array(place)) => self.array(place).map(Some),
            Some(Node::Group(..)) => {
                let problem =
                    format!("{path} of {} is a group, not the source", self.files[file].path.display());
                Err(Problem::from(Unreadable::damaged(problem)))
            }
            None => Ok(None),
        }
    }

    /// An array with segments whose files have the table's numbers.
    fn array(&mut self, place: Place) -> Result<Arc<Array>, Problem> {
        if let Some(known) = self.arrays.get(&place) {
            return Ok(Arc::clone(known));
        }
        let (file, number) = place;
        let tree = self.files[file].tree.clone();
        let Some(described) = tree.tree().arrays.get(number) else {
            return Err(Problem::from(Unreadable::damaged("a source without description")));
        };
        let lazy = self.opened.indexes.as_ref().filter(|indexes| file == 0 && indexes.has(number));
        let array = if let Some(indexes) = lazy {
            indexes.array(self.opened, number)?
        } else if described.virtual_mappings.is_empty() {
            self.moved(file, described)?
        } else {
            self.enter(place)?;
            let resolved = resolve(described, &mut |name: &str, path: &str| self.source(file, name, path));
            self.resolving.pop();
            resolved?
        };
        let array = Arc::new(array);
        self.arrays.insert(place, Arc::clone(&array));
        Ok(array)
    }

    fn enter(&mut self, place: Place) -> Result<(), Problem> {
        if self.resolving.contains(&place) {
            let problem = "virtual arrays that are one another's source".to_owned();
            return Err(Problem::from(Unreadable::damaged(problem)));
        }
        if self.resolving.len() >= MOST_DEPTH {
            let feature = format!("a virtual array of virtual arrays, more than {MOST_DEPTH} deep,");
            return Err(Problem::from(Unreadable::unsupported(feature)));
        }
        self.resolving.push(place);
        Ok(())
    }

    /// An array that is not virtual, with the table's numbers for its files.
    fn moved(&self, file: usize, described: &Array) -> Result<Array, Problem> {
        let mut array = Array { attributes: Vec::new(), dimensions: None, ..described.clone() };
        if file == 0 {
            return Ok(array);
        }
        if array.element.has_pointers() {
            let feature = "a source in another file, with elements of any length,".to_owned();
            return Err(Problem::from(Unreadable::unsupported(feature)));
        }
        let numbers = &self.files[file].numbers;
        let number = |index: FileIndex| {
            let place = usize::try_from(index).ok();
            place.and_then(|place| numbers.get(place).copied()).unwrap_or(FileIndex::MAX)
        };
        for segment in array.segments.iter_mut().flatten() {
            segment.manifest = Arc::new(segment.manifest.moved(number, 0));
        }
        Ok(array)
    }

    /// The file that another one calls by some name, parsed; `None` if there is none.
    fn file(&mut self, from: usize, name: &str) -> Result<Option<usize>, Problem> {
        if name == "." {
            return Ok(Some(from));
        }
        if matches!(self.opened.bytes, Bytes::Remote(_)) {
            // A source that is not looked for must not pass for one that is not there.
            let feature = "a virtual array of a remote file with sources in other files";
            let is_own = Path::new(name).file_name() == self.opened.path.file_name();
            return if is_own {
                Ok(Some(from))
            } else {
                Err(Problem::from(Unreadable::unsupported(feature)))
            };
        }
        let key = (from, name.to_owned());
        if let Some(known) = self.names.get(&key) {
            return Ok(*known);
        }
        let own = &self.files[from].path;
        let found = hdf5_places::find(Naming::Virtual, own, name, &self.opened.reach);
        let found = found.map_err(|error| Problem::File(own.clone(), Box::new(Failure::Read(error))))?;
        let place = match found {
            Some(path) => {
                let canonical = path.canonicalize().unwrap_or_else(|_| path.clone());
                Some(self.parsed(path, canonical)?)
            }
            None => None,
        };
        self.names.insert(key, place);
        Ok(place)
    }

    fn parsed(&mut self, path: PathBuf, canonical: PathBuf) -> Result<usize, Problem> {
        if let Some(&place) = self.places.get(&canonical) {
            return Ok(place);
        }
        let fault = |failure| Problem::File(path.clone(), Box::new(failure));
        let source = self.opened.source(&path).map_err(fault)?;
        let others = source.tree.other_files.iter().map(|name| hdf5_places::raw(&path, name));
        let others = others.map(|path| OtherFile { path, version: None, is_padded: true });
        let own = OtherFile { path: path.clone(), version: Some(source.version), is_padded: false };
        let mut numbers = Vec::new();
        for other in std::iter::once(own).chain(others) {
            let number = self.opened.stores.next_number() + self.table.len();
            numbers.push(FileIndex::try_from(number).unwrap_or(FileIndex::MAX));
            self.table.push(other);
        }
        self.files.push(File { path, tree: TreeOf::Source(source), numbers });
        self.places.insert(canonical, self.files.len() - 1);
        Ok(self.files.len() - 1)
    }

    /// What a path leads to, from a group on, over links.
    fn follow(&mut self, from: Node, path: &str, hops: usize) -> Result<Option<Node>, Problem> {
        if hops > MOST_HOPS {
            return Ok(None); // links that lead in a circle lead nowhere
        }
        let mut here = match from {
            Node::Group(file, _) if path.starts_with('/') => Node::Group(file, 0),
            from => from,
        };
        for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
            let Node::Group(file, group) = here else { return Ok(None) };
            let tree = self.files[file].tree.clone();
            let links = tree.tree().groups.get(group).map_or(&[][..], |group| &group.links);
            let next = match links.iter().find(|(link, _)| link == name).map(|(_, link)| link) {
                None => None,
                Some(Link::Group(number)) => Some(Node::Group(file, *number)),
                Some(Link::Array(number)) => Some(Node::Array((file, *number))),
                Some(Link::Soft(path)) => self.follow(here, path, hops + 1)?,
                Some(Link::External { file: name, path }) => match self.file(file, name)? {
                    Some(file) => self.follow(Node::Group(file, 0), path, hops + 1)?,
                    None => None,
                },
                Some(Link::Unreadable(reason)) => {
                    let file = self.files[file].path.display();
                    let told = |said: &str| format!("{said} (the source {path} of {file})");
                    return Err(Problem::from(match reason {
                        Unreadable::Unsupported { feature } => Unreadable::unsupported(told(feature)),
                        Unreadable::Damaged { problem } => Unreadable::damaged(told(problem)),
                        Unreadable::Unfetched { problem } => Unreadable::Unfetched { problem: told(problem) },
                    }));
                }
            };
            let Some(next) = next else { return Ok(None) };
            here = next;
        }
        Ok(Some(here))
    }
}
