//! Counts of this process, written where `hyperslab run` adds them up: at the first read that we serve, several times a
//! second while the program reads, and at the end.
//!
//! The file is opened and closed each time, as programs may close descriptors that they do not know. Nothing here
//! allocates or waits, so it also works in a signal handler and after a fork.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::os::unix::ffi::OsStrExt;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use rustix::time::ClockId;

use crate::folders::Folder;
use crate::limits::file_limit;
use crate::reason::Reason;
use crate::settings::settings;
use crate::write_reason::Left;

/// "HSRUN" and the version of the record.
const MAGIC: u64 = u64::from_le_bytes(*b"HSRUN\0\0\x08");
const FIRST_REASON: usize = 13;
const FIRST_WRITE: usize = FIRST_REASON + 2 * Reason::COUNT;
const FIRST_LEFT: usize = FIRST_WRITE + 5;
const FIRST_FAR: usize = FIRST_LEFT + 2 * Left::COUNT;
const COUNT: usize = FIRST_FAR + 6;
/// How often the record is written while the program reads.
const PERIOD_NANOSECONDS: u64 = 100_000_000;

/// What is counted besides the reasons, by its place in the record.
#[derive(Clone, Copy, Debug)]
#[repr(usize)]
pub(crate) enum Count {
    ServedReads = 0,
    ServedNbytes = 1,
    ServedNanoseconds = 2,
    /// Reads that we passed on and timed, which small ones are not.
    PassedNanoseconds = 3,
    /// Reads by libhdf5 of parts that we had served, to compare: the bytes, its time and ours.
    SampledNbytes = 4,
    SampledNanoseconds = 5,
    /// Estimated nanoseconds that libhdf5 would have taken for what we served, where there are samples.
    EstimatedNanoseconds = 6,
    /// Our nanoseconds for the reads that this estimate covers.
    ComparedNanoseconds = 7,
    /// Served reads that were done ahead.
    AheadReads = 8,
    /// Served reads that libhdf5 could not have done, for want of a filter.
    LackingReads = 9,
    /// The number of such a filter.
    LackedFilter = 10,
    /// How often a thread waited until another one had done its call of a library, and for how long.
    Waits = 11,
    WaitedNanoseconds = 12,
    /// Writes that we encoded, with their chunks and bytes, and how long they took.
    Writes = FIRST_WRITE,
    WrittenChunks = FIRST_WRITE + 1,
    WrittenNbytes = FIRST_WRITE + 2,
    WritingNanoseconds = FIRST_WRITE + 3,
    /// How many of them were encoded while the program went on.
    WaitedWrites = FIRST_WRITE + 4,
    /// Files at URLs that were opened, or could not be.
    FarFiles = FIRST_FAR,
    /// What they cost: requests, bytes that came, and bytes that had come before.
    FarRequests = FIRST_FAR + 1,
    FarNbytes = FIRST_FAR + 2,
    FarKeptNbytes = FIRST_FAR + 3,
    /// Reads of theirs by libhdf5 or netCDF-C, and those for which nothing had to be fetched.
    FarReads = FIRST_FAR + 4,
    FarReadsKept = FIRST_FAR + 5,
}

static COUNTS: [AtomicU64; COUNT] = [const { AtomicU64::new(0) }; COUNT];
static WRITTEN: AtomicU64 = AtomicU64::new(0);
/// Tells this process from others with its number: programs that are replaced by `exec`, and children that fork.
static STARTED: AtomicU64 = AtomicU64::new(0);
/// The number of the process that counts. A child that shares its parent's memory until it starts a program has another.
static PROCESS: AtomicU32 = AtomicU32::new(0);

/// Adds to a count.
pub(crate) fn add(count: Count, value: u64) {
    COUNTS[count as usize].fetch_add(value, Ordering::Relaxed);
}

/// Says what a count is by now.
pub(crate) fn set(count: Count, value: u64) {
    COUNTS[count as usize].store(value, Ordering::Relaxed);
}

/// Counts a read that libhdf5 could not have done, as it lacks the filter of this number.
pub(crate) fn add_lacking(filter: u32) {
    add(Count::LackingReads, 1);
    COUNTS[Count::LackedFilter as usize].store(filter.into(), Ordering::Relaxed);
}

/// A count so far.
pub(crate) fn get(count: Count) -> u64 {
    COUNTS[count as usize].load(Ordering::Relaxed)
}

/// Counts a read that libhdf5 does.
pub(crate) fn add_passed(reason: Reason, nbytes: u64) {
    add_call(FIRST_REASON + 2 * reason as usize, nbytes);
}

/// Counts a write that libhdf5 does.
pub(crate) fn add_left(why: Left, nbytes: u64) {
    add_call(FIRST_LEFT + 2 * why as usize, nbytes);
}

/// One call more, with so many bytes.
fn add_call(place: usize, nbytes: u64) {
    COUNTS[place].fetch_add(1, Ordering::Relaxed);
    COUNTS[place + 1].fetch_add(nbytes, Ordering::Relaxed);
}

/// All counts, in the order of the record.
pub(crate) fn all() -> [u64; COUNT] {
    std::array::from_fn(|place| COUNTS[place].load(Ordering::Relaxed))
}

/// Nanoseconds of a duration.
pub(crate) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

/// Begins to count anew: the process has just begun.
pub(crate) fn start() {
    for count in &COUNTS {
        count.store(0, Ordering::Relaxed);
    }
    WRITTEN.store(0, Ordering::Relaxed);
    IS_WRITING.store(false, Ordering::Relaxed);
    STARTED.store(now(), Ordering::Relaxed);
    PROCESS.store(std::process::id(), Ordering::Relaxed);
}

/// Writes the record unless that was done a moment ago.
pub(crate) fn write_sometimes() {
    let (now, written) = (now(), WRITTEN.load(Ordering::Relaxed));
    let is_due = written == 0 || now.saturating_sub(written) >= PERIOD_NANOSECONDS;
    if is_due && WRITTEN.compare_exchange(written, now, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
        write();
    }
}

/// Writes the record if there is anything to say and someone who wants to know. Failures are ignored: the program must
/// not notice.
pub(crate) fn write() {
    let Some(folder) = &settings().folder else { return };
    let is_own = PROCESS.load(Ordering::Relaxed) == std::process::id();
    if !is_own || COUNTS.iter().all(|count| count.load(Ordering::Relaxed) == 0) {
        return;
    }
    if IS_WRITING.swap(true, Ordering::Acquire) {
        return; // another thread does, or the one that a signal has interrupted
    }
    // SAFETY: nobody else uses it now.
    unsafe { (*ROOM.0.get()).write(folder) };
    IS_WRITING.store(false, Ordering::Release);
}

/// Memory for writing: a thread may have little for its stack.
struct Room {
    path: [u8; libc::PATH_MAX as usize],
    end: usize,
    record: [u8; 8 * (COUNT + 1)],
}

struct Shared(UnsafeCell<Room>);

// SAFETY: only used by the thread that has set `IS_WRITING`.
unsafe impl Sync for Shared {}

static ROOM: Shared = Shared(UnsafeCell::new(Room {
    path: [0; libc::PATH_MAX as usize],
    end: 0,
    record: [0; 8 * (COUNT + 1)],
}));
static IS_WRITING: AtomicBool = AtomicBool::new(false);

impl Room {
    fn put(&mut self, bytes: &[u8]) {
        let end = self.end + bytes.len();
        // The last byte stays zero.
        if let Some(room) = self.path.get_mut(self.end..end).filter(|_| end < libc::PATH_MAX as usize) {
            room.copy_from_slice(bytes);
            self.end = end;
        }
    }

    fn write(&mut self, folder: &Folder) {
        let mut digits = [0; 20];
        let (path, user) = folder.own();
        self.end = 0;
        self.put(path.as_bytes());
        if let Some(user) = user {
            self.put(b"/u");
            self.put(decimal(u64::from(user), &mut digits));
        }
        self.put(b"/");
        self.put(decimal(u64::from(std::process::id()), &mut digits));
        self.put(b".");
        self.put(decimal(STARTED.load(Ordering::Relaxed), &mut digits));
        self.path[self.end] = 0;
        if file_limit() < self.record.len() as u64 {
            return;
        }
        let values = std::iter::once(MAGIC).chain(COUNTS.iter().map(|count| count.load(Ordering::Relaxed)));
        for (room, value) in self.record.chunks_exact_mut(8).zip(values) {
            room.copy_from_slice(&value.to_le_bytes());
        }
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_CLOEXEC | libc::O_NOFOLLOW;
        // SAFETY: the path ends with a zero, and the record is valid. `errno` is the program's, so it is restored.
        unsafe {
            let error = *libc::__errno_location();
            let file = libc::open(self.path.as_ptr().cast(), flags, 0o600);
            if file >= 0 {
                libc::pwrite(file, self.record.as_ptr().cast(), self.record.len(), 0);
                libc::close(file);
            }
            *libc::__errno_location() = error;
        }
    }
}

fn decimal(mut value: u64, digits: &mut [u8; 20]) -> &[u8] {
    let mut first = digits.len();
    loop {
        first -= 1;
        digits[first] = b'0' + (value % 10) as u8;
        value /= 10;
        if value == 0 {
            return &digits[first..];
        }
    }
}

/// Nanoseconds of a clock that only goes forward.
#[inline]
pub(crate) fn now() -> u64 {
    clock(ClockId::Monotonic)
}

/// Nanoseconds that a processor has worked for this thread.
pub(crate) fn processor_now() -> u64 {
    clock(ClockId::ThreadCPUTime)
}

#[inline]
fn clock(which: ClockId) -> u64 {
    let time = rustix::time::clock_gettime(which);
    let (seconds, nanoseconds) = (time.tv_sec.cast_unsigned(), time.tv_nsec.cast_unsigned());
    seconds.wrapping_mul(1_000_000_000).wrapping_add(nanoseconds).max(1)
}
