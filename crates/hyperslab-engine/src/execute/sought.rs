//! Chunks that are files of their own and may not exist. Each is opened when it is read.

use std::sync::atomic::Ordering;

use hyperslab_core::{ByteRange, FileIndex, Segment};

use super::Job;
use crate::codecs::StoredValues;
use crate::error::Error;
use crate::fill::fill;
use crate::plain::room;
use crate::read_error::ReadError;
use crate::scatter::{Target, index};
use crate::stores::{Expected, FileStore, Found, Store};
use crate::threads::ThreadMemory;

/// The most bytes that a chunk of values of variable length can have: numcodecs' codecs accept no more.
const MOST_VALUES_NBYTES: usize = 2 << 30;

/// The most bytes that a stored chunk can have with any codecs. We read no more.
fn most_nbytes(segment: &Segment, decoded_nbytes: usize) -> usize {
    let most = decoded_nbytes.saturating_mul(4).saturating_add(16 << 20);
    if StoredValues::of(&segment.codecs).is_some() { most.max(MOST_VALUES_NBYTES) } else { most }
}

impl Job<'_> {
    /// Reads a chunk from its file. Without a file, the chunk is the fill value.
    pub(super) fn read_sought(
        &self,
        segment: &Segment,
        file: FileIndex,
        mut target: Target<'_>,
        memory: &mut ThreadMemory,
    ) -> Result<(), ReadError> {
        if let Some(kept) = self.kept(&target.read) {
            target.scatter(kept.decoded());
            return Ok(());
        }
        let decoded_nbytes = index(self.chunk_nbytes(&target.read));
        let expected = Expected { likely: decoded_nbytes, most: most_nbytes(segment, decoded_nbytes) };
        let stop = || self.is_over.load(Ordering::Relaxed);
        match (self.execution.stores.find(file, expected, &stop)?, &self.pace) {
            (Found::Nothing, _) => target.rows(|_, out| fill(out, &segment.fill)),
            (Found::Open(store), _) => self.read_found(segment, &store, target, memory)?,
            (Found::Fetched(bytes), None) => self.put(segment, 0, &bytes, 0, target, memory)?,
            (Found::Fetched(bytes), Some(pace)) => {
                pace.decoders.decode(|| self.put(segment, 0, &bytes, 0, target, memory))?;
            }
        }
        Ok(())
    }

    fn read_found(
        &self,
        segment: &Segment,
        store: &FileStore,
        mut target: Target<'_>,
        memory: &mut ThreadMemory,
    ) -> Result<(), ReadError> {
        let range = ByteRange { offset: 0, length: store.nbytes() };
        let expected = index(self.chunk_nbytes(&target.read));
        if index(range.length) > most_nbytes(segment, expected) {
            let problem = Error::DecodedSize { codec: "stored bytes", expected, found: index(range.length) };
            return Err(self.chunk_error(segment, &target.read, store.name(), 0, problem));
        }
        if target.read.is_fetched_whole(self.element_nbytes(), self.policy) {
            let range = target.read.whole_range(range, self.element_nbytes());
            let mut fetched = std::mem::take(&mut memory.fetched);
            let bytes = room(&mut fetched, index(range.length));
            let done = store.read_into(0, bytes);
            done.and_then(|()| self.put(segment, 0, bytes, 0, target, memory))?;
            memory.fetched = fetched;
        } else {
            self.read_plain(segment, store, range, &mut target, &mut memory.fetched)?;
        }
        store.check_unchanged()
    }
}
