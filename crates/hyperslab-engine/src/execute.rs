//! Executes a plan: fetches, decodes and scatters chunks. The bytes of chunks are read only here.

mod far;
mod pace;
mod sought;
mod values;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use hyperslab_core::{
    Array, Batches, ByteRange, ChunkRead, ChunkState, CoalescePolicy, FileIndex, ReadPlan, Segment, coalesce,
};

use crate::chunk_cache::{ChunkCache, ChunkKey};
use crate::codecs::{Decoded, StoredValues, decode};
use crate::error::Error;
use crate::fill::fill;
use crate::plain::{read_plain, read_plain_far, room};
use crate::read_error::ReadError;
use crate::scatter::{Destination, Target, index};
use crate::stores::{Store, Stores};
use crate::threads::{Helpers, ThreadMemory, with_helpers};
use crate::values::ValueHeap;
use pace::Pace;

/// Larger chunks are refused. No format's writer makes them, and damaged metadata must not exhaust memory.
pub const MAX_CHUNK_NBYTES: u64 = 16 << 30;
/// How many reads the calling thread looks up in the cache before it starts helpers.
const FEW_READS: u64 = 256;
/// The calling thread reads less than this alone.
const SHARED_NBYTES: u64 = 512 << 10;
/// An output of this size or more does not stay in a processor's caches.
const STREAMED_NBYTES: u64 = 32 << 20;
/// How often the caller is asked whether to go on.
const POLL: Duration = Duration::from_millis(50);

/// What to read, and how.
pub struct Execution<'a> {
    /// The plan.
    pub plan: &'a ReadPlan,
    /// The array that the plan was made for.
    pub array: &'a Array,
    /// The array's path, for errors.
    pub array_name: &'a str,
    /// Tells arrays apart in the cache.
    pub array_number: u64,
    /// The files.
    pub stores: &'a Stores,
    /// Decoded chunks of earlier reads.
    pub cache: &'a ChunkCache,
    /// The maximum number of threads, including the calling one.
    pub thread_count: usize,
    /// Whether the output has been written to before, so the system need not clear its pages.
    pub is_reused: bool,
    /// Where to put the values that elements point to; `None` if they are not wanted.
    pub values: Option<&'a ValueHeap>,
}

/// Reads the selection into `out`, in C order. The calling thread calls `poll` now and then; `true` cancels.
pub fn execute(
    execution: &Execution<'_>,
    out: &mut [u8],
    poll: &mut dyn FnMut() -> bool,
) -> Result<(), ReadError> {
    let plan = execution.plan;
    let expected = plan.element_count() * plan.element_nbytes();
    if out.len() as u64 != expected {
        return Err(ReadError::OutputSize { expected, found: out.len() as u64 });
    }
    let all = Batches::of(plan, execution.array, execution.stores.policy());
    if plan.has_gaps() || all.iter().any(Batches::leaves_out_missing) {
        fill(out, &execution.array.fill);
    }
    let done = all.into_iter().try_for_each(|batches| {
        let pace = pace(execution, &batches);
        Job::new(execution, Destination::new(&mut *out, plan, &batches), &batches, pace).run(poll)
    });
    // A file that changed explains any other failure.
    execution.stores.check_unchanged().and(done)
}

/// How to read from a far store; `None` for local stores.
fn pace(execution: &Execution<'_>, batches: &Batches) -> Option<Pace> {
    let in_flight = execution.stores.far_requests()?;
    Some(Pace::new(in_flight, execution.thread_count, batches))
}

/// Reads that threads take batch by batch.
struct Job<'a> {
    execution: &'a Execution<'a>,
    destination: Destination<'a>,
    batches: &'a Batches,
    shares: Vec<Share>,
    thread_count: usize,
    use_cache: bool,
    /// Whether rows are written past the caches: if the output's pages exist already and it is larger than any cache.
    is_streamed: bool,
    policy: CoalescePolicy,
    /// How to read from a far store; `None` if threads fetch for themselves.
    pace: Option<Pace>,
    is_over: AtomicBool,
    failure: Mutex<Option<ReadError>>,
}

/// Consecutive batches. They belong to one thread until it has none left and takes from others.
///
/// Neighbouring chunks often write to the same page of a new output. If two threads touch that page at once, both clear
/// a page and one does so in vain. With pages of 2 MiB, that costs a tenth of the time of a fast codec.
struct Share {
    next: AtomicU64,
    stop: u64,
}

impl Share {
    /// Nearly equal shares of this many batches.
    fn of(batch_count: u64, count: usize) -> Vec<Self> {
        let each = batch_count.div_ceil(count as u64).max(1);
        let share =
            |start| Self { next: AtomicU64::new(start), stop: batch_count.min(start.saturating_add(each)) };
        (0..batch_count).step_by(index(each)).map(share).collect()
    }

    /// The next batch, if one is left.
    fn take(&self) -> Option<u64> {
        let next = self.next.fetch_add(1, Ordering::Relaxed);
        (next < self.stop).then_some(next)
    }
}

/// A chunk to fetch and decode.
struct Encoded<'j> {
    file: FileIndex,
    range: ByteRange,
    filter_mask: u32,
    target: Target<'j>,
}

impl<'a> Job<'a> {
    fn new(
        execution: &'a Execution<'a>,
        destination: Destination<'a>,
        batches: &'a Batches,
        pace: Option<Pace>,
    ) -> Self {
        let most_threads = if batches.decoded_nbytes() < SHARED_NBYTES { 1 } else { batches.count() };
        let thread_count = execution.thread_count.min(index(most_threads)).max(1);
        Self {
            execution,
            destination,
            batches,
            shares: Share::of(batches.count(), thread_count),
            thread_count,
            policy: execution.stores.policy(),
            use_cache: execution.cache.has_room_for(batches.decoded_nbytes()),
            is_streamed: execution.is_reused && batches.decoded_nbytes() >= STREAMED_NBYTES,
            pace,
            is_over: AtomicBool::new(false),
            failure: Mutex::new(None),
        }
    }

    fn run(self, poll: &mut dyn FnMut() -> bool) -> Result<(), ReadError> {
        let are_few = self.batches.read_count() <= FEW_READS;
        if self.use_cache && are_few && self.take_kept() {
            return Ok(());
        }
        if let Some(pace) = &self.pace {
            self.run_far(pace, poll);
            return self.outcome();
        }
        let helpers = Helpers::grant(self.thread_count - 1);
        let job = &self;
        let mut last_poll = Instant::now();
        let mut poll_now_and_then = || {
            last_poll.elapsed() >= POLL && {
                last_poll = Instant::now();
                poll()
            }
        };
        let help = |number| job.work(number, &mut || false);
        with_helpers(index(helpers.count()), help, || job.work(0, &mut poll_now_and_then));
        self.outcome()
    }

    fn outcome(self) -> Result<(), ReadError> {
        self.failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err)
    }

    /// Copies what the cache has of a few chunks, without helpers, which would take longer to start. Returns whether
    /// that was everything.
    fn take_kept(&self) -> bool {
        let mut is_all = true;
        for position in 0..self.batches.read_count() {
            let read = self.batches.number(position).and_then(|number| self.execution.plan.read(number));
            let kept = read.and_then(|read| self.kept(&read));
            match kept.and_then(|kept| Some((kept, self.destination.claim(position)?))) {
                Some((kept, mut target)) => target.scatter(kept.decoded()),
                None => is_all = false,
            }
        }
        is_all
    }

    /// Takes batches, the thread's own share first, until none are left or something fails somewhere.
    fn work(&self, thread: usize, is_cancelled: &mut dyn FnMut() -> bool) {
        let mut memory = ThreadMemory::take();
        let mut largest = 0;
        let (before, own) = self.shares.split_at(thread.min(self.shares.len()));
        let mut shares = own.iter().chain(before).peekable();
        while let Some(share) = shares.peek().filter(|_| !self.is_over.load(Ordering::Relaxed)) {
            let Some(batch) = share.take() else {
                shares.next();
                continue;
            };
            let done = self.read_batch(batch, &mut memory, &mut largest);
            let done = done.and_then(|()| if is_cancelled() { Err(ReadError::Cancelled) } else { Ok(()) });
            if let Err(error) = done {
                self.fail(error);
            }
        }
        memory.leave(largest);
    }

    fn fail(&self, error: ReadError) {
        self.is_over.store(true, Ordering::Relaxed);
        let mut failure = self.failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        failure.get_or_insert_with(|| match error {
            ReadError::System { file, problem } => {
                ReadError::Unfetched { array: self.execution.array_name.to_owned(), file, problem }
            }
            other => other,
        });
    }

    fn read_batch(
        &self,
        batch: u64,
        memory: &mut ThreadMemory,
        largest: &mut usize,
    ) -> Result<(), ReadError> {
        let mut encoded = Vec::new();
        for position in self.batches.positions(batch) {
            let Some(mut target) = self.destination.claim(position) else { continue };
            let Some(segment) = self.segment(&target.read) else { continue };
            *largest = (*largest).max(index(self.chunk_nbytes(&target.read)));
            match segment.manifest.state(target.read.chunk) {
                ChunkState::Missing => target.rows(|_, out| fill(out, &segment.fill)),
                ChunkState::Inline(bytes) => self.put(segment, 0, bytes, 0, target, memory)?,
                ChunkState::Sought { file } => self.read_sought(segment, file, target, memory)?,
                ChunkState::Stored { file, range, .. }
                    if !target.read.is_fetched_whole(self.element_nbytes(), self.policy) =>
                {
                    let store = self.execution.stores.get(file)?;
                    self.read_plain(segment, &*store, range, &mut target, &mut memory.fetched)?;
                    if file != 0 {
                        store.check_unchanged()?;
                    }
                }
                ChunkState::Stored { file, range, filter_mask } => {
                    if let Some(kept) = self.kept(&target.read) {
                        target.scatter(kept.decoded());
                    } else {
                        let range = target.read.whole_range(range, self.element_nbytes());
                        encoded.push(Encoded { file, range, filter_mask, target });
                    }
                }
            }
        }
        self.read_encoded(encoded, memory)
    }

    fn read_plain(
        &self,
        segment: &Segment,
        store: &dyn Store,
        range: ByteRange,
        target: &mut Target<'_>,
        memory: &mut Vec<u8>,
    ) -> Result<(), ReadError> {
        let expected = self.chunk_nbytes(&target.read);
        if range.length < expected {
            let problem = Error::DecodedSize {
                codec: "stored bytes",
                expected: index(expected),
                found: index(range.length),
            };
            return Err(self.chunk_error(segment, &target.read, store.name(), range.offset, problem));
        }
        let read = match store.far() {
            Some(far) => read_plain_far(far, range, target, &|| self.is_over.load(Ordering::Relaxed)),
            None => read_plain(store, range, target, memory, self.is_streamed),
        };
        read.map_err(|error| match error {
            ReadError::Truncated { file, file_nbytes, .. } => {
                let problem = Error::PastEnd { nbytes: range.length, file_nbytes };
                self.chunk_error(segment, &target.read, &file, range.offset, problem)
            }
            other => other,
        })
    }

    /// Fetches neighbours together, then decodes them one by one.
    fn read_encoded(
        &self,
        mut encoded: Vec<Encoded<'_>>,
        memory: &mut ThreadMemory,
    ) -> Result<(), ReadError> {
        encoded.sort_by_key(|chunk| (chunk.file, chunk.range));
        let mut encoded = encoded.into_iter().peekable();
        while let Some(first) = encoded.next() {
            let file = first.file;
            let mut of_file = vec![first];
            while let Some(next) = encoded.next_if(|next| next.file == file) {
                of_file.push(next);
            }
            let store = self.execution.stores.get(file)?;
            let done = self.read_file(&*store, of_file, memory);
            if file != 0 {
                store.check_unchanged()?;
            }
            done?;
        }
        Ok(())
    }

    fn read_file(
        &self,
        store: &dyn Store,
        encoded: Vec<Encoded<'_>>,
        memory: &mut ThreadMemory,
    ) -> Result<(), ReadError> {
        self.check_within(store, &encoded)?; // before memory is allocated
        let ranges: Vec<ByteRange> = encoded.iter().map(|chunk| chunk.range).collect();
        if let (Some(far), Some(pace)) = (store.far(), &self.pace) {
            return self.read_far(far, pace, encoded, &ranges, memory);
        }
        let mut encoded = encoded.into_iter();
        let mut fetched = std::mem::take(&mut memory.fetched);
        for merged in coalesce(&ranges, store.policy()) {
            let ByteRange { offset, length } = merged.range;
            store.read_into(offset, room(&mut fetched, index(length)))?;
            for chunk in encoded.by_ref().take(merged.members.len()) {
                let start = index(chunk.range.offset - offset);
                let bytes = &fetched[start..start + index(chunk.range.length)];
                let Some(segment) = self.segment(&chunk.target.read) else { continue };
                self.put(segment, chunk.filter_mask, bytes, chunk.range.offset, chunk.target, memory)?;
            }
        }
        memory.fetched = fetched;
        Ok(())
    }

    /// A chunk past the end of its file counts as damage of that chunk only.
    fn check_within(&self, store: &dyn Store, encoded: &[Encoded<'_>]) -> Result<(), ReadError> {
        let file_nbytes = store.nbytes();
        let past = encoded.iter().find(|chunk| chunk.range.end() > file_nbytes);
        let segment = past.and_then(|past| Some((past, self.segment(&past.target.read)?)));
        segment.map_or(Ok(()), |(Encoded { range, target, .. }, segment)| {
            let problem = Error::PastEnd { nbytes: range.length, file_nbytes };
            Err(self.chunk_error(segment, &target.read, store.name(), range.offset, problem))
        })
    }

    /// Decodes a chunk and copies its elements to where they belong.
    fn put(
        &self,
        segment: &Segment,
        filter_mask: u32,
        bytes: &[u8],
        offset: u64,
        mut target: Target<'_>,
        memory: &mut ThreadMemory,
    ) -> Result<(), ReadError> {
        if let Some(stored) = StoredValues::of(&segment.codecs) {
            return self.put_values(segment, stored, bytes, offset, &mut target, memory);
        }
        let read = &target.read;
        let codecs = if read.is_plain { &[][..] } else { &segment.codecs[..] };
        let decoded_nbytes = self.chunk_nbytes(read);
        let fits = if decoded_nbytes <= MAX_CHUNK_NBYTES {
            Ok(())
        } else {
            Err(Error::OutOfMemory { nbytes: index(decoded_nbytes) })
        };
        let decoded = fits
            .and_then(|()| {
                decode(codecs, read.chunk, filter_mask, bytes, index(decoded_nbytes), &mut memory.scratch)
            })
            .map_err(|problem| {
                self.chunk_error(segment, read, &self.file_name(segment, read), offset, problem)
            })?;
        self.keep(read, decoded);
        target.scatter(decoded);
        Ok(())
    }

    fn segment(&self, read: &ChunkRead<'_>) -> Option<&'a Segment> {
        self.execution.array.segments.as_ref().ok()?.get(read.segment)
    }

    fn element_nbytes(&self) -> u64 {
        self.execution.plan.element_nbytes()
    }

    fn chunk_nbytes(&self, read: &ChunkRead<'_>) -> u64 {
        read.chunk_element_count.saturating_mul(self.element_nbytes())
    }

    fn key(&self, read: &ChunkRead<'_>) -> ChunkKey {
        // Segments of one array that share a manifest use the same chunks, decoded in the same way. A single segment's
        // manifest may be made anew for each read.
        let are_many = self.execution.array.segments.as_ref().is_ok_and(|segments| segments.len() > 1);
        let segment = self.segment(read).filter(|_| are_many);
        let manifest = segment.map_or(0, |segment| Arc::as_ptr(&segment.manifest) as usize);
        (self.execution.array_number, manifest, read.chunk)
    }

    fn is_partial(&self, read: &ChunkRead<'_>) -> bool {
        self.use_cache && !read.is_plain && read.placement.element_count() < read.chunk_element_count
    }

    fn kept(&self, read: &ChunkRead<'_>) -> Option<Arc<crate::chunk_cache::KeptChunk>> {
        if self.is_partial(read) { self.execution.cache.get(self.key(read)) } else { None }
    }

    fn keep(&self, read: &ChunkRead<'_>, decoded: Decoded<'_>) {
        if self.is_partial(read) {
            self.execution.cache.insert(self.key(read), decoded);
        }
    }

    fn file_name(&self, segment: &Segment, read: &ChunkRead<'_>) -> String {
        let stores = self.execution.stores;
        match segment.manifest.state(read.chunk) {
            ChunkState::Stored { file, .. } => {
                stores.get(file).map_or_else(|_| stores.name(), |store| store.name().to_owned())
            }
            ChunkState::Sought { file } => stores.name_of(file),
            ChunkState::Inline(_) | ChunkState::Missing => stores.name(),
        }
    }

    fn chunk_error(
        &self,
        segment: &Segment,
        read: &ChunkRead<'_>,
        file: &str,
        offset: u64,
        problem: Error,
    ) -> ReadError {
        ReadError::Chunk {
            file: file.to_owned(),
            array: self.execution.array_name.to_owned(),
            chunk_index: segment.grid.chunk_index(read.chunk).unwrap_or_default(),
            offset,
            problem,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_hold_every_batch_once() {
        for (batches, count) in [(0, 2), (1, 1), (7, 2), (4, 4), (9, 4), (1000, 3)] {
            let shares = Share::of(batches, count);
            assert!(shares.len() <= count);
            let taken = shares.iter().flat_map(|share| std::iter::from_fn(|| share.take()));
            assert_eq!(taken.collect::<Vec<u64>>(), (0..batches).collect::<Vec<u64>>());
        }
    }
}
