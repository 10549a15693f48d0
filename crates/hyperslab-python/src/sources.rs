//! Sources of bytes as parsers want them: files of this machine, and files far away.

use std::sync::Mutex;

use hyperslab_core::ByteRange;
use hyperslab_engine::{FileStore, ReadError, RemoteStore, Store};
use hyperslab_parsers::{FetchError, Source};
use pyo3::prelude::*;

/// A local file.
pub(crate) struct LocalSource<'a>(pub(crate) &'a FileStore);

impl Source for LocalSource<'_> {
    fn length(&self) -> u64 {
        self.0.nbytes()
    }

    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
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

    fn held(&self, range: &ByteRange) -> Option<&[u8]> {
        self.head.get(usize::try_from(range.offset).ok()?..usize::try_from(range.end()).ok()?)
    }
}

impl Source for RemoteSource<'_> {
    fn length(&self) -> u64 {
        self.store.nbytes()
    }

    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
        let missing: Vec<ByteRange> =
            ranges.iter().filter(|range| self.held(range).is_none()).copied().collect();
        let mut fetched = Vec::new().into_iter();
        if !missing.is_empty() {
            let read = self.store.read_round(&missing, &|| self.interrupts.are_pending()).map_err(|error| {
                let said = FetchError(error.to_string());
                *self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(error);
                said
            });
            fetched = read?.into_iter();
        }
        let part =
            |range| self.held(range).map_or_else(|| fetched.next().unwrap_or_default(), <[u8]>::to_vec);
        Ok(ranges.iter().map(part).collect())
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
