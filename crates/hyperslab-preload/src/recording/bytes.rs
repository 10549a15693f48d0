//! Reads of files by libc, for programs that use no library which is recorded: each is an access to the bytes of its file.
//! `hyperslab trace` finds out afterwards which chunks they belong to.
//!
//! Only files whose arrays hyperslab can find are recorded: those that begin as HDF5, NetCDF, FITS or HDF4 files do.

#![allow(unsafe_code)]

use std::ffi::{c_int, c_void};
use std::fmt::Write;
use std::fs::Metadata;
use std::mem::transmute;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_libhdf5::objects::load_count;

use super::selections::Selected;
use super::state::{self, Numbers, Row, State};
use super::{json, switch};
use crate::counts::now;
use crate::open_file::borrowed;
use crate::patching::{Replacing, patch};

/// How files begin whose arrays hyperslab finds. HDF5's mark may also be behind a block of the user's.
const HDF5: &[u8] = b"\x89HDF\r\n\x1a\n";
const MARKS: [&[u8]; 6] = [HDF5, b"CDF\x01", b"CDF\x02", b"CDF\x05", b"SIMPLE  ", b"\x0e\x03\x13\x01"];
const MARK_NBYTES: usize = 8;
/// Where blocks of the user's end at most.
const MOST_START: u64 = 1 << 20;
/// More files are not told apart.
const MOST_FILES: usize = 1 << 12;

/// libhdf5's reads serve accesses that are recorded already, and so do those of our own engine.
const SPARED: &[&str] = &["libhdf5", "hyperslab/_core"];

/// The operation of `log.py`.
const READ: u8 = 0;

macro_rules! function {
    ($hook:ident) => {
        // SAFETY: it is only called with the arguments of the function that it stands for.
        unsafe { transmute::<*const (), unsafe extern "C" fn()>($hook as *const ()) }
    };
}

/// How many modules had been loaded when all of them were patched.
static PATCHED_AT: AtomicU64 = AtomicU64::new(0);

static REPLACING: OnceLock<Replacing> = OnceLock::new();

/// Makes all modules call us, unless no module was loaded since.
fn replace_in_new_modules() {
    let count = load_count();
    if PATCHED_AT.swap(count, Ordering::AcqRel) == count {
        return;
    }
    let replacing = REPLACING.get_or_init(|| {
        let functions = Box::new([
            (c"read", function!(read)),
            (c"__read_chk", function!(read_checked)),
            (c"pread", function!(pread)),
            (c"pread64", function!(pread)),
            (c"__pread_chk", function!(pread_checked)),
            (c"__pread64_chk", function!(pread_checked)),
            (c"readv", function!(readv)),
            (c"preadv", function!(preadv)),
            (c"preadv64", function!(preadv)),
            (c"preadv2", function!(preadv_with_flags)),
            (c"preadv64v2", function!(preadv_with_flags)),
            (c"fread", function!(fread)),
            (c"fread_unlocked", function!(fread)),
            (c"__fread_chk", function!(fread_checked)),
            (c"__fread_unlocked_chk", function!(fread_checked)),
        ]);
        Replacing { functions: Box::leak(functions), spared: SPARED }
    });
    patch(replacing);
}

/// Begins to record.
pub(crate) fn start() {
    replace_in_new_modules();
}

unsafe extern "C" fn read(file: c_int, out: *mut c_void, count: usize) -> isize {
    // SAFETY: these are the program's own arguments.
    recorded(file, || position(file), || unsafe { libc::read(file, out, count) })
}

unsafe extern "C" fn read_checked(file: c_int, out: *mut c_void, count: usize, room: usize) -> isize {
    if count > room {
        std::process::abort(); // as libc does
    }
    // SAFETY: as above.
    unsafe { read(file, out, count) }
}

unsafe extern "C" fn pread(file: c_int, out: *mut c_void, count: usize, at: i64) -> isize {
    // SAFETY: as above.
    recorded(file, || at, || unsafe { libc::pread(file, out, count, at) })
}

unsafe extern "C" fn pread_checked(
    file: c_int,
    out: *mut c_void,
    count: usize,
    at: i64,
    room: usize,
) -> isize {
    if count > room {
        std::process::abort();
    }
    // SAFETY: as above.
    unsafe { pread(file, out, count, at) }
}

unsafe extern "C" fn readv(file: c_int, parts: *const libc::iovec, count: c_int) -> isize {
    // SAFETY: as above.
    recorded(file, || position(file), || unsafe { libc::readv(file, parts, count) })
}

unsafe extern "C" fn preadv(file: c_int, parts: *const libc::iovec, count: c_int, at: i64) -> isize {
    // SAFETY: as above.
    recorded(file, || at, || unsafe { libc::preadv(file, parts, count, at) })
}

/// At position -1, it reads from where the file is.
unsafe extern "C" fn preadv_with_flags(
    file: c_int,
    parts: *const libc::iovec,
    count: c_int,
    at: i64,
    flags: c_int,
) -> isize {
    let start = || if at == -1 { position(file) } else { at };
    // SAFETY: as above.
    recorded(file, start, || unsafe { libc::preadv2(file, parts, count, at, flags) })
}

/// What the program asks of its buffer, which may read more of the file, or nothing.
unsafe extern "C" fn fread(out: *mut c_void, size: usize, count: usize, stream: *mut libc::FILE) -> usize {
    // SAFETY: as above.
    let nbytes = unsafe {
        let read = || libc::fread(out, size, count, stream).saturating_mul(size).cast_signed();
        recorded(libc::fileno(stream), || libc::ftello(stream), read)
    };
    nbytes.cast_unsigned() / size.max(1)
}

unsafe extern "C" fn fread_checked(
    out: *mut c_void,
    room: usize,
    size: usize,
    count: usize,
    stream: *mut libc::FILE,
) -> usize {
    if size.checked_mul(count).is_none_or(|nbytes| nbytes > room) {
        std::process::abort();
    }
    // SAFETY: as above.
    unsafe { fread(out, size, count, stream) }
}

/// Where a file is read next; negative for what has no positions.
fn position(file: c_int) -> i64 {
    // SAFETY: asking for the position changes nothing.
    unsafe { libc::lseek(file, 0, libc::SEEK_CUR) }
}

/// Reads, and records how many bytes were read from where. Only the read changes `errno`.
fn recorded(file: c_int, at: impl FnOnce() -> i64, read: impl FnOnce() -> isize) -> isize {
    let at = keeping_error(|| {
        replace_in_new_modules();
        at()
    });
    let begun = now();
    let count = read();
    let took = now().saturating_sub(begun);
    if let (Ok(at), Ok(nbytes @ 1..)) = (u64::try_from(at), u64::try_from(count)) {
        keeping_error(|| note(file, (at, nbytes), (begun, took)));
    }
    count
}

fn keeping_error<R>(act: impl FnOnce() -> R) -> R {
    // SAFETY: the location is this thread's own.
    let place = unsafe { libc::__errno_location() };
    // SAFETY: as above.
    let error = unsafe { *place };
    let result = act();
    // SAFETY: as above.
    unsafe { *place = error };
    result
}

fn note(file: c_int, (at, nbytes): (u64, u64), times: (u64, u64)) {
    if !switch::counts() {
        return;
    }
    let Some(facts) = borrowed(file).metadata().ok().filter(Metadata::is_file) else { return };
    // Another file may get the number of one that was removed, but hardly its time.
    let key = (facts.dev(), facts.ino(), facts.mtime(), facts.mtime_nsec());
    let stop = at.saturating_add(nbytes);
    let Some(known) = state::with(|state| state.files.get(&key).copied()) else { return };
    let is_known = |known: &Option<(u32, u64)>| known.is_none_or(|(_, size)| stop <= size);
    let known = known.filter(is_known).unwrap_or_else(|| {
        let size = facts.len().max(stop);
        let text = if is_array_file(file) { described(file, size) } else { None };
        let keep = |state: &mut State| {
            let known = text.map(|text| (state.number(text), size));
            if state.files.len() >= MOST_FILES {
                state.files.clear();
            }
            state.files.insert(key, known);
            known
        };
        state::with(keep).flatten()
    });
    let Some((array, size)) = known else { return };
    let row = Row { times, operation: READ, flags: 0 };
    let selected = Selected::chunk(&[at], &[nbytes], &[size]);
    state::with(|state| state.write(&row, Numbers { array, text: 0, width: 1 }, &selected));
}

/// Whether a file begins with one of the marks.
fn is_array_file(file: c_int) -> bool {
    let mut start = 0;
    while start <= MOST_START {
        let mut head = [0_u8; MARK_NBYTES];
        if borrowed(file).read_exact_at(&mut head, start).is_err() {
            return false;
        }
        if head == HDF5 || (start == 0 && MARKS.iter().any(|mark| head.starts_with(mark))) {
            return true;
        }
        start = if start == 0 { 512 } else { 2 * start };
    }
    false
}

/// The bytes of a file, for the log.
fn described(file: c_int, size: u64) -> Option<String> {
    let path = std::fs::read_link(format!("/proc/self/fd/{file}")).ok()?;
    let mut out = String::from("{\"library\": \"POSIX\", \"file\": ");
    json::put_text(&mut out, &String::from_utf8_lossy(path.as_os_str().as_bytes()));
    let _ = write!(
        out,
        ", \"array\": \"(bytes)\", \"shape\": [{size}], \"chunks\": null, \"dtype\": \"|u1\", \
         \"element_nbytes\": 1, \"layout\": \"bytes\"}}"
    );
    Some(out)
}
