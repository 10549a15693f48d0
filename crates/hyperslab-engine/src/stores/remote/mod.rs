//! Files far away: on web servers and in object stores, read by ranges.
//!
//! | noun | home |
//! |---|---|
//! | [`RemoteStore`] | an open object: this file |
//! | [`Location`], [`RemoteOptions`] | which object, and how to reach it: `location`, `options` |
//! | [`RemoteFolder`] | objects by their keys below one URL: `folder` |
//! | bytes that were fetched, kept on request | `byte_cache` |
//! | one range until it has come: attempts, waits, what errors mean | `fetch` |
//! | HTTP, counted and judged | `transport` |
//! | a host's pace and statistics | `host` |
//! | runtime and connections of this process | `process` |

mod byte_cache;
mod fetch;
mod folder;
mod host;
mod location;
mod options;
mod process;
mod transport;

use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, TryStreamExt};
use hyperslab_core::{ByteRange, CoalescePolicy};

use super::{FarStore, Stop, Store};
use crate::read_error::ReadError;
pub use byte_cache::ByteCache;
use fetch::{Fetcher, Identity, Wanted};
pub use folder::{Expected, ObjectEnd, RemoteFolder};
pub use host::RemoteStatistics;
pub use location::Location;
pub use options::RemoteOptions;
use process::Process;

/// Larger ranges are fetched in parts of this size, side by side.
const PART_NBYTES: usize = 2 << 20;
/// How often a wait for the network looks whether it should stop.
const POLL: Duration = Duration::from_millis(20);

/// An object far away, as it was when it was opened. Threads and forked processes can share it.
pub struct RemoteStore {
    location: Location,
    options: RemoteOptions,
    identity: Identity,
}

impl RemoteStore {
    /// Open an object with one request, which also brings its first bytes: at most `head_nbytes`.
    pub fn open(
        location: Location,
        options: RemoteOptions,
        head_nbytes: usize,
        stop: Stop<'_>,
    ) -> Result<(Self, Vec<u8>), ReadError> {
        let host = Process::current().host(&location.host);
        if let Some(most) = options.most_in_flight {
            host.allow_at_most(most);
        }
        host.waited();
        let mut head = vec![0; head_nbytes];
        let fetcher = Fetcher { location: &location, options: &options, identity: None };
        let identity = wait(&location, fetcher.fetch(Wanted::From(0), &mut head), stop)?;
        head.truncate(usize::try_from(identity.nbytes).unwrap_or(usize::MAX));
        options.cache.keep(&location.name, 0, &head);
        Ok((Self { location, options, identity }, head))
    }

    /// What tells the object from what takes its place later: its `ETag` where the server gives one.
    pub fn version(&self) -> String {
        let Identity { nbytes, etag, modified } = &self.identity;
        etag.clone().unwrap_or_else(|| format!("{nbytes} bytes of {modified}"))
    }

    /// The bytes of all ranges, side by side, as one round of reading metadata.
    pub fn read_round(&self, ranges: &[ByteRange], stop: Stop<'_>) -> Result<Vec<Vec<u8>>, ReadError> {
        Process::current().host(&self.location.host).waited();
        self.read_ranges(ranges, stop)
    }
}

impl Store for RemoteStore {
    fn name(&self) -> &str {
        &self.location.name
    }

    fn nbytes(&self) -> u64 {
        self.identity.nbytes
    }

    fn policy(&self) -> CoalescePolicy {
        CoalescePolicy::REMOTE
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.fill(vec![(offset, out)], &|| false)
    }

    fn read_vectored(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError> {
        let mut bytes = vec![0; parts.iter().map(|part| part.len()).sum()];
        self.read_into(offset, &mut bytes)?;
        let mut rest = bytes.as_slice();
        for part in parts {
            let (now, later) = rest.split_at(part.len());
            part.copy_from_slice(now);
            rest = later;
        }
        Ok(())
    }

    /// Every answer is checked when it comes.
    fn check_unchanged(&self) -> Result<(), ReadError> {
        Ok(())
    }

    fn far(&self) -> Option<&dyn FarStore> {
        Some(self)
    }
}

impl FarStore for RemoteStore {
    fn most_in_flight(&self) -> usize {
        self.options.most_in_flight.unwrap_or(host::MOST_ALLOWED)
    }

    fn fill(&self, wanted: Vec<(u64, &mut [u8])>, stop: Stop<'_>) -> Result<(), ReadError> {
        wait(&self.location, self.filled(wanted), stop)
    }
}

impl RemoteStore {
    /// Fill buffers, each with the bytes from its offset on, in parts side by side.
    async fn filled(&self, wanted: Vec<(u64, &mut [u8])>) -> Result<(), ReadError> {
        let (location, options, identity) = (&self.location, &self.options, Some(&self.identity));
        let fetcher = &Fetcher { location, options, identity };
        let (wanted, reused_nbytes) = options.cache.take(&location.name, wanted);
        Process::current().host(&location.host).reused(reused_nbytes);
        let fetches: FuturesUnordered<_> = wanted
            .into_iter()
            .flat_map(|(offset, out)| (offset..).step_by(PART_NBYTES).zip(out.chunks_mut(PART_NBYTES)))
            .map(|(offset, part)| async move {
                fetcher.fetch(Wanted::From(offset), part).await?;
                options.cache.keep(&location.name, offset, part);
                Ok(())
            })
            .collect();
        fetches.try_collect::<()>().await
    }
}

/// Wait for the network on the calling thread, looking now and then whether to stop.
fn wait<T>(
    location: &Location,
    work: impl Future<Output = Result<T, ReadError>>,
    stop: Stop<'_>,
) -> Result<T, ReadError> {
    let runtime = Process::current().runtime();
    let runtime = runtime.map_err(|problem| ReadError::System { file: location.name.clone(), problem })?;
    runtime.block_on(async {
        let mut work = std::pin::pin!(work);
        loop {
            match tokio::time::timeout(POLL, &mut work).await {
                Ok(done) => return done,
                Err(_) if stop() => return Err(ReadError::Cancelled),
                Err(_) => {}
            }
        }
    })
}

/// What hosts were asked by this process, by their names.
pub fn remote_statistics() -> BTreeMap<String, RemoteStatistics> {
    let hosts = Process::current().hosts();
    hosts.into_iter().map(|(name, host)| (name, host.statistics())).collect()
}
