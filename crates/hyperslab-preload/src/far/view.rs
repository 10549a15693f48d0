//! A file at a URL, as our engine reads it.

use std::io::IoSliceMut;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hyperslab_archive::read_metadata;
use hyperslab_core::CoalescePolicy;
use hyperslab_engine::{FarStore, Identity, ReadError, Stop, Store};

use super::file::{FarFile, count, most_kept_nbytes};
use crate::signals::Blocked;

/// A file at a URL. Metadata are kept, and chunks are not.
pub(crate) struct FarView {
    file: Arc<FarFile>,
    are_metadata: AtomicBool,
    /// How many bytes of metadata may be fetched.
    left_nbytes: AtomicU64,
}

impl FarView {
    /// A view by which metadata are fetched, no more of them than can be kept together.
    pub fn of_metadata(file: Arc<FarFile>) -> Self {
        let left_nbytes = AtomicU64::new(most_kept_nbytes() as u64);
        Self { file, are_metadata: AtomicBool::new(true), left_nbytes }
    }

    /// A view by which an array is parsed first, and then read.
    pub fn of_array(file: Arc<FarFile>) -> Self {
        Self { file, are_metadata: AtomicBool::new(true), left_nbytes: AtomicU64::new(u64::MAX) }
    }

    /// The array is parsed: its chunks follow.
    pub fn is_parsed(&self) {
        self.are_metadata.store(false, Ordering::Relaxed);
    }

    fn fetch(&self, wanted: Vec<(u64, &mut [u8])>, stop: Stop<'_>) -> Result<(), ReadError> {
        let wanted = self.file.kept().take_kept(wanted);
        if wanted.is_empty() {
            return Ok(());
        }
        if !self.are_metadata.load(Ordering::Relaxed) {
            return self.file.passing().fill(wanted, stop);
        }
        let nbytes: u64 = wanted.iter().map(|(_, out)| out.len() as u64).sum();
        let left = self.left_nbytes.load(Ordering::Relaxed);
        let Some(rest) = left.checked_sub(nbytes) else { return Err(ReadError::Cancelled) };
        self.left_nbytes.store(rest, Ordering::Relaxed);
        self.file.kept().fill(wanted, stop)
    }
}

impl FarFile {
    /// Fetches all metadata, side by side. Whatever fails will fail again when the program needs it.
    pub fn fetch_metadata(self: &Arc<Self>) {
        let _blocked = Blocked::new();
        let _ = read_metadata(&FarView::of_metadata(Arc::clone(self)));
        count();
    }
}

impl Store for FarView {
    fn name(&self) -> &str {
        self.file.kept().name()
    }

    fn nbytes(&self) -> u64 {
        self.file.kept().nbytes()
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

    /// Every answer is checked when it comes.
    fn check_unchanged(&self) -> Result<(), ReadError> {
        Ok(())
    }

    fn far(&self) -> Option<&dyn FarStore> {
        Some(self)
    }
}

impl FarStore for FarView {
    fn most_in_flight(&self) -> usize {
        self.file.kept().most_in_flight()
    }

    fn identity(&self) -> Option<Identity> {
        self.file.kept().identity()
    }

    fn fill(&self, wanted: Vec<(u64, &mut [u8])>, stop: Stop<'_>) -> Result<(), ReadError> {
        let done = self.fetch(wanted, stop);
        count();
        if let Err(error) = &done
            && *error != ReadError::Cancelled
        {
            self.file.failed(error);
        }
        done
    }
}
