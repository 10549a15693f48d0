//! Files that the caller holds: as bytes in memory, or as an object that reads ranges of them.

use std::io::IoSliceMut;

use hyperslab_core::CoalescePolicy;

use super::contract::{FarStore, Stop, Store};
use super::remote::{Identity, counted};
use crate::read_error::ReadError;

/// A file whose bytes are in memory.
pub struct MemoryStore<B> {
    name: String,
    bytes: B,
}

impl<B: AsRef<[u8]>> MemoryStore<B> {
    /// These bytes, with a name for people.
    pub fn new(name: String, bytes: B) -> Self {
        Self { name, bytes }
    }

    fn part(&self, offset: u64, nbytes: usize) -> Result<&[u8], ReadError> {
        let bytes = self.bytes.as_ref();
        let start = usize::try_from(offset).ok();
        let range = start.and_then(|start| Some(start..start.checked_add(nbytes)?));
        range.and_then(|range| bytes.get(range)).ok_or_else(|| ReadError::Truncated {
            file: self.name.clone(),
            offset,
            nbytes: nbytes as u64,
            file_nbytes: bytes.len() as u64,
        })
    }
}

impl<B: AsRef<[u8]> + Send + Sync> Store for MemoryStore<B> {
    fn name(&self) -> &str {
        &self.name
    }

    fn nbytes(&self) -> u64 {
        self.bytes.as_ref().len() as u64
    }

    fn policy(&self) -> CoalescePolicy {
        CoalescePolicy::LOCAL
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        out.copy_from_slice(self.part(offset, out.len())?);
        Ok(())
    }

    fn read_vectored(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError> {
        let mut rest = self.part(offset, parts.iter().map(|part| part.len()).sum())?;
        for part in parts {
            let (now, later) = rest.split_at(part.len());
            part.copy_from_slice(now);
            rest = later;
        }
        Ok(())
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        Ok(())
    }
}

/// An object of the caller that reads ranges of one file.
pub trait RangeReader: Send + Sync {
    /// Fills buffers, each with the bytes that start at its offset, side by side if it can. Errors are for people.
    fn read(&self, wanted: &mut [(u64, &mut [u8])]) -> Result<(), String>;
}

/// A file that an object of the caller reads.
pub struct GivenStore {
    /// The file's name for people.
    pub name: String,
    /// Its length.
    pub nbytes: u64,
    /// The name under which its requests are counted.
    pub host: String,
    /// What reads it.
    pub reader: Box<dyn RangeReader>,
    /// How many requests may be worth making at a time.
    pub most_in_flight: usize,
}

impl Store for GivenStore {
    fn name(&self) -> &str {
        &self.name
    }

    fn nbytes(&self) -> u64 {
        self.nbytes
    }

    fn policy(&self) -> CoalescePolicy {
        CoalescePolicy::REMOTE
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.fill(vec![(offset, out)], &|| false)
    }

    fn read_vectored(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError> {
        self.fill_following(offset, parts)
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        Ok(())
    }

    fn far(&self) -> Option<&dyn FarStore> {
        Some(self)
    }
}

impl FarStore for GivenStore {
    fn most_in_flight(&self) -> usize {
        self.most_in_flight
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn fill(&self, mut wanted: Vec<(u64, &mut [u8])>, stop: Stop<'_>) -> Result<(), ReadError> {
        let file = || self.name.clone();
        for (offset, out) in &wanted {
            let (offset, nbytes) = (*offset, out.len() as u64);
            if offset.checked_add(nbytes).is_none_or(|end| end > self.nbytes) {
                return Err(ReadError::Truncated { file: file(), offset, nbytes, file_nbytes: self.nbytes });
            }
        }
        if stop() {
            return Err(ReadError::Cancelled);
        }
        let first = wanted.first().map_or(0, |(offset, _)| *offset);
        let nbytes = wanted.iter().map(|(_, out)| out.len()).sum();
        counted(&self.host, wanted.len(), nbytes);
        self.reader.read(&mut wanted).map_err(|problem| ReadError::Remote {
            url: file(),
            offset: first,
            problem,
            remedy: "your own object reads this file: look for the fault there",
        })
    }
}
