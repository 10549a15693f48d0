//! Files that libhdf5 has open: whether their bytes may be read behind its back, and how.

#![allow(unsafe_code)]

use std::fs::File;
use std::io::IoSliceMut;
use std::mem::ManuallyDrop;
use std::os::fd::{FromRawFd, RawFd};
use std::sync::Arc;

use hyperslab_core::{CoalescePolicy, FileIdentity};
use hyperslab_engine::{FileStore, FileVersion, ReadError, Store};
use hyperslab_libhdf5::{Id, Library};
use rustix::fs::{OFlags, fcntl_getfl};

use crate::far::{self, FarFile};
use crate::kept_bytes::KeptBytes;
use crate::mapped;
use crate::reason::Reason;

/// A file that libhdf5 has open for reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OpenFile {
    /// One here.
    Here {
        /// libhdf5's descriptor.
        descriptor: RawFd,
        identity: FileIdentity,
    },
    /// The one of this number at a URL.
    Far(u64),
}

impl OpenFile {
    /// The file of an array, if it may be read.
    pub fn of(library: &Library, array: Id) -> Result<Self, Reason> {
        let found = Self::opened(library, array)?;
        match &found {
            Self::Here { identity, .. } if has_writer(identity) || mapped::may_be_written(identity) => {
                Err(Reason::Writable)
            }
            _ => Ok(found),
        }
    }

    /// The file of an identifier, as it is now, if it was opened to be read in a way that we know.
    pub fn opened(library: &Library, id: Id) -> Result<Self, Reason> {
        let file = library.array(id).file().ok_or(Reason::Driver)?;
        let intent = file.intent().ok_or(Reason::Driver)?;
        if intent.is_swmr() {
            return Err(Reason::Swmr);
        }
        if intent.is_writable() {
            return Err(Reason::Writable);
        }
        if far::has_any()
            && let Some(number) = file.driven()
        {
            return Ok(Self::Far(number));
        }
        let descriptor = file.descriptor().ok_or(Reason::Driver)?;
        let identity = identity(descriptor).ok_or(Reason::Driver)?;
        if !is_plainly_read(descriptor) {
            return Err(Reason::Driver);
        }
        Ok(Self::Here { descriptor, identity })
    }

    /// Whether the descriptor still leads to the same file, and nobody has written to it.
    pub fn is_unchanged(&self) -> bool {
        match self {
            Self::Here { descriptor, identity: before } => {
                identity(*descriptor).is_some_and(|now| now.keeps(before))
            }
            Self::Far(_) => true, // each answer of the server is checked
        }
    }

    /// Whether the descriptor still leads to the same file.
    pub fn is_open(&self) -> bool {
        match self {
            Self::Here { descriptor, identity: before } => {
                identity(*descriptor).is_some_and(|now| now.is_file(before))
            }
            Self::Far(number) => far::numbered(*number).is_some(),
        }
    }

    /// Whether it is the file of `before`, and nobody has written to it since.
    pub fn keeps(&self, before: &Self) -> bool {
        match (self, before) {
            (
                Self::Here { descriptor, identity },
                Self::Here { descriptor: descriptor_before, identity: identity_before },
            ) => descriptor == descriptor_before && identity.keeps(identity_before),
            (now, before) => now == before,
        }
    }

    /// The file, if it is at a URL.
    pub fn far(&self) -> Option<Arc<FarFile>> {
        match self {
            Self::Here { .. } => None,
            Self::Far(number) => far::numbered(*number),
        }
    }

    /// Whether it is at a URL.
    pub fn is_far(&self) -> bool {
        matches!(self, Self::Far(_))
    }

    /// The bytes of a file that is here. Those that were read last are kept.
    pub fn store(&self, kept: Arc<KeptBytes>) -> Option<Borrowed> {
        let Self::Here { descriptor, .. } = self else { return None };
        let store = FileStore::of_open(String::new(), ManuallyDrop::into_inner(borrowed(*descriptor)));
        store.ok().map(|store| Borrowed(ManuallyDrop::new(store), kept))
    }
}

/// A file that is not closed when we are done with it, as it is not ours. Once it has changed, only the bytes that are kept
/// are read.
pub(crate) struct Borrowed(ManuallyDrop<FileStore>, Arc<KeptBytes>);

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
        if self.1.is_all() {
            return self.copy(offset, out);
        }
        self.0.read_into(offset, out)?;
        self.1.keep(offset, out);
        Ok(())
    }

    fn read_vectored(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError> {
        let is_all = self.1.is_all();
        if !is_all {
            self.0.read_vectored(offset, parts)?;
        }
        let mut offset = offset;
        for part in parts {
            if is_all {
                self.copy(offset, part)?;
            } else {
                self.1.keep(offset, part);
            }
            offset += part.len() as u64;
        }
        Ok(())
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        if self.1.is_all() { Ok(()) } else { self.0.check_unchanged() }
    }

    fn version(&self) -> Option<FileVersion> {
        Some(FileStore::version(&self.0))
    }
}

impl Borrowed {
    fn copy(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        if self.1.copy(offset, out) { Ok(()) } else { Err(ReadError::FileChanged { file: String::new() }) }
    }
}

pub(crate) fn borrowed(descriptor: RawFd) -> ManuallyDrop<File> {
    // SAFETY: whoever has it never closes it.
    ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) })
}

/// `None` if the descriptor is closed, or leads to something else than a file.
fn identity(descriptor: RawFd) -> Option<FileIdentity> {
    let metadata = if descriptor >= 0 { borrowed(descriptor).metadata().ok()? } else { return None };
    if metadata.is_file() { FileIdentity::of_metadata(&metadata) } else { None }
}

/// Whether a descriptor was opened for reading only, through the page cache.
fn is_plainly_read(descriptor: RawFd) -> bool {
    let is_plain =
        |flags: OFlags| flags & OFlags::ACCMODE == OFlags::RDONLY && !flags.contains(OFlags::DIRECT);
    flags(descriptor).is_some_and(is_plain)
}

/// How a descriptor was opened; `None` if it is closed.
fn flags(descriptor: RawFd) -> Option<OFlags> {
    if descriptor >= 0 { fcntl_getfl(&*borrowed(descriptor)).ok() } else { None }
}

/// Whether the process has the file open for writing anywhere, by whatever library. If that cannot be found out, it may.
fn has_writer(file: &FileIdentity) -> bool {
    let Ok(descriptors) = std::fs::read_dir("/proc/self/fd") else { return true };
    let numbers = descriptors.filter_map(|entry| entry.ok()?.file_name().to_str()?.parse::<RawFd>().ok());
    numbers.into_iter().any(|descriptor| {
        let is_writable = flags(descriptor).is_some_and(|flags| flags & OFlags::ACCMODE != OFlags::RDONLY);
        is_writable && identity(descriptor).is_some_and(|found| found.is_file(file))
    })
}
