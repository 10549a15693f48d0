//! What the recorder knows, and the log that it writes: held by one thread at a time, for moments.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};

use hyperslab_libhdf5::{Id, Place};

use super::arrays::Described;
use super::log::Log;
use super::openings::{Key, Openings};
use super::process::Process;
use super::selections::Selected;
use crate::counts::now;
use crate::settings::settings;
use crate::shared::abandon;

/// The kinds of records of `log.py`.
const ARRAY: u8 = 1;
const ACCESS: u8 = 2;
const TEXT: u8 = 3;
const EVENT: u8 = 4;
const ELEMENT: u8 = 5;
const HEAD_NBYTES: usize = 43;
const ELEMENT_NBYTES: usize = 32;
/// How many arrays are known at most.
const MOST_ARRAYS: usize = 1 << 16;
/// How many identifiers of arrays are known at most: few, so that they stay in the processor's caches.
const MOST_IDENTIFIERS: usize = 1 << 12;
const KINDS: usize = 32;
/// How many texts are known at most.
const MOST_TEXTS: usize = 1 << 14;
/// Longer than anyone holds the state.
const MOST_TRIES: usize = 100_000;

/// The device, the inode, and the time of a file's last change: seconds and nanoseconds.
pub(crate) type FileKey = (u64, u64, i64, i64);

/// One access, without its array and its selection.
pub(crate) struct Row {
    pub times: (u64, u64),
    pub operation: u8,
    pub flags: u8,
}

struct Known {
    number: u32,
    shape: Vec<u64>,
    width: u64,
    chunk: Vec<u64>,
    /// The hash of its file's name and its own.
    named: u64,
}

/// The numbers that an access needs in the log.
#[derive(Clone, Copy, Default)]
pub(crate) struct Numbers {
    pub array: u32,
    pub text: u32,
    pub width: u64,
}

/// A type in the program's memory.
#[derive(Clone, Copy)]
pub(crate) struct Kind {
    /// The number of its words in the log.
    pub text: u32,
    /// An identifier of the library's own that stands for the same type; 0 if there is none.
    pub same_as: Id,
}

/// Everything.
#[derive(Default)]
pub(crate) struct State {
    log: Option<Log>,
    is_closed: bool,
    known: Vec<Known>,
    /// Where `known` has what an identifier stands for.
    arrays: HashMap<Key, usize>,
    /// The same for arrays of files that are only read, by library and place: programs open them again and again.
    places: HashMap<(usize, Place), usize>,
    /// The numbers of what the log has described.
    numbers: Numbered,
    texts: Numbered,
    kinds: Vec<(Key, Kind)>,
    /// By library and the number that `types::simple` gives.
    simple_kinds: HashMap<(usize, u64), Kind>,
    next_kind: usize,
    /// Which arrays are open.
    pub openings: Openings,
    /// Files that were read without libhdf5, with the number in the log and the length that the log knows; `None`
    /// for those that are not recorded.
    pub files: HashMap<FileKey, Option<(u32, u64)>>,
}

/// Null while a thread has it. `NEW` stands for one that nobody has made yet.
static STATE: AtomicPtr<State> = AtomicPtr::new(NEW);
const NEW: *mut State = ptr::without_provenance_mut(align_of::<State>());

/// Begins anew. A state that was there is not freed: in a forked child, some thread may have been using it.
pub(crate) fn forget() {
    let before = STATE.swap(NEW, Ordering::AcqRel);
    abandon(if before == NEW { ptr::null_mut() } else { before.cast() });
}

/// Lets a function use the state; `None` if another thread keeps it.
#[inline]
pub(crate) fn with<R>(act: impl FnOnce(&mut State) -> R) -> Option<R> {
    /// Gives it back, also if the function panics.
    struct Taken(*mut State);
    impl Drop for Taken {
        fn drop(&mut self) {
            STATE.store(self.0, Ordering::Release);
        }
    }
    for attempt in 0..MOST_TRIES {
        let state = STATE.swap(ptr::null_mut(), Ordering::AcqRel);
        if !state.is_null() {
            let taken = Taken(if state == NEW { Box::into_raw(Box::default()) } else { state });
            // SAFETY: it was made from a box and is never freed, and nobody else has it now.
            return Some(act(unsafe { &mut *taken.0 }));
        }
        if attempt % 64 == 63 { std::thread::yield_now() } else { std::hint::spin_loop() }
    }
    None
}

/// Whether there is anything to forget or to close.
pub(crate) fn exists() -> bool {
    STATE.load(Ordering::Acquire) != NEW
}

/// Closes the log, if this process has one.
pub(crate) fn close() {
    if exists() {
        with(|state| {
            if let Some(log) = state.log.as_mut().filter(|log| log.is_of_this_process()) {
                log.close();
                state.is_closed = true;
            }
        });
    }
}

impl State {
    /// The shape of the chunks of an array, if it is known with this shape.
    pub fn chunk(&self, key: Key, shape: &[u64]) -> Option<Vec<u64>> {
        self.known_as(self.arrays.get(&key), shape).map(|known| known.chunk.clone())
    }

    /// The number of an array that has this shape, and the bytes of an element; `None` if it is not known.
    pub fn array(&self, key: Key, shape: &[u64]) -> Option<(u32, u64)> {
        let known = self.known_as(self.arrays.get(&key), shape)?;
        Some((known.number, known.width))
    }

    fn known_as(&self, place: Option<&usize>, shape: &[u64]) -> Option<&Known> {
        self.known.get(*place?).filter(|known| known.shape == shape)
    }

    /// A type in memory; `None` if it is not known.
    pub fn kind(&self, key: Key) -> Option<Kind> {
        self.kinds.iter().find(|(known, _)| *known == key).map(|(_, kind)| *kind)
    }

    /// A type in memory, by its library and what `types::simple` gives.
    pub fn simple_kind(&self, library: usize, simple: u64) -> Option<Kind> {
        self.simple_kinds.get(&(library, simple)).copied()
    }

    /// The array at this place, under another identifier: takes over what is known, if the shape is the same.
    pub fn keep_place(
        &mut self,
        key: Key,
        place: (usize, Place),
        shape: &[u64],
    ) -> Option<((u32, u64), u64)> {
        let known_at = *self.places.get(&place)?;
        let known = self.known_as(Some(&known_at), shape)?;
        let found = ((known.number, known.width), known.named);
        self.keep_identifier(key, known_at);
        Some(found)
    }

    fn keep_identifier(&mut self, key: Key, known_at: usize) {
        if self.arrays.len() >= MOST_IDENTIFIERS {
            self.arrays.clear();
        }
        self.arrays.insert(key, known_at);
    }

    /// Writes an access.
    #[inline]
    pub fn write(&mut self, row: &Row, known: Numbers, selected: &Selected) {
        let Some(log) = self.log.as_mut().filter(|_| !self.is_closed) else { return };
        let (start, took) = row.times;
        let thread = own_thread();
        let nbytes = selected.count.saturating_mul(known.width);
        let mut head = [0_u8; HEAD_NBYTES];
        for (room, value) in head.chunks_exact_mut(8).zip([start, took, thread, nbytes]) {
            room.copy_from_slice(&value.to_le_bytes());
        }
        head[32..36].copy_from_slice(&known.array.to_le_bytes());
        head[36..40].copy_from_slice(&known.text.to_le_bytes());
        head[40..].copy_from_slice(&[row.operation, row.flags, selected.kind]);
        let numbers = selected.numbers();
        let is_written = log.append(ACCESS, &[&head, bytes_of(numbers)]);
        log.count(is_written);
    }

    /// Writes an access to a single element, in as few bytes as it needs: programs make very many of these. Returns false
    /// if it took so long that it needs more.
    #[inline]
    pub fn write_element(&mut self, row: &Row, known: Numbers, index: &[u64]) -> bool {
        let Some(log) = self.log.as_mut().filter(|_| !self.is_closed) else { return true };
        let (start, took) = row.times;
        let Ok(took) = u32::try_from(took) else { return false };
        let thread = own_thread();
        let mut head = [0_u8; ELEMENT_NBYTES];
        head[..8].copy_from_slice(&start.to_le_bytes());
        head[8..16].copy_from_slice(&thread.to_le_bytes());
        head[16..20].copy_from_slice(&took.to_le_bytes());
        head[20..24].copy_from_slice(&known.array.to_le_bytes());
        head[24..28].copy_from_slice(&known.text.to_le_bytes());
        head[28..30].copy_from_slice(&[row.operation, row.flags]);
        let is_written = log.append(ELEMENT, &[&head, bytes_of(index)]);
        log.count(is_written);
        true
    }

    /// An access could not be described.
    pub fn lose(&mut self) {
        if let Some(log) = self.log.as_mut().filter(|_| !self.is_closed) {
            log.count(false);
        }
    }

    /// libhdf5 has closed an array and opened it again, under the same identifier.
    pub fn refreshed(&mut self, key: Key) {
        self.arrays.remove(&key);
        self.openings.refreshed(key);
    }

    /// Identifiers may mean something else from now on.
    pub fn forget_identifiers(&mut self) {
        self.known.clear();
        self.arrays.clear();
        self.places.clear();
        self.kinds.clear();
        self.simple_kinds.clear();
        self.openings.forget();
    }

    /// Keeps what an array is.
    pub fn keep_array(&mut self, key: Key, array: Described, place: Option<Place>) -> (u32, u64) {
        if self.known.len() >= MOST_ARRAYS {
            self.known.clear();
            self.arrays.clear();
            self.places.clear();
        }
        let number = self.number(array.text);
        let Described { shape, width, chunk, named, .. } = array;
        let known_at = self.known.len();
        self.known.push(Known { number, shape, width, chunk, named });
        self.keep_identifier(key, known_at);
        if let Some(place) = place {
            self.places.insert((key.0, place), known_at);
        }
        (number, width)
    }

    /// Keeps what a type in memory is.
    pub fn keep_kind(&mut self, key: Key, simple: Option<u64>, words: String, same_as: Id) -> Kind {
        self.begin();
        let text = self.texts.number(&mut self.log, TEXT, words, 1);
        let kind = Kind { text, same_as };
        if let Some(simple) = simple {
            self.simple_kinds.insert((key.0, simple), kind);
        }
        if self.kinds.len() < KINDS {
            self.kinds.push((key, kind));
        } else {
            self.kinds[self.next_kind] = (key, kind);
            self.next_kind = (self.next_kind + 1) % KINDS;
        }
        kind
    }

    /// The number of what a text describes, in a log that has begun.
    pub fn number(&mut self, text: String) -> u32 {
        self.begin();
        self.numbers.number(&mut self.log, ARRAY, text, 0)
    }

    /// Creates the log, at the first access.
    fn begin(&mut self) {
        let Some(folder) = &settings().trace_folder else { return };
        if self.log.is_some() || self.is_closed {
            return;
        }
        match Log::create(&folder.own_path(), &Process::own(), now()) {
            Ok(mut log) => {
                log.append(EVENT, &[Process::arguments().as_bytes()]);
                self.log = Some(log);
            }
            Err(_) => self.is_closed = true, // an empty file is left, if it could be made: it tells that something is missing
        }
    }
}

/// What tells threads apart.
#[inline]
fn own_thread() -> u64 {
    // SAFETY: the call has no effect.
    unsafe { libc::pthread_self() as u64 }
}

/// Numbers of the log: `i64` or `u64`.
trait Logged {}
impl Logged for i64 {}
impl Logged for u64 {}

#[inline]
fn bytes_of<T: Logged>(numbers: &[T]) -> &[u8] {
    // SAFETY: numbers are as good as their bytes; both machines that we support have the order of the log.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast::<u8>(), size_of_val(numbers)) }
}

/// Texts that the log has, by number.
#[derive(Default)]
struct Numbered {
    known: HashMap<String, u32>,
    count: u32,
}

impl Numbered {
    /// The number of a text in the log, where it is written the first time. If there are very many, as with an array that
    /// grows by each write, some are written again.
    fn number(&mut self, log: &mut Option<Log>, kind: u8, text: String, first: u32) -> u32 {
        if let Some(&number) = self.known.get(&text) {
            return number;
        }
        let number = self.count.saturating_add(first);
        self.count = self.count.saturating_add(1);
        if let Some(log) = log {
            log.append(kind, &[&number.to_le_bytes(), text.as_bytes()]);
        }
        if self.known.len() >= MOST_TEXTS {
            self.known.clear();
        }
        self.known.insert(text, number);
        number
    }
}
