//! Files that archives keep open besides their own. All archives together keep as many as the process can spare. The
//! least recently used are closed first, and reopened on demand.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::contract::Store;
use crate::brief_lock::lock_briefly;

/// The share of the process's descriptors that we use at most. The program needs the others.
const SHARE: usize = 4;
/// The number of files if there is no limit.
const MOST: usize = 4096;
/// With fewer files, threads would keep opening and closing them.
const FEWEST: usize = 16;

/// All archives that hold files.
static HOLDERS: Mutex<Vec<Weak<HeldFiles>>> = Mutex::new(Vec::new());
static HELD_COUNT: AtomicUsize = AtomicUsize::new(0);
/// How many files have been opened so far. This serves as the clock for recent use, without a shared lock.
static TIME: AtomicU64 = AtomicU64::new(0);

struct Held {
    store: Arc<dyn Store>,
    used: u64,
}

/// The files of one archive that are open.
#[derive(Default)]
pub(super) struct HeldFiles {
    files: Mutex<HashMap<PathBuf, Held>>,
    is_known: AtomicBool,
}

impl HeldFiles {
    /// A file, if it is open.
    pub(super) fn get(&self, path: &Path) -> Option<Arc<dyn Store>> {
        let mut files = lock_briefly(&self.files)?;
        let held = files.get_mut(path)?;
        held.used = TIME.load(Ordering::Relaxed);
        Some(Arc::clone(&held.store))
    }

    /// Keeps a file open, if there is room.
    pub(super) fn hold(self: &Arc<Self>, path: &Path, store: &Arc<dyn Store>) {
        let most = most();
        if HELD_COUNT.load(Ordering::Relaxed) >= most {
            close_all_but(most / 4 * 3); // close several at once, because finding the oldest takes a scan
        }
        if HELD_COUNT.load(Ordering::Relaxed) >= most || !self.is_among_holders() {
            return;
        }
        let Some(mut files) = lock_briefly(&self.files) else { return };
        let used = TIME.fetch_add(1, Ordering::Relaxed) + 1;
        let before = files.insert(path.to_owned(), Held { store: Arc::clone(store), used });
        if before.is_none() {
            HELD_COUNT.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn is_among_holders(self: &Arc<Self>) -> bool {
        if self.is_known.load(Ordering::Relaxed) {
            return true;
        }
        let Some(mut holders) = lock_briefly(&HOLDERS) else { return false };
        if holders.len() == holders.capacity() {
            holders.retain(|holder| holder.strong_count() > 0);
        }
        if !self.is_known.swap(true, Ordering::Relaxed) {
            holders.push(Arc::downgrade(self));
        }
        true
    }

    /// Takes out what was used at or before `time`, but no more than `most`.
    fn take(&self, time: u64, most: usize) -> Vec<Arc<dyn Store>> {
        let Some(mut files) = lock_briefly(&self.files) else { return Vec::new() };
        let old = files.iter().filter(|(_, held)| held.used <= time).map(|(path, _)| path.clone());
        let old: Vec<PathBuf> = old.take(most).collect();
        let taken: Vec<_> = old.iter().filter_map(|path| Some(files.remove(path)?.store)).collect();
        HELD_COUNT.fetch_sub(taken.len(), Ordering::Relaxed);
        taken
    }
}

impl Drop for HeldFiles {
    fn drop(&mut self) {
        let files = self.files.get_mut().unwrap_or_else(std::sync::PoisonError::into_inner);
        HELD_COUNT.fetch_sub(files.len(), Ordering::Relaxed);
    }
}

/// Closes all files that nobody is reading: the process has no descriptor left.
pub(super) fn close_all() {
    close_all_but(0);
}

fn close_all_but(kept: usize) {
    let Some(holders) = lock_briefly(&HOLDERS) else { return };
    let holders: Vec<Arc<HeldFiles>> = holders.iter().filter_map(Weak::upgrade).collect(); // and the lock is free again
    let times = |holder: &Arc<HeldFiles>| {
        lock_briefly(&holder.files)
            .map_or_else(Vec::new, |files| files.values().map(|held| held.used).collect())
    };
    let mut times: Vec<u64> = holders.iter().flat_map(times).collect();
    let mut excess = times.len().saturating_sub(kept);
    let Some(last) = excess.checked_sub(1) else { return };
    let time = *times.select_nth_unstable(last).1;
    for holder in holders {
        let closed = holder.take(time, excess); // closed here, without a lock
        excess = excess.saturating_sub(closed.len());
    }
}

/// How many files may be kept open. Asked each time, because programs change their limit.
fn most() -> usize {
    #[cfg(unix)]
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    #[cfg(not(unix))]
    let limit: Option<u64> = Some(512);
    let limit = limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
    (limit / SHARE).clamp(FEWEST, MOST)
}
