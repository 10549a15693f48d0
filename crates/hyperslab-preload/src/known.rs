//! What is known of the files and arrays that libhdf5 has open. All of it can be found out again: nobody waits for it.

use std::collections::HashMap;
use std::ffi::c_ulong;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use hyperslab_engine::ChunkCache;

use crate::comparison::Comparison;
use crate::libhdf5::Place;
use crate::open_array::OpenArray;
use crate::open_file::OpenFile;
use crate::pattern::Pattern;
use crate::reason::Reason;
use crate::settings::settings;
use crate::shared::Shared;

/// How many files and arrays are known at most.
const MOST_FILES: usize = 1 << 12;
const MOST_ARRAYS: usize = 64;
/// How many chunks all arrays have at most whose indexes are kept. An entry takes some 24 bytes.
const MOST_CHUNKS: u64 = 1 << 22;

/// Tells arrays of all libraries apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayKey {
    /// The library's number.
    pub library: usize,
    /// Where it has the array.
    pub place: Place,
}

/// How an array is stored, as libhdf5 tells it.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The shape of a chunk; that of some rows if it is not chunked.
    pub piece: Vec<u64>,
    /// How many chunks its grid has.
    pub chunk_count: u64,
    /// Whether it has filters.
    pub is_filtered: bool,
    /// Bytes of a decoded chunk, and of libhdf5's cache of chunks.
    pub chunk_nbytes: u64,
    pub cache_nbytes: u64,
    /// Bytes of a chunk for which libhdf5's cache is too small, so that each read of its own decodes the whole chunk; 0 if
    /// there are none.
    pub uncached_nbytes: u64,
}

/// What is known of an array.
pub(crate) struct KnownArray {
    key: ArrayKey,
    /// How it is stored, or why it is not ours.
    pub facts: Result<Facts, Reason>,
    /// Bytes that were asked of it so far.
    pub asked_nbytes: u64,
    /// How fast libhdf5 would be.
    pub comparison: Comparison,
    /// How its reads go on.
    pub pattern: Pattern,
    /// The parsed array, once reads were worth it, or why it is not ours.
    pub opened: Option<Result<Arc<OpenArray>, Reason>>,
}

struct KnownFile {
    /// The value of `WRITERS` when it was examined.
    examined: u64,
    found: Result<OpenFile, Reason>,
}

/// Everything known, the most recently used last.
pub(crate) struct Known {
    /// By the library and its number for the file.
    files: HashMap<(usize, c_ulong), KnownFile>,
    arrays: Vec<KnownArray>,
    /// Decoded chunks of all arrays that were read in part.
    cache: Arc<ChunkCache>,
}

impl Default for Known {
    fn default() -> Self {
        Self { files: HashMap::new(), arrays: Vec::new(), cache: new_cache() }
    }
}

/// An empty cache. It has three quarters of all memory; the last quarter is for reads ahead.
fn new_cache() -> Arc<ChunkCache> {
    Arc::new(ChunkCache::new(settings().memory_nbytes / 4 * 3))
}

static KNOWN: Shared<Known> = Shared::new();
/// Changes when a file may have been opened for writing, or closed.
static WRITERS: AtomicU64 = AtomicU64::new(0);

/// All that is known; `None` if it stays locked.
pub(crate) fn known() -> Option<MutexGuard<'static, Known>> {
    KNOWN.lock()
}

/// Begins anew in a forked child.
pub(crate) fn forget() {
    KNOWN.forget();
}

/// A file may have been opened for writing.
pub(crate) fn writers_changed() {
    WRITERS.fetch_add(1, Ordering::Release);
}

/// A libhdf5 was closed, with all its files: the numbers that it gave may mean other files from now on.
pub(crate) fn library_closed() {
    writers_changed();
    if !KNOWN.is_unused()
        && let Some(mut known) = known()
    {
        *known = Known::default();
    }
}

/// A file may have been closed: forgets arrays whose files are not open any more.
pub(crate) fn closed() {
    writers_changed();
    if KNOWN.is_unused() {
        return;
    }
    if let Some(mut known) = known() {
        known.forget_closed();
    }
}

impl Known {
    /// What was found out about a file; `None` if it has to be examined, for the first time or again.
    pub fn file(&self, key: ArrayKey) -> Option<Result<OpenFile, Reason>> {
        let writers = WRITERS.load(Ordering::Acquire);
        let file = self.files.get(&(key.library, key.place.file_number))?;
        let is_final = matches!(file.found, Err(reason) if is_final(reason));
        (is_final || file.examined == writers).then_some(file.found)
    }

    /// Keeps what was found out about a file. `writers` is what `writers` returned before it was examined.
    pub fn keep_file(
        &mut self,
        key: ArrayKey,
        writers: u64,
        found: Result<OpenFile, Reason>,
    ) -> Result<OpenFile, Reason> {
        let place = (key.library, key.place.file_number);
        let found = match (self.files.get(&place).map(|file| file.found), found) {
            (Some(Err(reason)), _) if is_final(reason) => Err(reason),
            (Some(Ok(before)), Ok(now)) if before != now => Err(Reason::Changed),
            (_, found) => found,
        };
        if self.files.len() >= MOST_FILES && !self.files.contains_key(&place) {
            self.files.retain(|_, file| matches!(file.found, Err(reason) if is_final(reason)));
            if self.files.len() >= MOST_FILES {
                return Err(Reason::Busy);
            }
        }
        self.files.insert(place, KnownFile { examined: writers, found });
        found
    }

    /// Where chunks are kept that are read in part.
    pub fn cache(&self) -> Arc<ChunkCache> {
        Arc::clone(&self.cache)
    }

    /// Forgets arrays whose files are not open any more. Programs close files in many ways, not all of which we see.
    pub fn forget_closed(&mut self) {
        let is_gone = |array: &KnownArray| match &array.opened {
            Some(Ok(opened)) => !opened.file.is_unchanged(),
            _ => false,
        };
        let before = self.arrays.len();
        self.arrays.retain(|array| !is_gone(array));
        if self.arrays.len() < before && !self.arrays.iter().any(|array| matches!(array.opened, Some(Ok(_))))
        {
            self.cache = new_cache();
        }
    }

    /// Forgets arrays that were used longest ago, until the chunk indexes of the others are small enough.
    pub fn make_room(&mut self) {
        let count = |array: &KnownArray| match (&array.opened, &array.facts) {
            (Some(Ok(_)), Ok(facts)) => facts.chunk_count,
            _ => 0,
        };
        let mut total = self.arrays.iter().map(count).fold(0_u64, u64::saturating_add);
        while total > MOST_CHUNKS && self.arrays.len() > 1 {
            total = total.saturating_sub(count(&self.arrays.remove(0)));
        }
    }

    /// What is known of an array, if anything is.
    pub fn find(&mut self, key: ArrayKey) -> Option<&mut KnownArray> {
        self.arrays.iter_mut().find(|array| array.key == key)
    }

    /// What is known of an array; `facts` are asked for if it is new.
    pub fn array(&mut self, key: ArrayKey, facts: impl FnOnce() -> Result<Facts, Reason>) -> &mut KnownArray {
        let array = match self.arrays.iter().position(|array| array.key == key) {
            Some(place) => self.arrays.remove(place),
            None => KnownArray {
                key,
                facts: facts(),
                asked_nbytes: 0,
                comparison: Comparison::default(),
                pattern: Pattern::default(),
                opened: None,
            },
        };
        if self.arrays.len() >= MOST_ARRAYS {
            self.arrays.remove(0);
        }
        self.arrays.push(array);
        let last = self.arrays.len() - 1;
        &mut self.arrays[last]
    }
}

/// Whether a file stays libhdf5's until it is opened again: what libhdf5 keeps of it in memory may be older than what the
/// file has, and only libhdf5 knows what its answer is.
fn is_final(reason: Reason) -> bool {
    matches!(reason, Reason::Changed | Reason::Writable)
}

/// Tells whether files may have been opened for writing since.
pub(crate) fn writers() -> u64 {
    WRITERS.load(Ordering::Acquire)
}
