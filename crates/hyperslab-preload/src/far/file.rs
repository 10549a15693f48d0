//! One file at a URL. What libhdf5 reads of it comes in blocks that are kept; all metadata that our parser finds come when it
//! is opened, side by side, so that libhdf5 finds them here.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::{Duration, Instant};

use hyperslab_engine::{
    ByteCache, FarStore, Location, ReadError, RemoteOptions, RemoteStore, Store, lock_briefly,
    remote_statistics,
};
use hyperslab_libhdf5::{DrivenFile, Opening};

use super::failure::Failure;
use super::leading::{not_opened, target};
use super::told;
use crate::counts::{self, Count};
use crate::settings::settings;
use crate::shared::Shared;
use crate::signals::{Blocked, is_interrupted};

/// What the first request brings.
const HEAD_NBYTES: usize = 512 << 10;
/// Reads of parts that are not here fetch such blocks, and more of them the longer a program reads on from where it was.
const BLOCK_NBYTES: u64 = 64 << 10;
const MOST_WINDOW_NBYTES: u64 = 8 << 20;
/// Longer reads are not kept.
const MOST_KEPT_NBYTES: usize = 4 << 20;
/// What all files keep at least: without anything, each word of metadata would be a request.
const LEAST_NBYTES: usize = 8 << 20;
/// How all files share `HYPERSLAB_MEMORY` with decoded chunks.
const MEMORY_PART: usize = 4;
/// For how long a failure stands for later ones: libhdf5 may ask several times for the same.
const FAILURE_STANDS: Duration = Duration::from_secs(2);

/// Those that are open, by number.
pub(super) static OPEN: Shared<Open> = Shared::new();
static NEXT: AtomicU64 = AtomicU64::new(1);
static CACHE: OnceLock<Arc<ByteCache>> = OnceLock::new();

/// Files by number.
#[derive(Default)]
pub(super) struct Open(HashMap<u64, Weak<FarFile>>);

/// The file of this number, if it is open.
pub(crate) fn numbered(number: u64) -> Option<Arc<FarFile>> {
    OPEN.lock()?.0.get(&number)?.upgrade()
}

fn register(file: &Arc<FarFile>) {
    if let Some(mut open) = OPEN.lock() {
        open.0.retain(|_, file| file.strong_count() > 0);
        open.0.insert(file.number(), Arc::downgrade(file));
    }
}

/// A file at a URL, as it was when it was opened.
pub(crate) struct FarFile {
    number: u64,
    /// Its URL, with all its secrets.
    url: String,
    options: RemoteOptions,
    identity: String,
    /// Keeps what it fetches.
    kept: RemoteStore,
    /// The same file, of which nothing is kept.
    passing: RemoteStore,
    /// The first bytes.
    head: Vec<u8>,
    reads: Mutex<Reads>,
}

/// How reads go on.
#[derive(Default)]
struct Reads {
    /// Where the last block ended that was fetched, and how many bytes that fetched.
    end: u64,
    nbytes: u64,
    failure: Option<(Instant, String)>,
}

impl FarFile {
    /// Opens the file at a URL, in so many attempts if others may know more of it; later reads have as many as options say.
    pub fn open(url: &str, options: RemoteOptions, most_attempts: Option<u32>) -> Result<Arc<Self>, Failure> {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let cache = CACHE.get_or_init(|| Arc::new(ByteCache::new(most_kept_nbytes())));
        let kept_as = Some(number.to_string().into());
        let options = RemoteOptions { cache: Arc::clone(cache), kept_as, ..options };
        let location = Location::of_url(url, &options).map_err(Failure::refused)?;
        let _blocked = Blocked::new();
        let most_attempts = most_attempts.unwrap_or(u32::MAX).min(options.most_attempts);
        let opening = RemoteOptions { most_attempts, ..options.clone() };
        let opened = RemoteStore::open(location, opening, HEAD_NBYTES, &is_interrupted);
        counts::add(Count::FarFiles, 1);
        count();
        let (opened, mut head) = opened.map_err(|error| Failure::of(&error))?;
        let kept = opened.with_options(options.clone());
        head.truncate(usize::try_from(kept.nbytes()).unwrap_or(usize::MAX));
        let version = kept.identity().and_then(|identity| identity.etag);
        let told_apart = version.unwrap_or_else(|| number.to_string());
        let identity = format!("{}\0{told_apart}", kept.name());
        let passing =
            kept.with_options(RemoteOptions { cache: Arc::new(ByteCache::new(0)), ..options.clone() });
        let (url, reads) = (url.to_owned(), Mutex::default());
        let file = Arc::new(Self { number, url, options, identity, kept, passing, head, reads });
        register(&file);
        Ok(file)
    }

    /// The number of the file.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Its URL as the program gave it.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its URL without secrets.
    pub fn name(&self) -> &str {
        self.kept.name()
    }

    /// Its first bytes.
    pub fn head(&self) -> &[u8] {
        &self.head
    }

    /// The store that keeps what it fetches.
    pub fn kept(&self) -> &RemoteStore {
        &self.kept
    }

    /// The store that keeps nothing.
    pub fn passing(&self) -> &RemoteStore {
        &self.passing
    }

    /// Remembers why bytes could not be fetched.
    pub fn failed(&self, error: &ReadError) {
        if let Some(mut reads) = lock_briefly(&self.reads) {
            reads.failure = Some((Instant::now(), error.to_string()));
        }
    }

    /// Fills memory from an offset on; behind the end of the file are zeros, as libhdf5 expects.
    pub fn fill(&self, offset: u64, out: &mut [u8]) -> Result<(), String> {
        let left = usize::try_from(self.kept.nbytes().saturating_sub(offset)).unwrap_or(usize::MAX);
        let (out, behind) = out.split_at_mut(left.min(out.len()));
        behind.fill(0);
        counts::add(Count::FarReads, 1);
        if out.is_empty() || self.kept.take_kept(vec![(offset, &mut *out)]).is_empty() {
            counts::add(Count::FarReadsKept, 1);
            return Ok(());
        }
        if let Some(before) = self.recent_failure() {
            return Err(before);
        }
        let _blocked = Blocked::new();
        let done = if out.len() > MOST_KEPT_NBYTES {
            self.passing.fill(vec![(offset, out)], &is_interrupted)
        } else {
            self.fill_by_blocks(offset, out)
        };
        count();
        done.map_err(|error| {
            self.failed(&error);
            error.to_string()
        })
    }

    fn recent_failure(&self) -> Option<String> {
        let reads = lock_briefly(&self.reads)?;
        let (when, text) = reads.failure.as_ref()?;
        (when.elapsed() < FAILURE_STANDS).then(|| text.clone())
    }

    fn fill_by_blocks(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        let start = offset / BLOCK_NBYTES * BLOCK_NBYTES;
        let end = offset + out.len() as u64;
        let wanted = self.window(start, end);
        let stop = (start + wanted).max(end).next_multiple_of(BLOCK_NBYTES).min(self.kept.nbytes());
        let mut block = vec![0; usize::try_from(stop - start).unwrap_or(0)];
        self.kept.fill(vec![(start, &mut block)], &is_interrupted)?;
        let skip = usize::try_from(offset - start).unwrap_or(0);
        out.copy_from_slice(&block[skip..skip + out.len()]);
        Ok(())
    }

    /// How many bytes to fetch: twice as many as before if the program reads on.
    fn window(&self, start: u64, end: u64) -> u64 {
        let Some(mut reads) = lock_briefly(&self.reads) else { return BLOCK_NBYTES };
        let goes_on = (start..=end).contains(&reads.end);
        let most = (settings().memory_nbytes as u64 / 32).clamp(BLOCK_NBYTES, MOST_WINDOW_NBYTES);
        let nbytes = if goes_on { (2 * reads.nbytes).clamp(BLOCK_NBYTES, most) } else { BLOCK_NBYTES };
        (reads.end, reads.nbytes) = ((start + nbytes).max(end).next_multiple_of(BLOCK_NBYTES), nbytes);
        nbytes
    }
}

impl Drop for FarFile {
    fn drop(&mut self) {
        self.kept.forget_kept();
    }
}

impl DrivenFile for FarFile {
    fn number(&self) -> u64 {
        self.number
    }

    fn identity(&self) -> &str {
        &self.identity
    }

    fn nbytes(&self) -> u64 {
        self.kept.nbytes()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), String> {
        self.fill(offset, out).inspect_err(|text| told::note(text))
    }

    fn led_to(&self, name: &str) -> Opening {
        let url = target(self.kept.name(), &self.url, name)?;
        let opened = Self::open(&url, self.options.clone(), None).inspect_err(not_opened);
        Ok(opened.map_err(|failure| failure.text)?)
    }
}

/// How much of all files is kept.
pub(super) fn most_kept_nbytes() -> usize {
    (settings().memory_nbytes / MEMORY_PART).max(LEAST_NBYTES)
}

/// Tells the command what all files cost so far.
pub(crate) fn count() {
    let hosts = remote_statistics();
    let sum = |value: fn(&hyperslab_engine::RemoteStatistics) -> u64| hosts.values().map(value).sum();
    counts::set(Count::FarRequests, sum(|host| host.request_count));
    counts::set(Count::FarNbytes, sum(|host| host.fetched_nbytes));
    counts::set(Count::FarKeptNbytes, sum(|host| host.reused_nbytes));
    counts::write_sometimes();
}
