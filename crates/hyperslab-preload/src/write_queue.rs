//! Writes that wait: while the program goes on, threads of ours encode their chunks. They are stored in the order of the
//! program's calls, on the program's own threads, under the library's lock, before any call that could see the difference.
//!
//! Our threads never call a library. They live as long as there is something to encode.

#![allow(unsafe_code)]

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::Write as _;
use std::mem::ManuallyDrop;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use hyperslab_engine::default_thread_count;
use hyperslab_libhdf5::libraries::Libhdf5;
use hyperslab_libhdf5::{
    Array, ArrayKey, Boxes, Id, Library, Owned, Quiet, Real, SetAside, Space, has_failed,
};

use crate::counts::{self, Count};
use crate::lock::Lock;
use crate::settings::settings;
use crate::signals::Blocked;
use crate::stack;
use crate::whole_chunks::WholeChunks;

/// How many writes wait at most.
const MOST: usize = 64;

/// A write of whole chunks.
pub(crate) struct Write {
    /// The lock of the library that it is meant for, which the calling thread holds.
    pub lock: &'static Lock,
    /// `H5Dwrite`.
    pub real: Real,
    pub libhdf5: &'static Libhdf5,
    pub array: Id,
    pub key: ArrayKey,
    pub chunks: WholeChunks,
}

/// Why a write does not wait.
pub(crate) enum NotPut {
    /// There is too little memory.
    NoRoom,
    /// One that waited could not be stored. libhdf5 has the errors.
    Failed,
}

/// The encoded chunks of a write with the masks of skipped filters, in their order; `None` if we failed.
type Encoded = Option<Vec<(Vec<u8>, u32)>>;

#[derive(Default)]
enum State {
    #[default]
    New,
    Begun,
    Done(Encoded),
}

struct Job {
    write: Write,
    /// Keeps the array open until the write is stored. Only threads that have the library's lock use it.
    array: Mutex<Option<Owned<Array<'static>>>>,
    bytes: Vec<u8>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Arc<Job>>,
    to_encode: VecDeque<Arc<Job>>,
    /// The bytes of all that wait.
    nbytes: usize,
    /// How many threads encode.
    threads: usize,
}

static QUEUE: Mutex<Queue> =
    Mutex::new(Queue { waiting: VecDeque::new(), to_encode: VecDeque::new(), nbytes: 0, threads: 0 });
/// How many writes wait: nearly always none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

/// Whether any write waits.
#[inline]
pub(crate) fn is_waiting() -> bool {
    COUNT.load(Ordering::Relaxed) > 0
}

fn queue() -> MutexGuard<'static, Queue> {
    QUEUE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The most bytes that wait.
fn most_nbytes() -> usize {
    settings().memory_nbytes / 4
}

/// Lets a write wait. The bytes are copied.
pub(crate) fn put(write: Write, bytes: &[u8]) -> Result<(), NotPut> {
    let lock = write.lock;
    if bytes.len() > most_nbytes() {
        return Err(NotPut::NoRoom);
    }
    while is_full(bytes.len()) {
        let oldest = next(lock).ok_or(NotPut::NoRoom)?;
        oldest.store_at_last()?;
    }
    let mut copy = Vec::new();
    copy.try_reserve_exact(bytes.len()).map_err(|_| NotPut::NoRoom)?;
    copy.extend_from_slice(bytes);
    store_at_the_end();
    let array = write.libhdf5.library().and_then(|library| library.held_array(write.array).ok());
    let array = Mutex::new(Some(array.ok_or(NotPut::NoRoom)?));
    let job = Job { write, array, bytes: copy, state: Mutex::default(), changed: Condvar::new() };
    queue().put(Arc::new(job));
    while let Some(done) = next_done(lock) {
        done.store_at_last()?;
    }
    Ok(())
}

/// Whether a write waits that goes to any of these chunks.
pub(crate) fn waits(key: ArrayKey, chunks: &WholeChunks) -> bool {
    let is_one = |job: &Arc<Job>| job.write.key == key && job.write.chunks.overlaps(chunks);
    is_waiting() && queue().waiting.iter().any(is_one)
}

/// How many writes that wait keep an array open by this identifier.
pub(crate) fn held_count(libhdf5: &Libhdf5, array: Id) -> usize {
    let is_one = |job: &&Arc<Job>| job.write.array == array && std::ptr::eq(job.write.libhdf5, libhdf5);
    if is_waiting() { queue().waiting.iter().filter(is_one).count() } else { 0 }
}

fn is_full(nbytes: usize) -> bool {
    let queue = queue();
    queue.waiting.len() >= MOST || queue.nbytes > most_nbytes() - nbytes
}

impl Queue {
    fn put(&mut self, job: Arc<Job>) {
        self.nbytes += job.bytes.len();
        self.to_encode.push_back(Arc::clone(&job));
        self.waiting.push_back(job);
        COUNT.store(self.waiting.len(), Ordering::Release);
        if self.threads < settings().thread_count.unwrap_or_else(default_thread_count) {
            let _blocked = Blocked::new(); // the thread takes none of the program's signals
            self.threads += usize::from(Builder::new().spawn(encode_all).is_ok());
        }
    }

    /// What could not be stored waits again, before all others: the next call that stores says why.
    fn put_back(&mut self, jobs: Vec<Arc<Job>>) {
        for job in jobs.into_iter().rev() {
            self.nbytes += job.bytes.len();
            self.waiting.push_front(job);
        }
        COUNT.store(self.waiting.len(), Ordering::Release);
    }

    fn take(&mut self, wanted: impl FnMut(&Arc<Job>) -> bool) -> Option<Arc<Job>> {
        let place = self.waiting.iter().position(wanted)?;
        let job = self.waiting.remove(place)?;
        self.nbytes -= job.bytes.len();
        COUNT.store(self.waiting.len(), Ordering::Release);
        Some(job)
    }
}

/// What a thread of ours does.
fn encode_all() {
    loop {
        let job = {
            let mut queue = queue();
            let Some(job) = queue.to_encode.pop_front() else {
                queue.threads -= 1;
                return;
            };
            job
        };
        job.encode();
    }
}

/// The oldest write to a library.
fn next(lock: &'static Lock) -> Option<Arc<Job>> {
    queue().take(|job| job.is_of(lock))
}

/// The same if it is encoded.
fn next_done(lock: &'static Lock) -> Option<Arc<Job>> {
    let mut queue = queue();
    let is_done = queue.waiting.iter().find(|job| job.is_of(lock)).is_some_and(|job| job.is_done());
    if is_done { queue.take(|job| job.is_of(lock)) } else { None }
}

/// Stores all writes to a library that wait. The calling thread holds its lock. Returns whether they are stored: if not,
/// libhdf5 has the errors.
#[cold]
pub(crate) fn settle(lock: &'static Lock) -> bool {
    if stack::is_enough() {
        return settle_here(lock);
    }
    let there = || std::thread::scope(|scope| scope.spawn(|| settle_here(lock)).join());
    there().unwrap_or(false)
}

fn settle_here(lock: &'static Lock) -> bool {
    let mut are_stored = true;
    for job in store_all(lock) {
        are_stored &= job.try_again();
    }
    are_stored
}

/// Stores all writes to a library that wait. Returns those that could not be stored.
fn store_all(lock: &'static Lock) -> Vec<Arc<Job>> {
    let begun = Instant::now();
    let mut failed = Vec::new();
    while let Some(oldest) = next(lock) {
        if !oldest.store() {
            failed.push(oldest);
        }
    }
    counts::add(Count::WritingNanoseconds, counts::nanoseconds(begun.elapsed()));
    failed
}

/// Stores what waits if any of it is of this array.
#[cold]
pub(crate) fn settle_array(lock: &'static Lock, key: Option<ArrayKey>) -> bool {
    let is_of_it = |job: &Arc<Job>| job.is_of(lock) && key.is_none_or(|key| job.write.key == key);
    if queue().waiting.iter().any(is_of_it) { settle(lock) } else { true }
}

impl Job {
    fn is_of(&self, lock: &'static Lock) -> bool {
        std::ptr::eq(self.write.lock, lock)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_done(&self) -> bool {
        matches!(*self.state(), State::Done(_))
    }

    /// Encodes the chunks unless another thread does.
    fn encode(&self) {
        {
            let mut state = self.state();
            if !matches!(*state, State::New) {
                return;
            }
            *state = State::Begun;
        }
        let encoded = catch_unwind(AssertUnwindSafe(|| self.encoded())).unwrap_or(None);
        *self.state() = State::Done(encoded);
        self.changed.notify_all();
    }

    fn encoded(&self) -> Encoded {
        let mut chunks = Vec::new();
        let take = |_, chunk, mask| {
            chunks.push((chunk, mask));
            Ok(())
        };
        self.write.chunks.encode(&self.bytes, 1, take).is_ok().then_some(chunks)
    }

    /// The chunks, as soon as they are encoded.
    fn finish(&self) -> Encoded {
        self.encode();
        let is_busy = |state: &mut State| !matches!(state, State::Done(_));
        let state = self.changed.wait_while(self.state(), is_busy);
        match &mut *state.unwrap_or_else(PoisonError::into_inner) {
            State::Done(encoded) => encoded.take(),
            _ => None,
        }
    }

    /// Stores the chunks. What cannot be done so, libhdf5 does.
    fn store(&self) -> bool {
        let encoded = self.finish();
        let store = || {
            let _quiet = Quiet::new(self.write.libhdf5.library()?)?;
            encoded.and_then(|chunks| self.store_chunks(&chunks)).or_else(|| self.write_plainly())
        };
        let is_stored = store().is_some();
        if is_stored {
            self.let_go();
        }
        is_stored
    }

    /// The same, and if it fails, libhdf5 tries once more, so that the last errors that it has are those of this write.
    fn store_at_last(&self) -> Result<(), NotPut> {
        if self.store() || self.try_again() { Ok(()) } else { Err(NotPut::Failed) }
    }

    fn try_again(&self) -> bool {
        let is_stored = self.write_plainly().is_some();
        let library = self.write.libhdf5.library();
        let errors = library.filter(|_| !is_stored).map(SetAside::new);
        self.let_go();
        drop(errors);
        is_stored
    }

    /// The array may be closed.
    fn let_go(&self) {
        drop(self.array.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    fn store_chunks(&self, chunks: &[(Vec<u8>, u32)]) -> Option<()> {
        let library = self.write.libhdf5.library()?;
        let stored = library.stored_chunks(self.write.array).ok()?;
        for (number, (chunk, mask)) in (0..).zip(chunks) {
            stored.write(&self.write.chunks.start(number)?, chunk, *mask).ok()?;
        }
        Some(())
    }

    /// Lets libhdf5 do the write. If it fails, it has the errors.
    fn write_plainly(&self) -> Option<()> {
        let library = self.write.libhdf5.library()?;
        let (result, errors) = self.call(library)?;
        drop(errors); // after all other calls
        (!has_failed(result)).then_some(())
    }

    fn call<'l>(&self, library: &'l Library) -> Option<(usize, Option<SetAside<'l>>)> {
        let write = &self.write;
        let argument = |id: i64| usize::try_from(id).ok();
        let array = library.array(write.array);
        let kind = array.stored_type()?;
        let shape = write.chunks.grid.shape();
        let memory = Space::created(library, shape)?;
        let file = Boxes::of(array.space()?).ok()?;
        file.select(&write.chunks.first, shape).ok()?;
        let (array, kind_number) = (argument(write.array)?, argument(kind.id())?);
        let (memory_number, file_number) = (argument(memory.id())?, argument(file.space().id())?);
        let bytes = self.bytes.as_ptr() as usize;
        // SAFETY: the function is `H5Dwrite`, and there are bytes for all elements selected.
        let result = unsafe { (write.real)(array, kind_number, memory_number, file_number, 0, bytes) };
        Some((result, has_failed(result).then(|| SetAside::new(library))))
    }
}

/// Stores what waits when the process ends, before the libraries close their files.
fn store_at_the_end() {
    static IS_KNOWN: AtomicBool = AtomicBool::new(false);
    extern "C" fn ending() {
        for lock in locks() {
            let here = 0_u8;
            let _held = lock.hold((&raw const here) as usize);
            if !settle(lock) {
                let _ = std::io::stderr().write_all(
                    b"hyperslab run: the last writes could not be stored before the program ended\n",
                );
            }
        }
    }
    if !IS_KNOWN.swap(true, Ordering::Relaxed) {
        // SAFETY: the function may be called at any time.
        unsafe { libc::atexit(ending) };
    }
}

/// The locks of the libraries whose writes wait.
fn locks() -> Vec<&'static Lock> {
    let mut locks: Vec<&'static Lock> = Vec::new();
    for job in &queue().waiting {
        if !locks.iter().any(|known| job.is_of(known)) {
            locks.push(job.write.lock);
        }
    }
    locks
}

/// How often, and how long each time, a fork waits for our threads to end.
const WAITS: usize = 1000;
const WAIT: Duration = Duration::from_millis(1);

/// The process is about to fork, and the forking thread has the locks of all libraries that others let go soon. Their
/// writes are stored, so that parent and child have them.
pub(crate) fn before_fork() {
    for lock in locks().into_iter().filter(|lock| lock.is_own()) {
        let failed = store_all(lock);
        queue().put_back(failed);
    }
    let mut waited = 0;
    let held = loop {
        let queue = queue();
        if queue.threads == 0 || waited == WAITS {
            break queue;
        }
        drop(queue);
        std::thread::sleep(WAIT);
        waited += 1;
    };
    HELD.set(Some(ManuallyDrop::new(held)));
}

thread_local! {
    /// The queue while this thread forks.
    static HELD: Cell<Option<ManuallyDrop<MutexGuard<'static, Queue>>>> = const { Cell::new(None) };
}

/// It has forked, and this is the parent.
pub(crate) fn after_fork() {
    drop(HELD.take().map(ManuallyDrop::into_inner));
}

/// It has forked, and this is the child. It has none of our threads, and what still waits is stored by its parent.
pub(crate) fn forked() {
    if let Some(mut queue) = HELD.take().map(ManuallyDrop::into_inner) {
        std::mem::forget(std::mem::take(&mut *queue)); // a thread may have been using it
    }
    COUNT.store(0, Ordering::Release);
}
