//! Writes keys of a Zarr array: encodes their chunks in parallel, puts shards together, and keeps what is not overwritten.

use std::borrow::Cow;
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use hyperslab_core::{ByteRange, Codec};
use hyperslab_engine::codecs::{self, Decoded, Filter, Scratch, unshuffle_whole};
use hyperslab_engine::{MAX_CHUNK_NBYTES, with_helpers};
use hyperslab_parsers::zarr::ArrayDocument;

use crate::chunk_encoding::is_fill;
use crate::chunk_gathering::{FEW_NBYTES, Runs, outer_count};
use crate::desk::Desk;
use crate::error::CallerError;
use crate::interrupt::InterruptCheck;

/// The caller is asked whether to go on after this many bytes, or chunks.
const NBYTES_BETWEEN_CHECKS: usize = 4 << 20;
const CHUNKS_BETWEEN_CHECKS: usize = 256;

/// A box of one key, a chunk or a shard, that is overwritten.
pub struct KeyPart {
    /// Where it begins in the key.
    pub start: Vec<u64>,
    /// Where it begins in the values.
    pub from: Vec<u64>,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Whether nothing of the key is kept: what the box does not cover lies outside the array.
    pub is_whole: bool,
}

/// The elements to write, as stored, in C order.
#[derive(Clone, Copy)]
pub struct Values<'a> {
    /// Their bytes.
    pub bytes: &'a [u8],
    /// Their shape.
    pub shape: &'a [u64],
}

/// Where the keys are, by their numbers.
pub trait KeyTarget: Sync {
    /// The bytes that are there; `None` if there are none.
    fn read(&self, number: usize) -> io::Result<Option<Cow<'_, [u8]>>>;
    /// Replaces them by these pieces, one after the other: all or nothing.
    fn write(&self, number: usize, pieces: &[&[u8]]) -> io::Result<()>;
    /// Removes the key, if it is there.
    fn remove(&self, number: usize) -> io::Result<()>;
}

/// Why keys were not all written.
#[derive(Debug)]
pub enum WriteError {
    /// The parts do not fit the array or the values, or a chunk does not fit in memory.
    Misfit,
    /// A compressor refused a chunk of this key.
    Refused(usize),
    /// What this key holds, and what must be kept of it, cannot be read.
    Damaged(usize, String),
    /// The store failed at this key.
    Store(usize, io::Error),
    /// The caller stopped it.
    Caller(CallerError),
}

/// How keys are encoded.
#[derive(Clone, Copy)]
pub struct KeyEncoding<'a> {
    /// The steps in order.
    pub filters: &'a [Filter],
    /// How many threads work, with the calling one.
    pub threads: usize,
    /// Whether chunks that hold nothing but the fill value are left out.
    pub leaves_out_fill: bool,
    /// Gets the CRC-32C of each chunk before encoding, by its position among the chunks of the values, which begin at
    /// boundaries of chunks then.
    pub checksums: Option<&'a [AtomicU32]>,
    /// Asked in the calling thread.
    pub interrupts: &'a dyn InterruptCheck,
}

/// Writes the parts of keys. After an error, each key is as it was or written wholly.
pub fn write_keys(
    document: &ArrayDocument,
    parts: &[KeyPart],
    values: Values<'_>,
    encoding: KeyEncoding<'_>,
    target: &dyn KeyTarget,
) -> Result<(), WriteError> {
    let key_shape = document.key_shape();
    let unit_shape = document.unit_shape().ok_or(WriteError::Misfit)?;
    let fill = document.fill().filter(|fill| !fill.is_empty()).ok_or(WriteError::Misfit)?;
    let codecs = document.codecs().map_err(|_| WriteError::Misfit)?;
    let unit_nbytes = nbytes(unit_shape, fill.len()).ok_or(WriteError::Misfit)?;
    if nbytes(values.shape, fill.len()) != Some(values.bytes.len() as u64) {
        return Err(WriteError::Misfit);
    }
    let unit_nbytes = usize::try_from(unit_nbytes).map_err(|_| WriteError::Misfit)?;
    let keys: Option<Vec<Key<'_>>> =
        parts.iter().map(|part| Key::new(part, key_shape, unit_shape, values.shape)).collect();
    let keys = keys.ok_or(WriteError::Misfit)?;
    let mut firsts = Vec::with_capacity(keys.len());
    let mut count = 0_usize;
    for key in &keys {
        firsts.push(count);
        count = count.checked_add(key.unit_count).ok_or(WriteError::Misfit)?;
    }
    let is_small = count.saturating_mul(unit_nbytes) < FEW_NBYTES;
    let threads = if is_small { 1 } else { encoding.threads.clamp(1, count.max(1)) };
    let (next, has_failed, failure) = (AtomicUsize::new(0), AtomicBool::new(false), Mutex::default());
    let is_sharded = document.shard_index().map_err(|_| WriteError::Misfit)?.is_some();
    let writing = Writing {
        document,
        is_sharded,
        unit_shape,
        fill: &fill,
        codecs,
        unit_nbytes,
        values,
        encoding,
        target,
        keys,
        firsts,
        count,
        next,
        has_failed,
        failure,
    };
    with_helpers(threads - 1, |_| writing.work(false), || writing.work(true));
    writing.failure.into_inner().unwrap_or_else(PoisonError::into_inner).map_or(Ok(()), Err)
}

/// The bytes of a box; `None` for more than any chunk has.
fn nbytes(shape: &[u64], width: usize) -> Option<u64> {
    let whole = shape.iter().try_fold(width as u64, |nbytes, &length| nbytes.checked_mul(length));
    whole.filter(|&nbytes| isize::try_from(nbytes).is_ok())
}

/// Whether an array has chunks that fit in memory, so that it can be written.
pub fn is_writable(document: &ArrayDocument) -> bool {
    let Some((unit, fill)) = document.unit_shape().zip(document.fill()) else { return false };
    let has_index =
        document.shard_index().is_ok_and(|index| index.is_none_or(|(_, nbytes)| nbytes <= 1 << 28));
    let fits = nbytes(unit, fill.len()).is_some_and(|nbytes| (1..=MAX_CHUNK_NBYTES).contains(&nbytes));
    has_index && fits && document.codecs().is_ok()
}

/// One key while it is written.
struct Key<'a> {
    part: &'a KeyPart,
    /// The touched chunks along each axis: the first one, and how many.
    first: Vec<u64>,
    counts: Vec<u64>,
    /// All chunks along each axis.
    grid: Vec<u64>,
    unit_count: usize,
    state: Mutex<KeyState>,
}

#[derive(Default)]
struct KeyState {
    old: Option<Old>,
    /// The chunks that are ready, by their position in the key; those that are left out are `None`.
    made: Vec<(usize, Option<Vec<u8>>)>,
}

/// What a key held: its bytes, and where its subchunks are.
#[derive(Clone, Default)]
struct Old {
    bytes: std::sync::Arc<Vec<u8>>,
    entries: std::sync::Arc<Vec<Option<ByteRange>>>,
    is_there: bool,
}

impl<'a> Key<'a> {
    fn new(part: &'a KeyPart, key_shape: &[u64], unit_shape: &[u64], values: &[u64]) -> Option<Self> {
        let ndim = key_shape.len();
        let lengths = [part.start.len(), part.from.len(), part.shape.len(), unit_shape.len(), values.len()];
        if lengths.iter().any(|&length| length != ndim) {
            return None;
        }
        let (mut first, mut counts, mut grid) = (Vec::new(), Vec::new(), Vec::new());
        for axis in 0..ndim {
            let (start, length, unit) = (part.start[axis], part.shape[axis], unit_shape[axis]);
            let is_within = start.checked_add(length)? <= key_shape[axis]
                && part.from[axis].checked_add(length)? <= values[axis];
            if !is_within || unit == 0 || !key_shape[axis].is_multiple_of(unit) {
                return None;
            }
            first.push(start / unit);
            counts.push(if length == 0 { 0 } else { (start + length).div_ceil(unit) - start / unit });
            grid.push(key_shape[axis] / unit);
        }
        let count = counts.iter().try_fold(1_u64, |product, &count| product.checked_mul(count))?;
        let unit_count = usize::try_from(count).ok()?;
        Some(Self { part, first, counts, grid, unit_count, state: Mutex::default() })
    }

    fn state(&self) -> MutexGuard<'_, KeyState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The index of a touched chunk in the key, and its position in C order.
    fn unit(&self, number: usize) -> (Vec<u64>, usize) {
        let mut rest = number as u64;
        let mut index = self.first.clone();
        for (at, &count) in index.iter_mut().zip(&self.counts).rev() {
            *at += rest % count.max(1);
            rest /= count.max(1);
        }
        let position = index.iter().zip(&self.grid).fold(0, |position, (at, count)| position * count + at);
        (index, usize::try_from(position).unwrap_or(usize::MAX))
    }
}

struct Writing<'a> {
    document: &'a ArrayDocument,
    is_sharded: bool,
    unit_shape: &'a [u64],
    fill: &'a [u8],
    codecs: &'a [Codec],
    unit_nbytes: usize,
    values: Values<'a>,
    encoding: KeyEncoding<'a>,
    target: &'a dyn KeyTarget,
    keys: Vec<Key<'a>>,
    /// The number of the first chunk of each key.
    firsts: Vec<usize>,
    count: usize,
    next: AtomicUsize,
    has_failed: AtomicBool,
    failure: Mutex<Option<WriteError>>,
}

impl Writing<'_> {
    /// Makes chunks in order, and writes a key with its last chunk.
    fn work(&self, is_callers: bool) {
        let mut desk = Desk::take();
        let between = (NBYTES_BETWEEN_CHECKS / self.unit_nbytes.max(1)).clamp(1, CHUNKS_BETWEEN_CHECKS);
        let mut made = 0_usize;
        while !self.has_failed.load(Ordering::Relaxed) {
            let number = self.next.fetch_add(1, Ordering::Relaxed);
            if number >= self.count {
                break;
            }
            let key = self.firsts.partition_point(|&first| first <= number) - 1;
            made += 1;
            let is_over = || self.encoding.interrupts.check().map_err(WriteError::Caller);
            let go_on = if is_callers && made.is_multiple_of(between) { is_over() } else { Ok(()) };
            if let Err(error) = go_on.and_then(|()| self.make(key, number - self.firsts[key], &mut desk)) {
                self.has_failed.store(true, Ordering::Relaxed);
                self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
            }
        }
        desk.leave();
    }

    fn make(&self, number: usize, unit: usize, desk: &mut Desk) -> Result<(), WriteError> {
        let key = &self.keys[number];
        let (index, position) = key.unit(unit);
        let made = self.encoded(number, &index, position, desk)?;
        let failed = |error| WriteError::Store(number, error);
        if !self.is_sharded {
            return match made {
                Some(bytes) => self.target.write(number, &[&bytes]).map_err(failed),
                None => self.target.remove(number).map_err(failed),
            };
        }
        let made = made.map(Cow::into_owned);
        let mut state = key.state();
        state.made.push((position, made));
        if state.made.len() < key.unit_count {
            return Ok(());
        }
        let KeyState { old, made } = std::mem::take(&mut *state);
        drop(state);
        self.put_together(number, &old.unwrap_or_default(), &made)
    }

    /// Writes a shard: the chunks that were made, and those that it held beside them.
    fn put_together(
        &self,
        number: usize,
        old: &Old,
        made: &[(usize, Option<Vec<u8>>)],
    ) -> Result<(), WriteError> {
        let count = usize::try_from(self.keys[number].grid.iter().product::<u64>());
        let mut pieces: Vec<Option<&[u8]>> = vec![None; count.map_err(|_| WriteError::Misfit)?];
        for (piece, range) in pieces.iter_mut().zip(old.entries.iter()) {
            *piece = range.and_then(|range| part(&old.bytes, range));
        }
        for (position, bytes) in made {
            if let Some(piece) = pieces.get_mut(*position) {
                *piece = bytes.as_deref();
            }
        }
        let failed = |error| WriteError::Store(number, error);
        if pieces.iter().all(Option::is_none) {
            return self.target.remove(number).map_err(failed);
        }
        let lengths: Vec<Option<u64>> =
            pieces.iter().map(|piece| piece.map(|piece| piece.len() as u64)).collect();
        let (is_first, index) = self.document.index_of(&lengths).map_err(|_| WriteError::Misfit)?;
        let stored = pieces.iter().flatten().copied();
        let first = is_first.then_some(index.as_slice());
        let last = (!is_first).then_some(index.as_slice());
        let all: Vec<&[u8]> = first.into_iter().chain(stored).chain(last).collect();
        self.target.write(number, &all).map_err(failed)
    }

    /// The stored bytes of a chunk; `None` if it is left out.
    fn encoded<'d>(
        &'d self,
        number: usize,
        index: &[u64],
        position: usize,
        desk: &'d mut Desk,
    ) -> Result<Option<Cow<'d, [u8]>>, WriteError> {
        let part = self.keys[number].part;
        let unit: Vec<u64> = index.iter().zip(self.unit_shape).map(|(at, length)| at * length).collect();
        let (mut from, mut to, mut shape) = (Vec::new(), Vec::new(), Vec::new());
        for (axis, (&begin, &length)) in unit.iter().zip(self.unit_shape).enumerate() {
            let start = part.start[axis].max(begin);
            let stop = (part.start[axis] + part.shape[axis]).min(begin + length);
            from.push(part.from[axis] + start - part.start[axis]);
            to.push(start - begin);
            shape.push(stop - start);
        }
        let covers = shape == self.unit_shape;
        let Desk { plain, encoder, scratch } = desk;
        let outer = outer_count(&shape, self.values.shape);
        let mut whole = Runs::new(self.values.shape, &from, &shape, outer, self.fill.len());
        let piece =
            if covers && outer == 0 { whole.next().and_then(|run| self.values.bytes.get(run)) } else { None };
        let bytes: &[u8] = if let Some(piece) = piece {
            piece
        } else {
            self.make_room(plain)?;
            if !covers {
                self.begin(number, position, plain, scratch)?;
            }
            let outer = outer.max(outer_count(&shape, self.unit_shape));
            let from = Runs::new(self.values.shape, &from, &shape, outer, self.fill.len());
            let to = Runs::new(self.unit_shape, &to, &shape, outer, self.fill.len());
            for (from, to) in from.zip(to) {
                if let (Some(from), Some(to)) = (self.values.bytes.get(from), plain.get_mut(to)) {
                    to.copy_from_slice(from);
                }
            }
            plain
        };
        if let Some(checksum) = self.encoding.checksums.and_then(|all| all.get(self.place(&from)?)) {
            checksum.store(codecs::crc32c(bytes), Ordering::Relaxed);
        }
        if covers && self.is_sharded {
            self.old(number)?; // even if no chunk of the key needs it, its other chunks stay
        }
        if self.encoding.leaves_out_fill && is_fill(bytes, self.fill) {
            return Ok(None);
        }
        let encoded = encoder.encode(bytes, self.encoding.filters);
        encoded.map(|(bytes, _)| Some(bytes)).ok_or(WriteError::Refused(number))
    }

    /// The position among the chunks of the values of the one whose first element is there.
    fn place(&self, first: &[u64]) -> Option<usize> {
        let axes = first.iter().zip(self.unit_shape).zip(self.values.shape);
        let place = axes.fold(0, |place, ((at, unit), length)| place * length.div_ceil(*unit) + at / unit);
        usize::try_from(place).ok()
    }

    fn make_room(&self, plain: &mut Vec<u8>) -> Result<(), WriteError> {
        plain
            .try_reserve_exact(self.unit_nbytes.saturating_sub(plain.len()))
            .map_err(|_| WriteError::Misfit)?;
        plain.resize(self.unit_nbytes, 0);
        Ok(())
    }

    /// What a chunk holds before its part is overwritten.
    fn begin(
        &self,
        number: usize,
        position: usize,
        plain: &mut [u8],
        scratch: &mut Scratch,
    ) -> Result<(), WriteError> {
        let old = self.old(number)?;
        let stored = match (self.is_sharded, old.is_there) {
            (_, false) => None,
            (false, true) => Some(old.bytes.as_slice()),
            (true, true) => {
                old.entries.get(position).copied().flatten().and_then(|range| part(&old.bytes, range))
            }
        };
        let Some(stored) = stored else {
            plain.chunks_exact_mut(self.fill.len()).for_each(|element| element.copy_from_slice(self.fill));
            return Ok(());
        };
        let damaged = |error: hyperslab_engine::Error| WriteError::Damaged(number, error.to_string());
        match codecs::decode(self.codecs, 0, 0, stored, self.unit_nbytes, scratch).map_err(damaged)? {
            Decoded::Plain(bytes) => plain.copy_from_slice(bytes),
            Decoded::Shuffled(shuffled) => {
                let blocks = shuffled.planes.chunks(shuffled.block_nbytes.max(1));
                for (block, out) in blocks.zip(plain.chunks_mut(shuffled.block_nbytes.max(1))) {
                    unshuffle_whole(block, shuffled.element_nbytes, out);
                }
            }
        }
        Ok(())
    }

    /// What a key held, which is read once; nothing if it is written wholly.
    fn old(&self, number: usize) -> Result<Old, WriteError> {
        let key = &self.keys[number];
        if key.part.is_whole {
            return Ok(Old::default());
        }
        let mut state = key.state();
        if let Some(old) = &state.old {
            return Ok(old.clone());
        }
        let read = self.target.read(number).map_err(|error| WriteError::Store(number, error))?;
        let old = match read {
            None => Old::default(),
            Some(bytes) => {
                let damaged =
                    |error: hyperslab_parsers::Error| WriteError::Damaged(number, error.to_string());
                let entries = self.document.entries_in(&bytes).map_err(damaged)?;
                Old { bytes: bytes.into_owned().into(), entries: entries.into(), is_there: true }
            }
        };
        state.old = Some(old.clone());
        Ok(old)
    }
}

fn part(bytes: &[u8], range: ByteRange) -> Option<&[u8]> {
    let start = usize::try_from(range.offset).ok()?;
    bytes.get(start..start.checked_add(usize::try_from(range.length).ok()?)?)
}
