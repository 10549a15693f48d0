//! What is known of the files and arrays that libhdf5 has open. All of it can be found out again: nobody waits for it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, MutexGuard};

use crate::comparison::Comparison;
use crate::libhdf5::Place;
use crate::open_array::OpenArray;
use crate::open_file::OpenFile;
use crate::pattern::Pattern;
use crate::reason::Reason;
use crate::settings::settings;
use crate::shared::Shared;

/// How many files and arrays are known at most.
const MOST_FILES: usize = 64;
const MOST_ARRAYS: usize = 16;

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
    library: usize,
    number: std::ffi::c_ulong,
    /// The value of `WRITERS` when it was examined.
    examined: u64,
    found: Result<OpenFile, Reason>,
}

/// Everything known, the most recently used last.
#[derive(Default)]
pub(crate) struct Known {
    files: Vec<KnownFile>,
    arrays: Vec<KnownArray>,
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
    let Some(mut known) = known() else { return };
    let gone = |array: &KnownArray| match &array.opened {
        Some(Ok(opened)) => !opened.file.is_unchanged(),
        _ => false,
    };
    known.arrays.retain(|array| !gone(array));
}

impl Known {
    /// What was found out about a file; `None` if it has to be examined, for the first time or again.
    pub fn file(&self, key: ArrayKey) -> Option<Result<OpenFile, Reason>> {
        let writers = WRITERS.load(Ordering::Acquire);
        let file = self.files.iter().find(|file| file.is(key))?;
        let is_final = file.found == Err(Reason::Changed);
        (is_final || file.examined == writers).then_some(file.found)
    }

    /// Keeps what was found out about a file. `writers` is what `writers` returned before it was examined.
    pub fn keep_file(
        &mut self,
        key: ArrayKey,
        writers: u64,
        found: Result<OpenFile, Reason>,
    ) -> Result<OpenFile, Reason> {
        let before = self.files.iter().position(|file| file.is(key)).map(|place| self.files.remove(place));
        let found = match (before.map(|file| file.found), found) {
            (Some(Ok(before)), Ok(now)) if before != now => Err(Reason::Changed),
            (_, found) => found,
        };
        if self.files.len() >= MOST_FILES {
            self.files.remove(0);
        }
        let (library, number) = (key.library, key.place.file_number);
        self.files.push(KnownFile { library, number, examined: writers, found });
        found
    }

    /// The bytes of decoded chunks that another array may keep: half of what those before it left, of three quarters of
    /// all memory. The last quarter is for reads ahead.
    pub fn cache_nbytes(&self) -> usize {
        let opened = self.arrays.iter().filter_map(|array| array.opened.as_ref()?.as_ref().ok());
        let taken: usize = opened.map(|opened| opened.cache_nbytes).sum();
        (settings().memory_nbytes / 4 * 3).saturating_sub(taken) / 2
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

impl KnownFile {
    fn is(&self, key: ArrayKey) -> bool {
        (self.library, self.number) == (key.library, key.place.file_number)
    }
}

/// Tells whether files may have been opened for writing since.
pub(crate) fn writers() -> u64 {
    WRITERS.load(Ordering::Acquire)
}
