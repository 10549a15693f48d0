//! Arrays of a file with versions. Their chunks are looked up when they are first read, and a small read looks up only
//! its own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use hyperslab_core::{
    Array, ChunkState, Manifest, Orthogonal, PlanError, ReadPlan, Segment, StoredChunk, Tree,
    VirtualMappings, shared_grid, shown_segment, some_chunk_slots,
};
use hyperslab_engine::{FileStore, ReadError, Store, Stores};
use hyperslab_parsers::hdf5::LazyIndex;
use hyperslab_parsers::{self as parsers, Pages, Policy};

use crate::error::{CallerError, Error, Problem};
use crate::resolved::Resolved;
use crate::sources::LocalSource;
use crate::tree_path::array_at;

/// Waits until no commit overwrites the file, and keeps commits out.
pub trait BetweenCommits: Send + Sync {
    /// Calls `read` while no commit overwrites the file.
    fn run(&self, read: &mut dyn FnMut()) -> Result<(), CallerError>;
}

/// At most this many chunks of a read are looked up one by one.
const FEW_CHUNKS: u64 = 8;
/// After this many small reads of one array, the next one looks up all chunks.
const MOST_SPARING_READS: u32 = 8;

/// What leads to the chunks of arrays, and what keeps commits out meanwhile.
pub(crate) struct LazyIndexes {
    /// By array number.
    indexes: Vec<Option<LazyIndex>>,
    /// The file that holds the arrays.
    store: Arc<FileStore>,
    between_commits: Arc<dyn BetweenCommits>,
    /// The number of small reads so far, by array number.
    sparing_reads: Mutex<HashMap<usize, u32>>,
}

impl LazyIndexes {
    pub(crate) fn new(
        indexes: Vec<Option<LazyIndex>>,
        store: Arc<FileStore>,
        between_commits: Arc<dyn BetweenCommits>,
    ) -> Self {
        Self { indexes, store, between_commits, sparing_reads: Mutex::default() }
    }

    /// Whether the chunks of an array are missing from the tree.
    pub(crate) fn has(&self, number: usize) -> bool {
        self.index(number).is_some()
    }

    fn index(&self, number: usize) -> Option<&LazyIndex> {
        self.indexes.get(number).and_then(Option::as_ref)
    }

    /// An array with its chunks.
    pub(crate) fn array(&self, tree: &Tree, number: usize) -> Result<Array, Error> {
        let described = &tree.arrays[number];
        let Some(index) = self.index(number) else { return Ok(described.clone()) };
        let found = self.between_commits(|pages| index.chunks(pages))?;
        Ok(match found.map(|chunks| with_chunks(described, chunks)) {
            Ok(array) => array.unwrap_or_else(|| described.clone()),
            Err(error) => Array { segments: Err(error.into()), ..described.clone() },
        })
    }

    /// An array with the chunks that a selection touches, if they are few and the array's index has not been read in
    /// full. `None` otherwise, and also if anything looks unsound: reading the full index then finds the fault.
    pub(crate) fn few(
        &self,
        tree: &Tree,
        stores: &Stores,
        number: usize,
        selection: &Orthogonal,
    ) -> Result<Option<Resolved>, Problem> {
        let Some((source, array)) = self.without_chunks(tree, number) else { return Ok(None) };
        let Some(touched) = touched(&array, selection)? else { return Ok(None) };
        if self.are_many(number) {
            return Ok(None);
        }
        let slots = if number == source {
            Some(touched.iter().map(|&index| (index, index)).collect())
        } else {
            slots_in_stack(tree, number, source, &array, &touched)
        };
        let Some(slots) = slots else { return Ok(None) };
        let mut wanted: Vec<u64> = slots.iter().map(|&(_, slot)| slot).collect();
        wanted.sort_unstable();
        wanted.dedup();
        let Some(index) = self.index(source) else { return Ok(None) };
        let found = self.between_commits(|pages| index.some_chunks(pages, &wanted))?;
        let mut found = found.unwrap_or_default();
        found.retain(|chunk| wanted.binary_search(&chunk.index).is_ok());
        if found.len() != wanted.len() {
            return Ok(None);
        }
        let manifest = Manifest::of_chunks(found);
        let shown = |&(index, slot): &(u64, u64)| match manifest.state(slot) {
            ChunkState::Stored { file, range, filter_mask } => {
                Some(StoredChunk { index, file, range, filter_mask })
            }
            _ => None,
        };
        let Some(array) = with_chunks(&array, slots.iter().filter_map(shown).collect()) else {
            return Ok(None);
        };
        Ok(Some(Resolved::numbered(array, stores.with(Vec::new()), number as u64)))
    }

    /// Fails if no selection of the array can be read, as far as that is known without its chunks. Returns whether it
    /// is known.
    pub(crate) fn check(&self, tree: &Tree, number: usize) -> Result<bool, PlanError> {
        let array = self.without_chunks(tree, number);
        array.map_or(Ok(false), |(_, array)| ReadPlan::check(&array).map(|()| true))
    }

    /// The array as a single grid without chunks, and the number of the array that holds its chunks: a stack of them,
    /// or itself. `None` for other arrays.
    fn without_chunks(&self, tree: &Tree, number: usize) -> Option<(usize, Array)> {
        let described = &tree.arrays[number];
        if self.has(number) {
            return Some((number, described.clone()));
        }
        let (name, path) = described.virtual_mappings.one_source()?;
        let is_numbered = described.virtual_mappings.iter().next().is_some_and(|one| one.is_numbered());
        if &**name != "." || is_numbered {
            return None;
        }
        let source = array_at(tree, path).filter(|&source| self.has(source))?;
        let stack = tree.arrays.get(source)?;
        let segment = shown_segment(&shared_grid(described, stack)?, stack, &[])?;
        let array = Array {
            shape: described.shape.clone(),
            max_shape: described.max_shape.clone(),
            element: described.element.clone(),
            fill: described.fill.clone(),
            is_chunked: true,
            notes: described.notes.clone(),
            role: described.role,
            segments: Ok(vec![segment]),
            virtual_mappings: VirtualMappings::NONE,
            dimensions: None,
            attributes: Vec::new(),
        };
        Some((source, array))
    }

    /// Counts the small reads of an array. Returns whether the next one should look up all chunks.
    fn are_many(&self, number: usize) -> bool {
        let Ok(mut counts) = self.sparing_reads.try_lock() else { return false };
        let count = counts.entry(number).or_default();
        *count = count.saturating_add(1);
        *count > MOST_SPARING_READS
    }

    /// Reads the file as it is now, while no commit overwrites it.
    fn between_commits<T>(
        &self,
        read: impl FnOnce(&mut Pages<'_>) -> Result<T, parsers::Error>,
    ) -> Result<Result<T, parsers::Error>, Error> {
        let (mut read, mut found) = (Some(read), None);
        let waited = self.between_commits.run(&mut || {
            let Some(read) = read.take() else { return };
            found = Some(self.store.now().map(|store| {
                let policy = Policy { first_nbytes: 0, ..Policy::LOCAL };
                read(&mut Pages::new(&LocalSource(&store), policy))
            }));
        });
        waited.map_err(Error::Caller)?;
        Ok(found.unwrap_or(Err(ReadError::Cancelled))?)
    }

    /// Fails if a virtual array lacks chunks that the file had when it was parsed, and the file has changed since:
    /// someone writes to it without our locks.
    pub(crate) fn check_found(&self, tree: &Tree, number: usize, found: &Array) -> Result<(), Error> {
        let asked = tree.arrays[number].virtual_mappings.len() as u64;
        let [segment] = found.segments.as_deref().unwrap_or_default() else { return Ok(()) };
        if segment.manifest.chunk_count() >= asked || self.store.now()?.version().keeps(&self.store.version())
        {
            return Ok(());
        }
        Err(ReadError::FileChanged { file: self.store.name().to_owned() }.into())
    }
}

/// For chunks of a virtual array, given by linear index: their slots in the stack.
fn slots_in_stack(
    tree: &Tree,
    number: usize,
    stack: usize,
    array: &Array,
    touched: &[u64],
) -> Option<Vec<(u64, u64)>> {
    let only = |array: &'_ Array| match array.segments.as_deref() {
        Ok([segment]) => Some(segment.grid.clone()),
        _ => None,
    };
    let count = only(tree.arrays.get(stack)?)?.chunk_count();
    let slots = some_chunk_slots(&tree.arrays[number].virtual_mappings, &only(array)?, touched)?;
    slots.iter().all(|&(_, slot)| slot < count).then_some(slots)
}

/// The linear indices of the chunks that a selection touches, for an array of one grid, in order; `None` if there are
/// many.
fn touched(array: &Array, selection: &Orthogonal) -> Result<Option<Vec<u64>>, PlanError> {
    let plan = ReadPlan::new(array, selection)?;
    if plan.read_count() > FEW_CHUNKS {
        return Ok(None);
    }
    let mut touched: Vec<u64> = plan.reads().map(|read| read.chunk).collect();
    touched.sort_unstable();
    touched.dedup();
    Ok(Some(touched))
}

/// An array of one grid with these chunks.
fn with_chunks(array: &Array, chunks: Vec<StoredChunk>) -> Option<Array> {
    let [segment] = array.segments.as_deref().ok()? else { return None };
    let manifest = Arc::new(Manifest::of_chunks(chunks));
    let segments = Ok(vec![Segment { manifest, ..segment.clone() }]);
    Some(Array { segments, attributes: Vec::new(), ..array.clone() })
}
