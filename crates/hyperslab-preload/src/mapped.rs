//! Files that the process has mapped into its memory, so that writing to memory changes them. The system notes the time of
//! such a change much later, if at all.

#![allow(unsafe_code, clippy::similar_names)]

use std::ffi::{CStr, c_int, c_void};
use std::mem::transmute;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab_core::FileIdentity;

use crate::patching::{Replacing, patch};
use crate::writers::writers_changed;

/// Whether the process may have mapped any file in this way. Most programs never do.
static HAS_ANY: AtomicBool = AtomicBool::new(false);

type Functions = [(&'static CStr, unsafe extern "C" fn()); 2];

static REPLACED: OnceLock<Functions> = OnceLock::new();

/// The process has run before us: it may have such files, and its modules call libc's functions.
pub(crate) fn begin_late() {
    HAS_ANY.store(true, Ordering::Release);
    let functions: &'static Functions = REPLACED.get_or_init(|| {
        // SAFETY: they are only called with the arguments of the functions that they stand for.
        unsafe {
            [
                (c"mmap", transmute::<*const (), unsafe extern "C" fn()>(mmap as *const ())),
                (c"mmap64", transmute::<*const (), unsafe extern "C" fn()>(mmap64 as *const ())),
            ]
        }
    });
    patch(&Replacing { functions, spared: &[] });
}

/// Whether the process has a file in memory so that writing there changes it. If that cannot be found out, it may.
pub(crate) fn may_be_written(file: &FileIdentity) -> bool {
    if !HAS_ANY.load(Ordering::Acquire) {
        return false;
    }
    let Ok(text) = std::fs::read_to_string("/proc/self/maps") else { return true };
    text.lines().any(|line| is_of(line, file.inode))
}

/// Whether a line of the system's list says that memory is shared with a file of this number, and may be written to. File
/// systems of several layers have other numbers for the device there, so that is not compared.
fn is_of(line: &str, inode: u64) -> bool {
    let mut words = line.split_ascii_whitespace();
    let (_addresses, mode) = (words.next(), words.next().unwrap_or_default());
    let number = words.nth(2).and_then(|number| number.parse::<u64>().ok());
    mode.contains('w') && mode.ends_with('s') && number == Some(inode)
}

/// Replaces libc's function, which only calls the system. Its other name is `mmap`.
///
/// # Safety
/// As the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    address: *mut c_void,
    nbytes: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: these are the program's own arguments.
    let found =
        unsafe { libc::syscall(libc::SYS_mmap, address, nbytes, protection, flags, descriptor, offset) };
    // All kinds of shared mappings have this bit.
    if descriptor >= 0 && flags & libc::MAP_SHARED != 0 && protection & libc::PROT_WRITE != 0 && found != -1 {
        HAS_ANY.store(true, Ordering::Release);
        writers_changed();
    }
    found as *mut c_void
}

/// Replaces libc's function.
///
/// # Safety
/// As the system's.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    address: *mut c_void,
    nbytes: usize,
    protection: c_int,
    flags: c_int,
    descriptor: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: as above.
    unsafe { mmap64(address, nbytes, protection, flags, descriptor, offset) }
}
