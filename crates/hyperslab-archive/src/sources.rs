//! Sources of bytes for parsers: local files and remote files.

use std::sync::{Mutex, PoisonError};

use hyperslab_core::ByteRange;
use hyperslab_engine::{Expected, FarStore, ROUND_PART_NBYTES, ReadError, RemoteFolder, Store};
use hyperslab_parsers::zarr::FarKeys;
use hyperslab_parsers::{FetchError, Source, Statistics};

use crate::interrupt::Interruptible;

/// A local file, or a remote one that nobody interrupts.
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

/// A remote file whose first bytes have been fetched already.
pub(crate) struct RemoteSource<'a> {
    store: &'a dyn FarStore,
    head: &'a [u8],
    work: &'a Interruptible<'a>,
    failure: Mutex<Option<ReadError>>,
    asked: Mutex<Statistics>,
}

impl<'a> RemoteSource<'a> {
    pub(crate) fn new(store: &'a dyn FarStore, head: &'a [u8], work: &'a Interruptible<'a>) -> Self {
        let nbytes = head.len() as u64;
        let opened = Statistics { round_count: 1, request_count: 1, fetched_nbytes: nbytes };
        let asked = Mutex::new(if head.is_empty() { Statistics::default() } else { opened });
        Self { store, head, work, failure: Mutex::new(None), asked }
    }

    /// What was asked of the server so far, with the request that brought the first bytes.
    pub(crate) fn asked(&self) -> Statistics {
        *self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why bytes could not be fetched, if that was the problem.
    pub(crate) fn failure(self) -> Option<ReadError> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    /// Splits a range into the part that is here and the rest.
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
        {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.round_count += 1;
            asked.request_count +=
                ranges.iter().map(|range| range.length.div_ceil(ROUND_PART_NBYTES)).sum::<u64>();
            asked.fetched_nbytes += ranges.iter().map(|range| range.length).sum::<u64>();
        }
        self.store.read_round(ranges, &|| self.work.is_over()).map_err(|error| {
            let said = FetchError(error.to_string());
            *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
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

/// The keys of a remote Zarr hierarchy.
pub(crate) struct RemoteKeys<'a> {
    folder: &'a RemoteFolder,
    work: &'a Interruptible<'a>,
    failure: Mutex<Option<ReadError>>,
}

impl<'a> RemoteKeys<'a> {
    pub(crate) fn new(folder: &'a RemoteFolder, work: &'a Interruptible<'a>) -> Self {
        Self { folder, work, failure: Mutex::new(None) }
    }

    /// Why keys could not be fetched, if that was the problem.
    pub(crate) fn failure(self) -> Option<ReadError> {
        self.failure.into_inner().unwrap_or_else(PoisonError::into_inner)
    }

    fn failed(&self, error: ReadError) -> FetchError {
        let said = FetchError(error.to_string());
        *self.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        said
    }
}

/// The lengths of metadata documents.
const DOCUMENT: Expected = Expected { likely: 64 << 10, most: 512 << 20 };

impl FarKeys for RemoteKeys<'_> {
    fn get(&self, keys: &[String]) -> Result<Vec<Option<Vec<u8>>>, FetchError> {
        let stop = || self.work.is_over();
        self.folder.each_whole(keys, DOCUMENT, &stop).map_err(|error| self.failed(error))
    }

    fn folders(&self, of: &[String]) -> Result<Option<Vec<Vec<String>>>, FetchError> {
        self.folder.folders(of, &|| self.work.is_over()).map_err(|error| self.failed(error))
    }
}
