//! Remote files, on web servers and in object stores, read by ranges.
//!
//! | noun | home |
//! |---|---|
//! | [`RemoteStore`] | an open object: this file |
//! | [`Location`], [`RemoteOptions`] | which object, and how to reach it: `location`, `options` |
//! | [`UrlParts`] | whether a URL is below another: `url_parts` |
//! | [`RemoteFolder`] | objects by key below one URL: `folder` |
//! | fetched bytes, kept if the user asks for it | `byte_cache` |
//! | fetching one range: attempts, waits, what errors mean | `fetch` |
//! | counted and checked HTTP; redirects; logins not accepted yet | `transport`; `redirect`; `login` |
//! | a host's pace and statistics | `host` |
//! | runtime and connections of this process | `process` |

mod byte_cache;
mod fetch;
mod folder;
mod host;
pub(super) mod identity;
mod location;
mod login;
mod options;
mod process;
mod redirect;
mod refusal;
mod transport;
mod url_parts;

use std::collections::BTreeMap;
use std::io::IoSliceMut;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::stream::{FuturesUnordered, TryStreamExt};
use hyperslab_core::{ByteRange, CoalescePolicy};

use super::contract::{ROUND_PART_NBYTES, at_offsets};
use super::{FarStore, Stop, Store};
use crate::read_error::ReadError;
pub use byte_cache::ByteCache;
use fetch::{Fetcher, Wanted};
pub use folder::{Expected, ObjectEnd, RemoteFolder};
pub use host::RemoteStatistics;
pub use identity::Identity;
pub use location::Location;
pub use options::RemoteOptions;
use process::Process;
pub use url_parts::{URL_SCHEMES, UrlParts, WebUrl};

/// How often a thread that waits for the network checks whether to stop.
const POLL: Duration = Duration::from_millis(20);

/// Counts the requests and bytes of the caller's objects, as those of a host.
pub(super) fn counted(host: &str, request_count: usize, nbytes: usize) {
    let host = Process::current().host(host);
    (0..request_count).for_each(|_| host.requested());
    host.received(nbytes);
}

/// A remote object, as it was when it was opened. Threads and forked processes can share it.
pub struct RemoteStore {
    location: Location,
    options: RemoteOptions,
    /// For an object that references name, known only after the first answer.
    identity: OnceLock<Identity>,
    /// The references that name it, unless it was opened directly.
    references: Option<String>,
}

impl RemoteStore {
    /// How many requests are worth making at a time, unless options say otherwise.
    pub const MOST_IN_FLIGHT: usize = host::MOST_ALLOWED;

    /// Opens an object in one round, which also brings its first bytes: at most `head_nbytes`.
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
        let fetcher = Fetcher { location: &location, options: &options, identity: None, references: None };
        let identity = wait(&location, fetcher.fetch_head(&mut head), stop)?;
        options.cache.keep(options.kept_as.as_deref().unwrap_or(&location.name), 0, &head);
        Ok((Self { location, options, identity: identity.into(), references: None }, head))
    }

    /// An object that references name, and what it was when they were made, if they record that. Makes no request: the
    /// first answer tells whether the object has changed.
    pub fn referenced(
        location: Location,
        options: RemoteOptions,
        identity: Option<Identity>,
        references: String,
    ) -> Self {
        if let Some(most) = options.most_in_flight {
            Process::current().host(&location.host).allow_at_most(most);
        }
        let identity = identity.map_or_else(OnceLock::new, OnceLock::from);
        Self { location, options, identity, references: Some(references) }
    }

    /// What tells the object from a later one in its place, if that is known: its `ETag`, if the server gives one.
    pub fn version(&self) -> Option<String> {
        let Identity { nbytes, etag, modified } = self.identity.get()?;
        Some(etag.clone().unwrap_or_else(|| format!("{nbytes} bytes of {modified}")))
    }

    /// The same object, read with other limits, or with another cache.
    #[must_use]
    pub fn with_options(&self, options: RemoteOptions) -> Self {
        let identity = self.identity.clone();
        Self { location: self.location.clone(), options, identity, references: self.references.clone() }
    }

    /// Fills as much of these buffers as is kept. Returns what is missing.
    pub fn take_kept<'w>(&self, wanted: Vec<(u64, &'w mut [u8])>) -> Vec<(u64, &'w mut [u8])> {
        let (missing, reused_nbytes) = self.options.cache.take(self.kept_as(), wanted);
        Process::current().host(&self.location.host).reused(reused_nbytes);
        missing
    }

    /// Forgets the bytes that are kept.
    pub fn forget_kept(&self) {
        self.options.cache.forget(self.kept_as());
    }

    fn kept_as(&self) -> &str {
        self.options.kept_as.as_deref().unwrap_or(&self.location.name)
    }

    /// Fetches one part. It must be complete and belong to the known object.
    async fn fetch(&self, offset: u64, part: &mut [u8]) -> Result<(), ReadError> {
        let (location, options, references) = (&self.location, &self.options, self.references.as_deref());
        let fetcher = Fetcher { location, options, identity: self.identity.get(), references };
        let found = fetcher.fetch(Wanted::From(offset), part).await?;
        fetcher.check(self.identity.get_or_init(|| found.clone()), &found)?;
        let nbytes = part.len() as u64;
        if offset.checked_add(nbytes).is_some_and(|end| end <= found.nbytes) {
            return Ok(());
        }
        Err(ReadError::Truncated { file: location.name.clone(), offset, nbytes, file_nbytes: found.nbytes })
    }
}

impl Store for RemoteStore {
    fn name(&self) -> &str {
        &self.location.name
    }

    /// Unlimited as long as it is unknown.
    fn nbytes(&self) -> u64 {
        self.identity.get().map_or(u64::MAX, |identity| identity.nbytes)
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

    fn identity(&self) -> Option<Identity> {
        self.identity.get().cloned()
    }

    fn fill(&self, wanted: Vec<(u64, &mut [u8])>, stop: Stop<'_>) -> Result<(), ReadError> {
        wait(&self.location, self.filled(wanted), stop)
    }

    fn read_round(&self, ranges: &[ByteRange], stop: Stop<'_>) -> Result<Vec<Vec<u8>>, ReadError> {
        Process::current().host(&self.location.host).waited();
        let mut fetched = self.room(ranges)?;
        let part_nbytes = usize::try_from(ROUND_PART_NBYTES).unwrap_or(usize::MAX);
        wait(&self.location, self.filled_by(part_nbytes, at_offsets(ranges, &mut fetched)), stop)?;
        Ok(fetched)
    }
}

impl RemoteStore {
    /// Fills buffers with the bytes from their offsets on, in parts side by side.
    async fn filled(&self, wanted: Vec<(u64, &mut [u8])>) -> Result<(), ReadError> {
        self.filled_by(part_nbytes(), wanted).await
    }

    /// The same in parts of at most so many bytes.
    async fn filled_by(&self, part_nbytes: usize, wanted: Vec<(u64, &mut [u8])>) -> Result<(), ReadError> {
        let (wanted, reused_nbytes) = self.options.cache.take(self.kept_as(), wanted);
        Process::current().host(&self.location.host).reused(reused_nbytes);
        let fetches: FuturesUnordered<_> = wanted
            .into_iter()
            .flat_map(|(offset, out)| (offset..).step_by(part_nbytes).zip(out.chunks_mut(part_nbytes)))
            .map(|(offset, part)| async move {
                self.fetch(offset, part).await?;
                self.options.cache.keep(self.kept_as(), offset, part);
                Ok(())
            })
            .collect();
        fetches.try_collect::<()>().await
    }
}

/// The most that one request for chunks asks for.
fn part_nbytes() -> usize {
    usize::try_from(CoalescePolicy::REMOTE.part_nbytes).unwrap_or(usize::MAX)
}

/// Waits for the network on the calling thread, and checks now and then whether to stop.
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

/// What this process asked of each host, by name.
pub fn remote_statistics() -> BTreeMap<String, RemoteStatistics> {
    let hosts = Process::current().hosts();
    hosts.into_iter().map(|(name, host)| (name, host.statistics())).collect()
}
