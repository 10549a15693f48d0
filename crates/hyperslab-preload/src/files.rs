//! What is known of the files that libhdf5 has open: what they were when it opened them, and whether they are ours to read.
//!
//! A forked child knows it too: it must not forget that a file has changed. So the thread that forks holds the lock
//! meanwhile.

use std::collections::HashMap;
use std::ffi::c_ulong;
use std::sync::MutexGuard;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab_libhdf5::ArrayKey;

use crate::open_file::OpenFile;
use crate::reason::Reason;
use crate::shared::{OverFork, Shared};
use crate::writers::writers;

/// How many files are known at most.
const MOST_FILES: usize = 1 << 12;

#[derive(Clone, Copy)]
struct KnownFile {
    /// What `writers` returned when it was examined; `None` if it was only opened.
    examined: Option<u64>,
    /// What it was when it was opened, or first read if we did not see that.
    file: Option<OpenFile>,
    /// Why it is libhdf5's.
    refused: Option<Reason>,
}

/// By the library, and its number for the file.
#[derive(Default)]
pub(crate) struct Files(HashMap<(usize, c_ulong), KnownFile>);

static FILES: Shared<Files> = Shared::new();
/// Whether the process is a child that does not know what its parent knew.
static IS_FORGETFUL: AtomicBool = AtomicBool::new(false);

thread_local! {
    static HELD: OverFork<Files> = const { OverFork::new() };
}

/// All that is known of files; `None` if it stays locked.
pub(crate) fn files() -> Option<MutexGuard<'static, Files>> {
    FILES.lock()
}

/// A library was closed, with all its files: the numbers that it gave may mean other files from now on.
pub(crate) fn forget_all() {
    if !FILES.is_unused()
        && let Some(mut files) = files()
    {
        files.0.clear();
    }
}

/// The process is about to fork.
pub(crate) fn before_fork() {
    HELD.with(|held| held.hold(&FILES));
}

/// It has forked, and this is the parent.
pub(crate) fn after_fork() {
    drop(HELD.with(OverFork::take));
}

/// It has forked, and this is the child.
pub(crate) fn forked() {
    if HELD.with(OverFork::take).is_none() && !FILES.is_unused() {
        FILES.forget();
        IS_FORGETFUL.store(true, Ordering::Release);
    }
}

impl Files {
    /// What was found out about a file; `None` if it has to be examined, for the first time or again.
    pub fn get(&self, key: ArrayKey) -> Option<Result<OpenFile, Reason>> {
        let Some(file) = self.0.get(&place(key)) else {
            return IS_FORGETFUL.load(Ordering::Acquire).then_some(Err(Reason::Busy));
        };
        match (file.refused, file.file) {
            (Some(reason), _) if is_final(reason) => Some(Err(reason)),
            _ if file.examined != Some(writers()) => None,
            (Some(reason), _) => Some(Err(reason)),
            (None, found) => found.map(Ok),
        }
    }

    /// A file was opened. If the library had it open already, what it was then counts.
    pub fn opened(&mut self, key: ArrayKey, file: OpenFile) {
        if self.has_room(key) {
            let new = KnownFile { examined: None, file: Some(file), refused: None };
            self.0.entry(place(key)).or_insert(new);
        }
    }

    /// Keeps what was found out about a file. `writers` is what `writers` returned before it was examined.
    pub fn keep(
        &mut self,
        key: ArrayKey,
        writers: u64,
        found: Result<OpenFile, Reason>,
    ) -> Result<OpenFile, Reason> {
        let known = self.0.get(&place(key)).copied();
        let before = known.and_then(|known| known.file);
        let found = match (known.and_then(|known| known.refused), before, found) {
            (Some(reason), ..) if is_final(reason) => Err(reason),
            (_, Some(before), Ok(now)) if now.keeps(&before) => Ok(before),
            (_, Some(_), Ok(_)) => Err(Reason::Changed),
            (_, _, found) => found,
        };
        if !self.has_room(key) {
            return Err(Reason::Busy);
        }
        let (file, refused) = (before.or(found.ok()), found.err());
        self.0.insert(place(key), KnownFile { examined: Some(writers), file, refused });
        found
    }

    /// Whether there is room for a file, once those that are closed are forgotten.
    fn has_room(&mut self, key: ArrayKey) -> bool {
        if self.0.len() >= MOST_FILES && !self.0.contains_key(&place(key)) {
            self.0.retain(|_, known| {
                let is_refused = known.refused.is_some_and(is_final);
                known.file.map_or(is_refused, |file| file.is_open())
            });
        }
        self.0.len() < MOST_FILES || self.0.contains_key(&place(key))
    }
}

fn place(key: ArrayKey) -> (usize, c_ulong) {
    (key.library, key.place.file_number)
}

/// Whether a file stays libhdf5's until it is opened again: what libhdf5 keeps of it in memory may be older than what the
/// file has, and only libhdf5 knows what its answer is.
fn is_final(reason: Reason) -> bool {
    matches!(reason, Reason::Changed | Reason::Writable)
}
