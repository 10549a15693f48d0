//! Reads ahead: while the program computes, a thread of ours does the read that comes next.
//!
//! The thread lives as long as one read. It reads as the program's own call would, and what it read is only used by a
//! call that asks for exactly this, after all the checks of a read, the file's included. Before a fork it ends, so that the
//! program has the threads that it knows.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use hyperslab_core::AxisSelection;
use hyperslab_libhdf5::{ArrayKey, Dataspace};

use crate::conversion::Change;
use crate::open_array::OpenArray;
use crate::pattern::regular;
use crate::settings::settings;
use crate::shared::Shared;
use crate::signals::{Blocked, end_when};

/// How many reads are done ahead at a time, of as many arrays.
const MOST: usize = 4;
/// How often, and for how many milliseconds each time, a fork waits for a thread to end.
const WAITS: usize = 1000;
const WAIT: Duration = Duration::from_millis(1);

/// What a read ahead is of.
struct Subject {
    key: ArrayKey,
    array: Arc<OpenArray>,
    axes: Vec<AxisSelection>,
    change: Change,
}

/// A read ahead.
struct Ahead {
    subject: Subject,
    nbytes: usize,
    /// Whether nobody wants it any more.
    is_dropped: Arc<AtomicBool>,
    /// The system's number of the thread; 0 before it begins.
    thread_number: Arc<AtomicI32>,
    thread: JoinHandle<Option<Vec<u8>>>,
}

#[derive(Default)]
struct Prefetches {
    all: Vec<Ahead>,
    /// Memory of an earlier one, as fresh memory takes time.
    spare: Vec<u8>,
}

static PREFETCHES: Shared<Prefetches> = Shared::new();
/// How many forks are going on.
static FORKS: AtomicUsize = AtomicUsize::new(0);

/// The most bytes that are read ahead.
fn most_nbytes() -> usize {
    if settings().prefetches { settings().memory_nbytes / 4 } else { 0 }
}

/// Whether a read of this size may begin while another one is copied.
pub(crate) fn has_room_for_two(nbytes: usize) -> bool {
    nbytes <= most_nbytes() / 2
}

/// Begins a read, unless it has begun, or there is too much already.
pub(crate) fn begin(
    key: ArrayKey,
    array: &Arc<OpenArray>,
    selected: Dataspace,
    change: Change,
    nbytes: usize,
) {
    if nbytes > most_nbytes() || FORKS.load(Ordering::Acquire) > 0 {
        return;
    }
    let (Some(axes), Some(mut prefetches)) = (regular(&selected), PREFETCHES.lock()) else { return };
    let subject = Subject { key, array: Arc::clone(array), axes, change };
    prefetches.drop_others(&subject);
    let total: usize = prefetches.all.iter().map(|one| one.nbytes).sum();
    let has_begun = prefetches.all.iter().any(|one| one.subject.is(&subject));
    if has_begun || prefetches.all.len() >= MOST || nbytes > most_nbytes() - total.min(most_nbytes()) {
        return;
    }
    let memory = std::mem::take(&mut prefetches.spare);
    let is_dropped = Arc::new(AtomicBool::new(false));
    let thread_number = Arc::new(AtomicI32::new(0));
    let (array, is_over, number) = (Arc::clone(array), Arc::clone(&is_dropped), Arc::clone(&thread_number));
    let work = move || {
        number.store(rustix::thread::gettid().as_raw_pid(), Ordering::Release);
        end_when(is_over);
        let mut elements = memory;
        let missing = nbytes.saturating_sub(elements.len());
        elements.try_reserve_exact(missing).ok()?;
        elements.resize(nbytes, 0);
        let is_read = array.file.is_unchanged()
            && array.read(&selected, change, &mut elements).is_ok()
            && array.file.is_unchanged();
        is_read.then_some(elements)
    };
    let _blocked = Blocked::new(); // the thread takes none of the program's signals
    if let Ok(thread) = Builder::new().spawn(work) {
        prefetches.all.push(Ahead { subject, nbytes, is_dropped, thread_number, thread });
    }
}

/// The elements of a read that was done ahead, if it was. Waits for it if it goes on.
pub(crate) fn take(
    key: ArrayKey,
    array: &Arc<OpenArray>,
    selected: &Dataspace,
    change: Change,
) -> Option<Vec<u8>> {
    if PREFETCHES.is_unused() {
        return None;
    }
    let subject = Subject { key, array: Arc::clone(array), axes: regular(selected)?, change };
    let found = {
        let mut prefetches = PREFETCHES.lock()?;
        let place = prefetches.all.iter().position(|one| one.subject.is(&subject))?;
        prefetches.all.swap_remove(place)
    };
    found.thread.join().ok().flatten()
}

/// Keeps memory for the next read ahead.
pub(crate) fn give_back(memory: Vec<u8>) {
    if let Some(mut prefetches) = PREFETCHES.lock().filter(|_| memory.capacity() <= most_nbytes()) {
        prefetches.spare = memory;
    }
}

impl Subject {
    fn is(&self, other: &Self) -> bool {
        self.key == other.key
            && Arc::ptr_eq(&self.array, &other.array)
            && self.axes == other.axes
            && self.change == other.change
    }
}

impl Prefetches {
    /// Drops what nobody will ask for any more: other reads of the same array, and those of closed files.
    fn drop_others(&mut self, subject: &Subject) {
        for one in &self.all {
            let is_other = one.subject.key == subject.key && !one.subject.is(subject);
            if is_other || !one.subject.array.file.is_unchanged() {
                one.is_dropped.store(true, Ordering::Relaxed);
            }
        }
        // A thread that still works counts as long as it does.
        self.all.retain(|one| !(one.is_dropped.load(Ordering::Relaxed) && one.thread.is_finished()));
    }
}

/// Stops all threads, for a fork or at the end. Neither allocates nor frees: others may hold the allocator's locks.
fn stop() {
    if PREFETCHES.is_unused() {
        return;
    }
    let Some(prefetches) = PREFETCHES.lock() else { return };
    for one in &prefetches.all {
        one.is_dropped.store(true, Ordering::Relaxed);
    }
    for one in &prefetches.all {
        for _ in 0..WAITS {
            let number = one.thread_number.load(Ordering::Acquire);
            // SAFETY: signal 0 only asks whether the thread exists.
            let exists =
                number == 0 || unsafe { libc::syscall(libc::SYS_tgkill, libc::getpid(), number, 0) } == 0;
            if !exists {
                break;
            }
            std::thread::sleep(WAIT);
        }
    }
}

/// The process is about to fork.
pub(crate) fn before_fork() {
    FORKS.fetch_add(1, Ordering::AcqRel);
    stop();
}

/// It has forked, and this is the parent.
pub(crate) fn after_fork() {
    FORKS.fetch_sub(1, Ordering::AcqRel);
}

/// It has forked, and this is the child, which has none of the threads.
pub(crate) fn forget() {
    PREFETCHES.forget();
    FORKS.store(0, Ordering::Release);
}

/// The process ends: nothing more is begun.
pub(crate) fn end() {
    FORKS.fetch_add(1, Ordering::AcqRel);
    stop();
}
