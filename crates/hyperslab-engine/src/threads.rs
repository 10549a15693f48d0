//! What threads keep between reads, and how many may help at a time.
//!
//! Helpers live as long as one read, so a forked process has nothing to repair. The calling thread always works too, so
//! a read goes on even if all helpers are busy elsewhere.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread::{Builder, ScopedJoinHandle};

use crate::brief_lock::lock_briefly;
use crate::codecs::Scratch;

/// A thread's memory larger than this is freed after a read.
const MOST_KEPT_NBYTES: usize = 8 << 20;
/// How many thread memories are kept for later reads.
const MOST_KEPT: usize = 16;

/// What one thread needs to fetch and decode.
#[derive(Default)]
pub(crate) struct ThreadMemory {
    /// For decoding.
    pub scratch: Scratch,
    /// For fetched bytes.
    pub fetched: Vec<u8>,
}

/// What threads leave for later ones.
pub struct Kept<T>(Mutex<Vec<T>>);

impl<T: Default> Kept<T> {
    /// Nothing yet.
    #[allow(clippy::new_without_default)] // it is made for a static
    pub const fn new() -> Self {
        Self(Mutex::new(Vec::new()))
    }

    /// What another thread left, or a new one.
    pub fn take(&self) -> T {
        lock_briefly(&self.0).and_then(|mut kept| kept.pop()).unwrap_or_default()
    }

    /// Leaves it, unless it has so many bytes that they had better be freed.
    pub fn leave(&self, one: T, nbytes: usize) {
        if nbytes <= MOST_KEPT_NBYTES
            && let Some(mut kept) = lock_briefly(&self.0)
            && kept.len() < MOST_KEPT
        {
            kept.push(one);
        }
    }
}

static KEPT: Kept<ThreadMemory> = Kept::new();

impl ThreadMemory {
    /// The memory that another read left, or a new one.
    pub fn take() -> Self {
        KEPT.take()
    }

    /// Leaves the memory for the next read, unless it has grown large. `decoded_nbytes` is the largest chunk it
    /// decoded.
    pub fn leave(self, decoded_nbytes: usize) {
        let nbytes = decoded_nbytes.max(self.fetched.len());
        KEPT.leave(self, nbytes);
    }
}

/// Waits until helpers have ended as threads of the system, and not only finished their work, as a scope does: a program
/// that forks after a read has only the threads that it knows. A helper's panic goes on here.
pub(crate) fn join_all(helpers: Vec<ScopedJoinHandle<'_, ()>>) {
    for helper in helpers {
        if let Err(panic) = helper.join() {
            std::panic::resume_unwind(panic);
        }
    }
}

/// Calls `lead` here, and `help` in so many other threads with their numbers, from 1. Where no more threads can be started,
/// those that there are do all. All have ended when this returns.
pub fn with_helpers<T>(count: usize, help: impl Fn(usize) + Sync, lead: impl FnOnce() -> T) -> T {
    std::thread::scope(|scope| {
        let help = &help;
        let start = |number| Builder::new().spawn_scoped(scope, move || help(number)).ok();
        let started = (1..=count).filter_map(start).collect();
        let led = lead();
        join_all(started);
        led
    })
}

/// Shares items of `width` elements among threads: `work` gets the number of the first item of a share, and the share.
pub fn in_shares<T: Send>(
    elements: &mut [T],
    width: usize,
    thread_count: usize,
    work: impl Fn(usize, &mut [T]) + Sync,
) {
    let width = width.max(1);
    let share_count = (elements.len() / width).div_ceil(thread_count.max(1)).max(1);
    let shares = Mutex::new(elements.chunks_mut(share_count * width).enumerate());
    let take = || {
        let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((number, share)) = next() {
            work(number * share_count, share);
        }
    };
    with_helpers(thread_count.saturating_sub(1), |_| take(), take);
}

/// How many threads a read uses by default: the cores of this process, asked for once.
pub fn default_thread_count() -> usize {
    static CORES: AtomicUsize = AtomicUsize::new(0); // 0: not asked yet; two threads that ask get the same
    match CORES.load(Ordering::Relaxed) {
        0 => {
            let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
            CORES.store(cores, Ordering::Relaxed);
            cores
        }
        cores => cores,
    }
}

/// Helpers at work in this process: the process number in the upper half, their count in the lower.
static HELPERS: AtomicU64 = AtomicU64::new(0);

/// Helpers that a read was granted.
pub(crate) struct Helpers(u64);

impl Helpers {
    /// At most `wanted`; fewer while other reads have helpers.
    pub fn grant(wanted: usize) -> Self {
        let most = wanted.max(default_thread_count()) as u64;
        let grant = |busy: u64| most.saturating_sub(busy).min(wanted as u64);
        let before = change(|busy| busy + grant(busy));
        Self(grant(before))
    }

    /// How many.
    pub fn count(&self) -> u64 {
        self.0
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        change(|busy| busy.saturating_sub(self.0));
    }
}

/// Changes the count of helpers. Returns the count before. A forked process starts with none.
fn change(next: impl Fn(u64) -> u64) -> u64 {
    let process = u64::from(std::process::id()) << 32;
    let busy = |packed: u64| if packed & !0xffff_ffff == process { packed & 0xffff_ffff } else { 0 };
    let update = |packed| Some(process | next(busy(packed)));
    let before = HELPERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, update);
    before.map_or(0, busy)
}
