//! The sources of a virtual array. Each file is found, opened and parsed once, when the array is first used.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use hyperslab_core::{Array, FileIndex, Link, Tree, Unreadable, resolve};
use hyperslab_engine::{FileVersion, OtherFile, Stores};

use crate::error::{Error, Problem};
use crate::format::Parsed;
use crate::hdf5_search;
use crate::lazy_indexes::LazyIndexes;
use crate::resolved::Resolved;
use crate::source_resolver::SourceResolver;
use crate::tree_path::{self, MOST_HOPS};

/// How deeply virtual arrays may have virtual arrays as sources.
const MOST_DEPTH: usize = 16;

/// A file that is the source of other files' arrays, as it was when it was parsed. It is not kept open.
struct SourceFile {
    tree: Tree,
    version: FileVersion,
}

/// The files of virtual arrays' sources, once they have been parsed.
#[derive(Default)]
pub(crate) struct SourceFiles(Mutex<HashMap<PathBuf, Arc<SourceFile>>>);

impl SourceFiles {
    /// A parsed file; parses it if it was not parsed before. Nobody waits for a lock: see `Archive::resolved`.
    fn parsed(&self, path: &Path, resolver: &SourceResolver) -> Result<Arc<SourceFile>, Error> {
        let known = self.0.try_lock().ok().and_then(|known| known.get(path).cloned());
        if let Some(known) = known {
            return Ok(known);
        }
        let opened = Arc::new(resolver.open_file(path)?);
        let Parsed { store, tree, .. } = Parsed::of(path, opened, &[], false, resolver.allowed())?;
        let found = Arc::new(SourceFile { tree, version: store.version() });
        if let Ok(mut known) = self.0.try_lock() {
            known.insert(path.to_owned(), Arc::clone(&found));
        }
        Ok(found)
    }
}

/// The file whose virtual arrays are resolved.
#[derive(Clone, Copy)]
pub(crate) struct VirtualFile<'o> {
    pub(crate) path: &'o Path,
    pub(crate) tree: &'o Tree,
    pub(crate) stores: &'o Stores,
    pub(crate) resolver: &'o SourceResolver,
    pub(crate) indexes: Option<&'o LazyIndexes>,
    pub(crate) sources: &'o SourceFiles,
    pub(crate) is_far: bool,
}

/// Resolves an array of an open file.
pub(crate) fn resolved(opened: VirtualFile<'_>, number: usize) -> Result<Resolved, Problem> {
    let own = File { path: opened.path.to_owned(), tree: TreeOf::Opened(opened.tree), numbers: Vec::new() };
    let mut resolver = VirtualArrayResolver {
        opened,
        positions: own.path.canonicalize().map(|path| (path, 0)).into_iter().collect(),
        files: vec![own],
        names: HashMap::new(),
        arrays: HashMap::new(),
        resolving: Vec::new(),
        table: Vec::new(),
    };
    let array = resolver.array((0, number))?;
    resolver.arrays.clear(); // drops the other owner, to save a copy of the array
    if let Some(indexes) = opened.indexes {
        indexes.check_found(opened.tree, number, &array)?;
    }
    let stores = opened.stores.with(resolver.table);
    Ok(Resolved::new(Arc::unwrap_or_clone(array), stores))
}

/// The position of a file in `VirtualArrayResolver::files`, and the number of an array in it.
type ArrayKey = (usize, usize);

/// What a path leads to.
#[derive(Clone, Copy)]
enum Node {
    Group(usize, usize),
    Array(ArrayKey),
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
    /// For the files of its manifests: their numbers in the resolved array's table. The opened file's numbers do not
    /// change.
    numbers: Vec<FileIndex>,
}

/// Resolves one array and the sources that it shows.
struct VirtualArrayResolver<'o> {
    opened: VirtualFile<'o>,
    files: Vec<File<'o>>,
    /// Positions of files, by canonical path.
    positions: HashMap<PathBuf, usize>,
    /// Files, by the file that names them and the name.
    names: HashMap<(usize, String), Option<usize>>,
    /// Arrays that are ready to show.
    arrays: HashMap<ArrayKey, Arc<Array>>,
    /// Virtual arrays that are being resolved. Each is a source of the one before it.
    resolving: Vec<ArrayKey>,
    table: Vec<OtherFile>,
}

impl VirtualArrayResolver<'_> {
    /// The source of a mapping of a virtual array in file `from`; `None` if there is no such file or array.
    fn source(&mut self, from: usize, file: &str, path: &str) -> Result<Option<Arc<Array>>, Problem> {
        let Some(file) = self.file(from, file)? else { return Ok(None) };
        match self.follow(Node::Group(file, 0), path, 0)? {
            Some(Node::Array(key)) => self.array(key).map(Some),
            Some(Node::Group(..)) => {
                let problem =
                    format!("{path} of {} is a group, not the source", self.files[file].path.display());
                Err(Problem::from(Unreadable::damaged(problem)))
            }
            None => Ok(None),
        }
    }

    /// An array whose segments use the table's file numbers.
    fn array(&mut self, key: ArrayKey) -> Result<Arc<Array>, Problem> {
        if let Some(known) = self.arrays.get(&key) {
            return Ok(Arc::clone(known));
        }
        let (file, number) = key;
        let tree = self.files[file].tree.clone();
        let Some(described) = tree.tree().arrays.get(number) else {
            return Err(Problem::from(Unreadable::damaged("a source without description")));
        };
        let lazy = self.opened.indexes.filter(|indexes| file == 0 && indexes.has(number));
        let array = if let Some(indexes) = lazy {
            indexes.array(self.opened.tree, number)?
        } else if described.virtual_mappings.is_empty() {
            self.moved(file, described)?
        } else {
            self.enter(key)?;
            let resolved = resolve(described, &mut |name: &str, path: &str| self.source(file, name, path));
            self.resolving.pop();
            resolved?
        };
        let array = Arc::new(array);
        self.arrays.insert(key, Arc::clone(&array));
        Ok(array)
    }

    fn enter(&mut self, key: ArrayKey) -> Result<(), Problem> {
        if self.resolving.contains(&key) {
            let problem = "virtual arrays that are one another's source".to_owned();
            return Err(Problem::from(Unreadable::damaged(problem)));
        }
        if self.resolving.len() >= MOST_DEPTH {
            let feature = format!("a virtual array of virtual arrays, more than {MOST_DEPTH} deep,");
            return Err(Problem::from(Unreadable::unsupported(feature)));
        }
        self.resolving.push(key);
        Ok(())
    }

    /// An array that is not virtual, with the table's file numbers.
    fn moved(&self, file: usize, described: &Array) -> Result<Array, Problem> {
        let mut array = Array { attributes: Vec::new(), dimensions: None, ..described.clone() };
        if file == 0 {
            return Ok(array);
        }
        if array.element.has_pointers() {
            let feature = "a source in another file, with elements of variable length,".to_owned();
            return Err(Problem::from(Unreadable::unsupported(feature)));
        }
        let numbers = &self.files[file].numbers;
        let number = |index: FileIndex| {
            let position = usize::try_from(index).ok();
            position.and_then(|position| numbers.get(position).copied()).unwrap_or(FileIndex::MAX)
        };
        for segment in array.segments.iter_mut().flatten() {
            segment.manifest = Arc::new(segment.manifest.moved(number, 0));
        }
        Ok(array)
    }

    /// The file that another file calls `name`, parsed; `None` if there is none.
    fn file(&mut self, from: usize, name: &str) -> Result<Option<usize>, Problem> {
        if name == "." {
            return Ok(Some(from));
        }
        if self.opened.is_far {
            // We do not look for these sources, so we must not treat them as missing.
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
        let found = self.opened.resolver.virtual_source(own, name)?;
        let position = match found {
            Some(path) => {
                let canonical = path.canonicalize().unwrap_or_else(|_| path.clone());
                Some(self.parsed(path, canonical)?)
            }
            None => None,
        };
        self.names.insert(key, position);
        Ok(position)
    }

    fn parsed(&mut self, path: PathBuf, canonical: PathBuf) -> Result<usize, Problem> {
        if let Some(&position) = self.positions.get(&canonical) {
            return Ok(position);
        }
        let source = self.opened.sources.parsed(&path, self.opened.resolver)?;
        let others = source.tree.other_files.iter().map(|name| hdf5_search::raw(&path, name));
        let others = others.map(|path| OtherFile { path, version: None, is_padded: true });
        let own = OtherFile { path: path.clone(), version: Some(source.version), is_padded: false };
        let mut numbers = Vec::new();
        for other in std::iter::once(own).chain(others) {
            let number = self.opened.stores.next_number() + self.table.len();
            numbers.push(FileIndex::try_from(number).unwrap_or(FileIndex::MAX));
            self.table.push(other);
        }
        self.files.push(File { path, tree: TreeOf::Source(source), numbers });
        self.positions.insert(canonical, self.files.len() - 1);
        Ok(self.files.len() - 1)
    }

    /// What a path from a group leads to, following links.
    fn follow(&mut self, from: Node, path: &str, hops: usize) -> Result<Option<Node>, Problem> {
        if hops > MOST_HOPS {
            return Ok(None); // a circle of links leads nowhere
        }
        let mut here = match from {
            Node::Group(file, _) if path.starts_with('/') => Node::Group(file, 0),
            from => from,
        };
        for name in tree_path::names(path) {
            let Node::Group(file, group) = here else { return Ok(None) };
            let tree = self.files[file].tree.clone();
            let next = match tree_path::link(tree.tree(), group, name) {
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
