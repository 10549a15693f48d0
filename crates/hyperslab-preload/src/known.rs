//! What is known of the arrays that libhdf5 has open. All of it can be found out again: nobody waits for it.

use std::sync::{Arc, MutexGuard};

use hyperslab_engine::ChunkCache;
use hyperslab_libhdf5::ArrayKey;

use crate::comparison::Comparison;
use crate::open_array::{Facts, OpenArray};
use crate::pattern::Pattern;
use crate::reason::Reason;
use crate::settings::settings;
use crate::shared::{OverFork, Shared};
use crate::writers::writers_changed;
use crate::{far, files};

/// How many arrays are known at most.
const MOST_ARRAYS: usize = 64;
/// How many chunks all arrays have at most whose indexes are kept. An entry takes some 24 bytes.
const MOST_CHUNKS: u64 = 1 << 22;

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
    /// The array as the process had parsed it that forked this one.
    inherited: Option<Arc<OpenArray>>,
}

/// Everything known, the most recently used last.
pub(crate) struct Known {
    arrays: Vec<KnownArray>,
    /// Decoded chunks of all arrays that were read in part.
    cache: Arc<ChunkCache>,
}

impl Default for Known {
    fn default() -> Self {
        Self { arrays: Vec::new(), cache: new_cache() }
    }
}

/// An empty cache. It has three quarters of all memory; the last quarter is for reads ahead. If files at URLs are open, what was
/// fetched of them has a quarter too.
fn new_cache() -> Arc<ChunkCache> {
    let quarters = if far::has_any() { 2 } else { 3 };
    Arc::new(ChunkCache::new(settings().memory_nbytes / 4 * quarters))
}

/// Makes room for what is fetched from URLs.
pub(crate) fn share_memory() {
    if !KNOWN.is_unused()
        && let Some(mut known) = known()
    {
        *known = Known::default();
    }
}

static KNOWN: Shared<Known> = Shared::new();

/// All that is known; `None` if it stays locked.
pub(crate) fn known() -> Option<MutexGuard<'static, Known>> {
    KNOWN.lock()
}

thread_local! {
    static HELD: OverFork<Known> = const { OverFork::new() };
}

/// The process is about to fork.
pub(crate) fn before_fork() {
    files::before_fork();
    HELD.with(|held| held.hold(&KNOWN));
}

/// It has forked, and this is the parent.
pub(crate) fn after_fork() {
    drop(HELD.with(OverFork::take));
    files::after_fork();
}

/// It has forked, and this is the child. It begins anew, since what its parent parsed may have locks that are held by
/// threads which it does not have. But it keeps what libhdf5 would have in its cache.
pub(crate) fn forked() {
    match HELD.with(OverFork::take) {
        Some(mut known) => known.inherit(),
        None => KNOWN.forget(),
    }
    files::forked();
}

/// A libhdf5 was closed, with all its files: the numbers that it gave may mean other files from now on.
pub(crate) fn library_closed() {
    writers_changed();
    files::forget_all();
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
    /// Where chunks are kept that are read in part.
    pub fn cache(&self) -> Arc<ChunkCache> {
        Arc::clone(&self.cache)
    }

    /// What this process had read of an array, or the one that forked it.
    pub fn last_opened(&mut self, key: ArrayKey) -> Option<Arc<OpenArray>> {
        let array = self.find(key)?;
        let opened = array.opened.as_ref().and_then(|opened| opened.as_ref().ok());
        opened.or(array.inherited.as_ref()).map(Arc::clone)
    }

    fn inherit(&mut self) {
        self.cache = new_cache();
        for array in &mut self.arrays {
            let opened = array.opened.take().and_then(Result::ok);
            array.inherited = opened.or(array.inherited.take());
            (array.comparison, array.pattern) = (Comparison::default(), Pattern::default());
            array.asked_nbytes = 0;
        }
    }

    /// Forgets arrays whose files are not open any more. Programs close files in many ways, not all of which we see.
    pub fn forget_closed(&mut self) {
        let is_gone = |array: &KnownArray| match &array.opened {
            Some(Ok(opened)) => !opened.file.is_open(),
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
                inherited: None,
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
