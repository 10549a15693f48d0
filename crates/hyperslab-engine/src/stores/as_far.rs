//! A local file that is read as if each request took long, so that what a far reader would ask for can be counted.

use std::io::IoSliceMut;

use hyperslab_core::CoalescePolicy;

use super::contract::{FarStore, Stop, Store};
use super::file::FileStore;
use super::file_version::FileVersion;
use super::remote::{Identity, RemoteStore};
use crate::read_error::ReadError;

/// A local file with the requests of a far one.
pub struct AsFarStore(FileStore);

impl AsFarStore {
    /// The same file.
    pub fn new(file: FileStore) -> Self {
        Self(file)
    }

    /// The first bytes, which a far store brings when it is opened: at most this many.
    pub fn head(&self, most_nbytes: u64) -> Result<Vec<u8>, ReadError> {
        let nbytes = self.0.nbytes().min(most_nbytes);
        let mut head = vec![0; usize::try_from(nbytes).unwrap_or(usize::MAX)];
        self.0.read_into(0, &mut head)?;
        Ok(head)
    }
}

impl Store for AsFarStore {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn nbytes(&self) -> u64 {
        self.0.nbytes()
    }

    fn policy(&self) -> CoalescePolicy {
        CoalescePolicy::REMOTE
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
        Some(self.0.version())
    }

    fn far(&self) -> Option<&dyn FarStore> {
        Some(self)
    }
}

impl FarStore for AsFarStore {
    fn most_in_flight(&self) -> usize {
        RemoteStore::MOST_IN_FLIGHT
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn fill(&self, wanted: Vec<(u64, &mut [u8])>, stop: Stop<'_>) -> Result<(), ReadError> {
        wanted.into_iter().try_for_each(|(offset, out)| {
            if stop() { Err(ReadError::Cancelled) } else { self.0.read_into(offset, out) }
        })
    }
}
