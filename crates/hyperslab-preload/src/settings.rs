//! Settings from the environment, read once when the library is loaded, and the switch of `hyperslab.accelerate`.

use std::ffi::{OsStr, OsString};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::folders::Folder;

/// The default for `HYPERSLAB_MEMORY`.
const MEMORY_NBYTES: usize = 256 << 20;

/// What the environment says.
#[derive(Debug)]
#[allow(clippy::struct_excessive_bools)] // each is a variable of the environment
pub(crate) struct Settings {
    /// `HYPERSLAB_THREADS`: the most threads of a read; by default one for each processor that we may use.
    pub thread_count: Option<usize>,
    /// `HYPERSLAB_MEMORY`: the most bytes that we keep, or need for one read.
    pub memory_nbytes: usize,
    /// `HYPERSLAB_PREFETCH`: 0 if nothing is to be read ahead.
    pub prefetches: bool,
    /// `HYPERSLAB_LOCK`: 0 if threads may call a library at the same time although it was not made for that.
    pub locks: bool,
    /// `HYPERSLAB_WRITES`: 1 if we encode what the program writes.
    pub writes: bool,
    /// `HYPERSLAB_URLS`: 0 if names that are URLs are left to the libraries.
    pub urls: bool,
    /// `HYPERSLAB_SERVE_SMALL`: 1 if small reads are ours too, for tests.
    pub serves_small: bool,
    /// `HYPERSLAB_RUN_FOLDER`: where to leave counts for `hyperslab run`.
    pub folder: Option<Folder>,
    /// `HYPERSLAB_TRACE_FOLDER`: where to record accesses for `hyperslab trace`.
    pub trace_folder: Option<Folder>,
    /// `HYPERSLAB_TRACE_POSIX`: 1 if reads of files by libc are recorded too.
    pub records_bytes: bool,
    /// `HYPERSLAB_INSTEAD`: a list of files, each with the copy that is opened in its place.
    pub instead: Option<OsString>,
}

static SETTINGS: OnceLock<Settings> = OnceLock::new();

static IS_SERVING: AtomicBool = AtomicBool::new(true);

/// Whether reads are served at all: `hyperslab.accelerate` turns this on and off.
#[inline]
pub(crate) fn is_serving() -> bool {
    IS_SERVING.load(Ordering::Relaxed)
}

/// Begins to serve reads, or ends it.
pub(crate) fn set_serving(is_wanted: bool) {
    IS_SERVING.store(is_wanted, Ordering::Relaxed);
}

static IS_ENCODING: AtomicBool = AtomicBool::new(false);

/// Whether writes are encoded at all.
#[inline]
pub(crate) fn is_encoding() -> bool {
    settings().writes || IS_ENCODING.load(Ordering::Relaxed)
}

/// Begins to encode writes, or ends it.
pub(crate) fn set_encoding(is_wanted: bool) {
    IS_ENCODING.store(is_wanted, Ordering::Relaxed);
}

/// The settings.
pub(crate) fn settings() -> &'static Settings {
    SETTINGS.get_or_init(|| {
        let number = |name: &str| std::env::var_os(name).as_deref().and_then(OsStr::to_str).and_then(nbytes);
        let is = |name: &str, value: &str| std::env::var_os(name).is_some_and(|found| found == value);
        let text = |name: &str| std::env::var_os(name).filter(|text| !text.is_empty());
        let folder = |name: &str| text(name).map(Folder::new);
        let settings = Settings {
            thread_count: number("HYPERSLAB_THREADS").filter(|&count| count > 0),
            memory_nbytes: number("HYPERSLAB_MEMORY").unwrap_or(MEMORY_NBYTES),
            prefetches: !is("HYPERSLAB_PREFETCH", "0"),
            locks: !is("HYPERSLAB_LOCK", "0"),
            writes: is("HYPERSLAB_WRITES", "1"),
            urls: !is("HYPERSLAB_URLS", "0"),
            serves_small: is("HYPERSLAB_SERVE_SMALL", "1"),
            folder: folder("HYPERSLAB_RUN_FOLDER"),
            trace_folder: folder("HYPERSLAB_TRACE_FOLDER"),
            records_bytes: is("HYPERSLAB_TRACE_POSIX", "1"),
            instead: text("HYPERSLAB_INSTEAD"),
        };
        // A program that is only traced does its own reads.
        set_serving(settings.trace_folder.is_none() || settings.folder.is_some());
        settings
    })
}

/// A number, with `K`, `M` or `G` for 2¹⁰, 2²⁰ or 2³⁰. `hyperslab run` checks it beforehand.
fn nbytes(text: &str) -> Option<usize> {
    let text = text.trim();
    let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (digits, unit) = text.split_at(split);
    let shift = match unit.trim().to_ascii_uppercase().trim_end_matches("IB") {
        "" => 0,
        "K" => 10,
        "M" => 20,
        "G" => 30,
        _ => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}
