//! Files of netCDF-3 at URLs: netCDF-C opens a file in memory that is as long and begins alike, but has nothing else. What it
//! reads of that file, it reads through us. Nobody else has the file, and nobody can write to it.

#![allow(unsafe_code)]

use std::ffi::{CString, c_int, c_void};
use std::fs::File;
use std::mem::transmute;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use hyperslab_core::FileIdentity;
use hyperslab_libhdf5::DrivenFile;
use hyperslab_libhdf5::libraries::module_at;
use hyperslab_libhdf5::objects::each;

use super::file::FarFile;
use super::told;
use crate::open_file::borrowed;
use crate::patching::replace;

/// A file in memory that stands for one at a URL.
pub(super) struct StandIn {
    file: File,
}

impl StandIn {
    /// A file as long as the other one, with some bytes of its.
    pub fn new(nbytes: u64, parts: &[(u64, &[u8])]) -> std::io::Result<Self> {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        // SAFETY: the name ends with a zero, and nobody else has the descriptor.
        let file = unsafe {
            let descriptor = libc::memfd_create(c"hyperslab".as_ptr(), flags);
            if descriptor < 0 {
                return Err(std::io::Error::last_os_error());
            }
            File::from_raw_fd(descriptor)
        };
        file.set_len(nbytes)?;
        for (offset, bytes) in parts {
            file.write_all_at(bytes, *offset)?;
        }
        let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_WRITE | libc::F_SEAL_SEAL;
        // SAFETY: the descriptor is ours.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } < 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(Self { file })
    }

    /// A name by which this process can open it.
    pub fn path(&self) -> CString {
        CString::new(format!("/proc/self/fd/{}", self.file.as_raw_fd())).unwrap_or_default()
    }
}

/// A file that stands for another one, in a list that only grows: a forked child may read it while a thread that it does not
/// have had it.
pub(super) struct Standing {
    identity: FileIdentity,
    /// Null once it is closed.
    file: AtomicPtr<FarFile>,
    stand_in: AtomicPtr<StandIn>,
    next: *const Standing,
}

static STANDING: AtomicPtr<Standing> = AtomicPtr::new(ptr::null_mut());
static HAS_ANY: AtomicBool = AtomicBool::new(false);

fn all() -> impl Iterator<Item = &'static Standing> {
    // SAFETY: entries are never freed.
    let next = |one: &&'static Standing| unsafe { one.next.as_ref() };
    // SAFETY: as above.
    std::iter::successors(unsafe { STANDING.load(Ordering::Acquire).cast_const().as_ref() }, next)
}

impl Standing {
    /// From now on, reads of the one file are reads of the other.
    pub fn begin(stand_in: StandIn, file: &Arc<FarFile>) -> Option<&'static Self> {
        let identity = FileIdentity::of_metadata(&stand_in.file.metadata().ok()?)?;
        let new = Box::into_raw(Box::new(Self {
            identity,
            file: AtomicPtr::new(Arc::into_raw(Arc::clone(file)).cast_mut()),
            stand_in: AtomicPtr::new(Box::into_raw(Box::new(stand_in))),
            next: ptr::null(),
        }));
        HAS_ANY.store(true, Ordering::Release);
        loop {
            let first = STANDING.load(Ordering::Acquire);
            // SAFETY: nobody else has it yet.
            unsafe { (*new).next = first };
            if STANDING.compare_exchange(first, new, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                // SAFETY: it was just made, and is never freed.
                return unsafe { new.as_ref() };
            }
        }
    }

    /// netCDF-C has closed it.
    pub fn end(&self) {
        let file = self.file.swap(ptr::null_mut(), Ordering::AcqRel);
        let stand_in = self.stand_in.swap(ptr::null_mut(), Ordering::AcqRel);
        // SAFETY: they came from there, and nobody else has taken them. Nobody reads a file that is closed.
        unsafe {
            if !file.is_null() {
                drop(Arc::from_raw(file.cast_const()));
            }
            if !stand_in.is_null() {
                drop(Box::from_raw(stand_in));
            }
        }
    }
}

/// The file that a descriptor stands for.
fn standing(descriptor: c_int) -> Option<&'static FarFile> {
    if !HAS_ANY.load(Ordering::Acquire) || descriptor < 0 {
        return None;
    }
    let found = FileIdentity::of_metadata(&borrowed(descriptor).metadata().ok()?)?;
    let one =
        all().find(|one| one.identity.is_file(&found) && !one.file.load(Ordering::Acquire).is_null())?;
    // SAFETY: it is open, since netCDF-C reads it.
    unsafe { one.file.load(Ordering::Acquire).cast_const().as_ref() }
}

/// Lets the library that has a function read through us. Returns whether it calls libc for that in a way that we know.
pub(super) fn read_for(function: usize) -> bool {
    let Some((extent, _module)) = module_at(function) else { return false };
    let mut has_any = false;
    each(|object| {
        for slot in object.slots().filter(|_| object.start == extent.0) {
            if let Some(hook) = hook(slot.name.to_bytes()) {
                replace(slot.place, hook, object.is_sealed(slot.place));
                has_any = true;
            }
        }
    });
    has_any
}

fn hook(name: &[u8]) -> Option<usize> {
    match name {
        b"read" => Some(read as *const () as usize),
        b"__read_chk" => Some(read_checked as *const () as usize),
        b"pread" | b"pread64" => Some(pread as *const () as usize),
        b"__pread_chk" | b"__pread64_chk" => Some(pread_checked as *const () as usize),
        _ => None,
    }
}

unsafe extern "C" fn read(descriptor: c_int, out: *mut c_void, count: usize) -> isize {
    let Some(file) = standing(descriptor) else {
        // SAFETY: these are the program's own arguments.
        return unsafe { libc::read(descriptor, out, count) };
    };
    // SAFETY: as above.
    let start = unsafe { libc::lseek(descriptor, 0, libc::SEEK_CUR) };
    // SAFETY: as above.
    let done = unsafe { fill(file, start, out, count) };
    if done > 0 {
        // SAFETY: as above.
        unsafe { libc::lseek(descriptor, start + done as i64, libc::SEEK_SET) };
    }
    done
}

unsafe extern "C" fn pread(descriptor: c_int, out: *mut c_void, count: usize, start: i64) -> isize {
    match standing(descriptor) {
        // SAFETY: these are the program's own arguments.
        None => unsafe { libc::pread(descriptor, out, count, start) },
        // SAFETY: as above.
        Some(file) => unsafe { fill(file, start, out, count) },
    }
}

unsafe extern "C" fn read_checked(descriptor: c_int, out: *mut c_void, count: usize, room: usize) -> isize {
    if count > room {
        std::process::abort(); // as libc does
    }
    // SAFETY: as above.
    unsafe { read(descriptor, out, count) }
}

unsafe extern "C" fn pread_checked(
    descriptor: c_int,
    out: *mut c_void,
    count: usize,
    start: i64,
    room: usize,
) -> isize {
    if count > room {
        std::process::abort();
    }
    // SAFETY: as above.
    unsafe { pread(descriptor, out, count, start) }
}

/// What `read` does, of the file at the URL.
unsafe fn fill(file: &FarFile, start: i64, out: *mut c_void, count: usize) -> isize {
    let failed = |number: c_int| {
        // SAFETY: it is this thread's.
        unsafe { *libc::__errno_location() = number };
        -1
    };
    let Ok(start) = u64::try_from(start) else { return failed(libc::EINVAL) };
    let left = usize::try_from(file.nbytes().saturating_sub(start)).unwrap_or(usize::MAX);
    let count = count.min(left);
    // SAFETY: the program has room for so many bytes.
    let out = unsafe { std::slice::from_raw_parts_mut(out.cast::<u8>(), count) };
    match file.fill(start, out) {
        Ok(()) => isize::try_from(count).unwrap_or(isize::MAX),
        Err(text) => {
            told::note(&text);
            failed(libc::EIO)
        }
    }
}

/// `nc_open`, and functions that begin alike.
pub(super) type Open = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize) -> usize;

/// The function at an address.
///
/// # Safety
/// It must be one that can be called so.
pub(super) unsafe fn function(address: usize) -> Open {
    // SAFETY: as the caller promises.
    unsafe { transmute::<usize, Open>(address) }
}
