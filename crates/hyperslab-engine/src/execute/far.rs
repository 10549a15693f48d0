//! Reads from far stores: many threads that mostly wait for the network, as many decoders as there are cores, and a
//! calling thread that only checks whether to go on.

use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use hyperslab_core::{ByteRange, coalesce};

use super::pace::Pace;
use super::{Encoded, Job};
use crate::read_error::ReadError;
use crate::scatter::index;
use crate::stores::FarStore;
use crate::threads::{ThreadMemory, join_all};

/// How often the caller is asked whether to go on.
const POLL: Duration = Duration::from_millis(20);

impl Job<'_> {
    /// Lets threads work, and asks now and then whether to go on.
    pub(super) fn run_far(&self, pace: &Pace, poll: &mut dyn FnMut() -> bool) {
        std::thread::scope(|scope| {
            let (at_work, all_done) = channel::<()>();
            let mut started = Vec::new();
            for _ in 0..pace.thread_count {
                let at_work = at_work.clone();
                started.extend(std::thread::Builder::new().spawn_scoped(scope, move || {
                    self.work(0, &mut || false);
                    drop(at_work);
                }));
            }
            drop(at_work);
            if started.is_empty() {
                return self.work(0, poll);
            }
            while matches!(all_done.recv_timeout(POLL), Err(RecvTimeoutError::Timeout)) {
                if !self.is_over.load(Ordering::Relaxed) && poll() {
                    self.fail(ReadError::Cancelled);
                }
            }
            join_all(started);
        });
    }

    /// Fetches all that a batch needs side by side, then decodes it.
    pub(super) fn read_far(
        &self,
        store: &dyn FarStore,
        pace: &Pace,
        encoded: Vec<Encoded<'_>>,
        ranges: &[ByteRange],
        memory: &mut ThreadMemory,
    ) -> Result<(), ReadError> {
        let merged = coalesce(ranges, store.policy());
        let requests: Vec<ByteRange> = merged.iter().map(|one| one.range).collect();
        let fetched = store.read_ranges(&requests, &|| self.is_over.load(Ordering::Relaxed))?;
        let mut encoded = encoded.into_iter();
        pace.decoders.decode(|| {
            for (one, bytes) in merged.iter().zip(&fetched) {
                for chunk in encoded.by_ref().take(one.members.len()) {
                    let start = index(chunk.range.offset - one.range.offset);
                    let part = &bytes[start..start + index(chunk.range.length)];
                    let Some(segment) = self.segment(&chunk.target.read) else { continue };
                    self.put(segment, chunk.filter_mask, part, chunk.range.offset, chunk.target, memory)?;
                }
            }
            Ok(())
        })
    }
}
