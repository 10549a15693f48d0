//! Files that libhdf5 has open: whether their bytes may be read behind its back, and how.

#![allow(unsafe_code)]

use std::ffi::c_int;
use std::fs::File;
use std::io::IoSliceMut;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::ptr;

use hyperslab_archive::FileIdentity;
use hyperslab_core::CoalescePolicy;
use hyperslab_engine::{FileStore, FileVersion, ReadError, Store};

use crate::libhdf5::{Held, Id, Library};
use crate::reason::Reason;

/// `H5F_ACC_RDWR`.
const WRITABLE: u32 = 0x01;
/// `H5F_ACC_SWMR_WRITE | H5F_ACC_SWMR_READ`.
const SWMR: u32 = 0x60;

/// A file that libhdf5 has open for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpenFile {
    /// libhdf5's descriptor.
    descriptor: RawFd,
    identity: FileIdentity,
}

impl OpenFile {
    /// The file of an array, if it may be read.
    pub fn of(library: &Library, array: Id) -> Result<Self, Reason> {
        let call = &library.call;
        let mut intent = 0;
        // SAFETY: the functions take any identifier, and the pointers are valid for writes.
        let descriptor = unsafe {
            let file = Held::new(library, (call.id_file)(array)).ok_or(Reason::Driver)?;
            if (call.file_intent)(file.id, &raw mut intent) < 0 {
                return Err(Reason::Driver);
            }
            if intent & SWMR != 0 {
                return Err(Reason::Swmr);
            }
            if intent & WRITABLE != 0 {
                return Err(Reason::Writable);
            }
            let properties = Held::new(library, (call.file_properties)(file.id)).ok_or(Reason::Driver)?;
            if (call.properties_driver)(properties.id) != library.plain_driver() {
                return Err(Reason::Driver);
            }
            let mut handle = ptr::null_mut();
            if (call.file_handle)(file.id, 0, &raw mut handle) < 0 || handle.is_null() {
                return Err(Reason::Driver);
            }
            *handle.cast::<c_int>() // that is what the plain driver has
        };
        let identity = identity(descriptor).ok_or(Reason::Driver)?;
        if !is_plainly_read(descriptor) {
            return Err(Reason::Driver);
        }
        if has_writer(&identity) {
            return Err(Reason::Writable);
        }
        Ok(Self { descriptor, identity })
    }

    /// Whether the descriptor still leads to the same file, and nobody has written to it.
    pub fn is_unchanged(&self) -> bool {
        identity(self.descriptor) == Some(self.identity)
    }

    /// Its bytes.
    pub fn store(&self) -> Option<Borrowed> {
        let store = FileStore::of_open(String::new(), ManuallyDrop::into_inner(borrowed(self.descriptor)));
        store.ok().map(|store| Borrowed(ManuallyDrop::new(store)))
    }
}

/// A file that is not closed when we are done with it, as it is not ours.
pub(crate) struct Borrowed(ManuallyDrop<FileStore>);

impl Store for Borrowed {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn nbytes(&self) -> u64 {
        self.0.nbytes()
    }

    fn policy(&self) -> CoalescePolicy {
        self.0.policy()
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.0.read_into(offset, out)
    }

    fn read_vectored(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError> {
        self.0.read_vectored(offset, parts)
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        self.0.check_unchanged()
    }

    fn version(&self) -> Option<FileVersion> {
        Some(FileStore::version(&self.0))
    }
}

fn borrowed(descriptor: RawFd) -> ManuallyDrop<File> {
    // SAFETY: whoever has it never closes it.
    ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) })
}

/// `None` if the descriptor is closed, or leads to something else than a file.
fn identity(descriptor: RawFd) -> Option<FileIdentity> {
    let metadata = if descriptor >= 0 { borrowed(descriptor).metadata().ok()? } else { return None };
    if metadata.is_file() { FileIdentity::of_metadata(&metadata).ok() } else { None }
}

/// Whether a descriptor was opened for reading only, through the page cache.
fn is_plainly_read(descriptor: RawFd) -> bool {
    // SAFETY: the call changes nothing, whatever the number.
    let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
    flags >= 0 && flags & libc::O_ACCMODE == libc::O_RDONLY && flags & libc::O_DIRECT == 0
}

/// Whether the process has the file open for writing anywhere, by whatever library. If that cannot be found out, it may.
fn has_writer(file: &FileIdentity) -> bool {
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else { return true };
    let numbers = descriptors.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
    numbers.into_iter().any(|descriptor| {
        // SAFETY: as above.
        let flags = unsafe { libc::fcntl(descriptor, libc::F_GETFL) };
        let is_writable = flags >= 0 && flags & libc::O_ACCMODE != libc::O_RDONLY;
        is_writable
            && identity(descriptor)
                .is_some_and(|found| (found.device, found.inode) == (file.device, file.inode))
    })
}
