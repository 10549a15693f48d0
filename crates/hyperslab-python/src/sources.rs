//! Sources of bytes as parsers want them: files of this machine, and files far away.

use std::sync::Mutex;

use hyperslab_core::ByteRange;
use hyperslab_engine::{ReadError, RemoteStore, Store};
use hyperslab_parsers::{FetchError, Source};
use pyo3::prelude::*;

/// A file of this machine, or one far away that nobody interrupts.
pub(crate) struct LocalSource<'a>(pub(crate) &'a dyn Store);

impl Source for LocalSource<'_> {
    fn length(&self) -> u64 {
        self.0.nbytes()
    }

    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
        if let Some(far) = self.0.far() {
            return far.read_ranges(ranges, &|| false).map_err(|error| FetchError(error.to_string()));
        }
        let read = |range: &ByteRange| {
            let mut bytes = vec![0; usize::try_from(range.length).unwrap_or(usize::MAX)];
            self.0.read_into(range.offset, &mut bytes).map_err(|error| FetchError(error.to_string()))?;
            Ok(bytes)
        };
        ranges.iter().map(read).collect()
    }
}

/// A remote file, of which the first bytes are here already.
pub(crate) struct RemoteSource<'a> {
    store: &'a RemoteStore,
    head: &'a [u8],
    interrupts: &'a Interrupts,
    failure: Mutex<Option<ReadError>>,
}

impl<'a> RemoteSource<'a> {
    pub(crate) fn new(store: &'a RemoteStore, head: &'a [u8], interrupts: &'a Interrupts) -> Self {
        Self { store, head, interrupts, failure: Mutex::new(None) }
    }

    /// Why bytes could not be fetched, if that is what went wrong.
    pub(crate) fn failure(self) -> Option<ReadError> {
        self.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// The part of a range that is here, and the rest, which is not.
    fn split(&self, range: ByteRange) -> (&[u8], ByteRange) {
        let start = usize::try_from(range.offset).unwrap_or(usize::MAX).min(self.head.len());
        let stop = usize::try_from(range.end()).unwrap_or(usize::MAX).min(self.head.len());
        let held = &self.head[start..stop];
        let nbytes = held.len() as u64;
        (held, ByteRange { offset: range.offset + nbytes, length: range.length - nbytes })
    }

    fn fetch(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
        if ranges.is_empty() {
            return Ok(Vec::new());
        }
        self.store.read_round(ranges, &|| self.interrupts.are_pending()).map_err(|error| {
            let said = FetchError(error.to_string());
            *self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
            said
        })
    }
}

impl Source for RemoteSource<'_> {
    fn length(&self) -> u64 {
        self.store.nbytes()
    }

    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
        let parts: Vec<_> = ranges.iter().map(|&range| self.split(range)).collect();
        let missing: Vec<ByteRange> =
            parts.iter().map(|(_, rest)| *rest).filter(|rest| rest.length > 0).collect();
        let mut fetched = self.fetch(&missing)?.into_iter();
        let whole = |(held, rest): (&[u8], ByteRange)| {
            let mut bytes = held.to_vec();
            if rest.length > 0 {
                bytes.append(&mut fetched.next().unwrap_or_default());
            }
            bytes
        };
        Ok(parts.into_iter().map(whole).collect())
    }
}

/// Signals whose handlers raised while Rust waited.
#[derive(Default)]
pub(crate) struct Interrupts(Mutex<Option<PyErr>>);

impl Interrupts {
    /// Let the interpreter handle signals; whether one raised.
    pub(crate) fn are_pending(&self) -> bool {
        #[allow(clippy::redundant_closure_for_method_calls)] // a path is of one lifetime only
        let Err(error) = Python::attach(|py| py.check_signals()) else { return false };
        *self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
        true
    }

    /// What was raised.
    pub(crate) fn raised(self) -> Option<PyErr> {
        self.0.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}
