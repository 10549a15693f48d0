//! The bytes of chunks of arrays that are in memory: hashed, gathered and encoded, by several threads.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyperslab_core::{ChunkBox, ChunkGrid};
use hyperslab_engine::codecs::{self, Filter};
use hyperslab_engine::default_thread_count;
use numpy::{IntoPyArray, PyArray1, PyReadonlyArray1};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use ring::digest::{Context, Digest, SHA256};

use crate::{errors, integers};

/// Bytes of a hash.
pub(crate) const DIGEST_NBYTES: usize = 32;
/// Below so many bytes, starting threads takes longer than hashing.
const FEW_NBYTES: usize = 1 << 18;

/// SHA-256 of the valid part of some chunks of an array, and of its shape, as versioned-hdf5 wants it.
#[pyfunction]
#[pyo3(signature = (data, shapes, numbers, width, taken=None))]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn hash_chunks<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    shapes: (Vec<u64>, Vec<u64>),
    numbers: PyReadonlyArray1<'py, i64>,
    width: usize,
    taken: Option<Taken<'py>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let grid = ChunkGrid::new(shapes.0, shapes.1).map_err(errors::to_python)?;
    let bytes = whole(&data, &grid, width)?;
    digests(py, &grid, numbers.as_slice()?, width, taken, |_, chunk| {
        Some(hash(bytes, grid.shape(), &chunk.start, chunk, width))
    })
}

/// The same of some chunks of an array, each whole, at its slot of a slab.
#[pyfunction]
#[pyo3(signature = (slab, slots, numbers, shapes, width, taken=None))]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn hash_staged<'py>(
    py: Python<'py>,
    slab: PyReadonlyArray1<'py, u8>,
    slots: PyReadonlyArray1<'py, i64>,
    numbers: PyReadonlyArray1<'py, i64>,
    shapes: (Vec<u64>, Vec<u64>),
    width: usize,
    taken: Option<Taken<'py>>,
) -> PyResult<Bound<'py, PyBytes>> {
    let grid = ChunkGrid::new(shapes.0, shapes.1).map_err(errors::to_python)?;
    let (slab, slots) = (slab.as_slice()?, slots.as_slice()?);
    let chunk_nbytes = usize::try_from(grid.chunk_element_count())?.saturating_mul(width);
    let origin = vec![0; grid.shape().len()];
    digests(py, &grid, numbers.as_slice()?, width, taken, |entry, chunk| {
        let start = usize::try_from(*slots.get(entry)?).ok()?.checked_mul(chunk_nbytes)?;
        let bytes = slab.get(start..start.checked_add(chunk_nbytes)?)?;
        Some(hash(bytes, grid.chunk_shape(), &origin, chunk, width))
    })
}

/// How many hashes are taken at a time, and by what.
type Taken<'py> = (usize, Bound<'py, PyAny>);

/// What `hash` gives of each of some chunks of a grid. Meanwhile, whenever so many of them are there, in order, they are
/// taken.
fn digests<'py>(
    py: Python<'py>,
    grid: &ChunkGrid,
    numbers: &[i64],
    width: usize,
    taken: Option<Taken<'py>>,
    hash: impl Fn(usize, &ChunkBox) -> Option<Digest> + Sync,
) -> PyResult<Bound<'py, PyBytes>> {
    let nbytes =
        usize::try_from(grid.chunk_element_count())?.saturating_mul(width).saturating_mul(numbers.len());
    let each = |entry: usize| -> Option<[u8; DIGEST_NBYTES]> {
        let chunk = chunk_box(grid, u64::try_from(numbers[entry]).ok()?)?;
        hash(entry, &chunk)?.as_ref().try_into().ok()
    };
    let ahead = Ahead::new(numbers.len(), each);
    let helpers = if nbytes < FEW_NBYTES { 0 } else { default_thread_count() - 1 };
    let (step, take) = taken.map_or((numbers.len(), None), |(step, take)| (step, Some(take)));
    let mut digests = Vec::with_capacity(numbers.len() * DIGEST_NBYTES);
    std::thread::scope(|scope| {
        for _ in 0..helpers.min(numbers.len().saturating_sub(1)) {
            scope.spawn(|| ahead.help());
        }
        let taken = (0..numbers.len()).step_by(step.max(1)).try_for_each(|first| {
            let last = first.saturating_add(step.max(1)).min(numbers.len());
            for digest in py.detach(|| ahead.ready(first..last)) {
                let digest =
                    digest.ok_or_else(|| PyValueError::new_err("slots or numbers that do not fit"))?;
                digests.extend_from_slice(&digest);
            }
            if let Some(take) = &take {
                take.call1((first, PyBytes::new(py, &digests[first * DIGEST_NBYTES..])))?;
            }
            Ok(())
        });
        ahead.stop();
        taken.map(|()| PyBytes::new(py, &digests))
    })
}

/// Results of a work for each of some numbers, made by threads that run ahead of whoever wants them in order, and helps.
struct Ahead<T, F> {
    /// The first number that nobody works at.
    next: AtomicUsize,
    made: Vec<OnceLock<T>>,
    make: F,
}

impl<T: Copy, F: Fn(usize) -> T> Ahead<T, F> {
    fn new(count: usize, make: F) -> Self {
        Self {
            next: AtomicUsize::new(0),
            made: std::iter::repeat_with(OnceLock::new).take(count).collect(),
            make,
        }
    }

    /// Make the next one; whether there was one.
    fn step(&self) -> bool {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        match self.made.get(number) {
            Some(place) => place.set((self.make)(number)).is_ok(),
            None => false,
        }
    }

    /// Work until all are made, or nobody wants the rest.
    fn help(&self) {
        while self.step() {}
    }

    /// Nobody wants the rest.
    fn stop(&self) {
        self.next.store(self.made.len(), Ordering::Relaxed);
    }

    /// Some of them, when they are all there; meanwhile this thread makes some too.
    fn ready(&self, numbers: std::ops::Range<usize>) -> Vec<T> {
        let made = &self.made[numbers];
        let mut missing = 0;
        while made.get(missing).is_some_and(|one| one.get().is_some() || self.step()) {
            missing += usize::from(made[missing].get().is_some());
        }
        made.iter().map(|one| *one.wait()).collect()
    }
}

/// Some chunks of an array, each whole: what of it lies outside the array is the fill value.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
pub(crate) fn gather_chunks<'py>(
    py: Python<'py>,
    data: PyReadonlyArray1<'py, u8>,
    shapes: (Vec<u64>, Vec<u64>),
    numbers: PyReadonlyArray1<'py, i64>,
    fill: &[u8],
) -> PyResult<Bound<'py, PyArray1<u8>>> {
    let grid = ChunkGrid::new(shapes.0, shapes.1).map_err(errors::to_python)?;
    let width = fill.len();
    let (bytes, numbers) = (whole(&data, &grid, width)?, numbers.as_slice()?);
    let chunk_nbytes = usize::try_from(grid.chunk_element_count())? * width;
    let mut out = vec![0_u8; numbers.len() * chunk_nbytes];
    let origin = vec![0; grid.shape().len()];
    py.detach(|| {
        let nbytes = out.len();
        in_shares(&mut out, chunk_nbytes, nbytes, |entry, out| {
            let found = u64::try_from(numbers[entry]).ok().and_then(|number| chunk_box(&grid, number));
            let Some(chunk) = found else { return };
            if chunk.valid_shape != chunk.stored_shape {
                out.chunks_exact_mut(width.max(1)).for_each(|element| element.copy_from_slice(fill));
            }
            let valid = &chunk.valid_shape;
            let outer = outer_count(valid, grid.shape()).max(outer_count(valid, grid.chunk_shape()));
            let from = Runs::new(grid.shape(), &chunk.start, valid, outer, width);
            let to = Runs::new(grid.chunk_shape(), &origin, valid, outer, width);
            for (from, to) in from.zip(to) {
                if let (Some(from), Some(to)) = (bytes.get(from), out.get_mut(to)) {
                    to.copy_from_slice(from);
                }
            }
        });
    });
    Ok(out.into_pyarray(py))
}

/// Bytes encoded by LZF.
#[pyfunction]
pub(crate) fn lzf<'py>(py: Python<'py>, data: &[u8]) -> Bound<'py, PyBytes> {
    PyBytes::new(py, &codecs::lzf(data))
}

/// Chunks of equal length as they are stored, and of each the filters that were left out.
pub(crate) fn encoded(chunks: &[u8], chunk_nbytes: usize, filters: &[Filter]) -> Vec<Option<(Vec<u8>, u32)>> {
    let mut out = vec![None; chunks.len() / chunk_nbytes.max(1)];
    in_shares(&mut out, 1, chunks.len(), |number, out| {
        let chunk = &chunks[number * chunk_nbytes..(number + 1) * chunk_nbytes];
        out.fill_with(|| codecs::encode(chunk, filters));
    });
    out
}

/// Bytes that are those of the grid's array.
fn whole<'a>(data: &'a PyReadonlyArray1<'_, u8>, grid: &ChunkGrid, width: usize) -> PyResult<&'a [u8]> {
    let bytes = data.as_slice()?;
    let needed = usize::try_from(grid.shape().iter().product::<u64>())?.checked_mul(width);
    if needed != Some(bytes.len()) || grid.shape().is_empty() {
        return Err(PyValueError::new_err("the data are not of the shape that is said"));
    }
    Ok(bytes)
}

fn chunk_box(grid: &ChunkGrid, number: u64) -> Option<ChunkBox> {
    grid.chunk_index(number).and_then(|index| grid.chunk_box(&index)).ok()
}

/// Do something for each `width` entries of `out`, with several threads if it is for many bytes.
fn in_shares<T: Send>(out: &mut [T], width: usize, nbytes: usize, each: impl Fn(usize, &mut [T]) + Sync) {
    let width = width.max(1);
    let count = out.len() / width;
    let threads = if nbytes < FEW_NBYTES { 1 } else { default_thread_count().min(count.max(1)) };
    let share = count.div_ceil(threads).max(1);
    let work = |first: usize, part: &mut [T]| {
        part.chunks_exact_mut(width).enumerate().for_each(|(number, entry)| each(first + number, entry));
    };
    let mut parts = (0..).step_by(share).zip(out.chunks_mut(share * width));
    let Some((_, own)) = parts.next() else { return };
    std::thread::scope(|scope| {
        for (first, part) in parts {
            scope.spawn(move || work(first, part));
        }
        work(0, own);
    });
}

/// The hash of one chunk, whose elements start at `start` in an array of `shape`.
fn hash(bytes: &[u8], shape: &[u64], start: &[u64], chunk: &ChunkBox, width: usize) -> Digest {
    let mut context = Context::new(&SHA256);
    let outer_count = outer_count(&chunk.valid_shape, shape);
    for run in Runs::new(shape, start, &chunk.valid_shape, outer_count, width) {
        context.update(bytes.get(run).unwrap_or_default());
    }
    context.update(integers::repr(&chunk.valid_shape).as_bytes());
    context.finish()
}

/// How many axes of a box must be walked through: the rest follow one another in an array of this shape, for from the
/// last on the box has them whole, but for the first of them.
fn outer_count(valid_shape: &[u64], shape: &[u64]) -> usize {
    let pairs = valid_shape.iter().zip(shape).rev();
    let whole_count = pairs.take_while(|(valid, length)| valid == length).count();
    valid_shape.len().saturating_sub(whole_count + 1)
}

/// The bytes of a box of an array, in C order: one range for each row, or one for all if they follow one another.
struct Runs<'a> {
    shape: &'a [u64],
    start: &'a [u64],
    outer: &'a [u64],
    place: Vec<u64>,
    left: u64,
    run_elements: u64,
    width: usize,
}

impl<'a> Runs<'a> {
    /// `outer_count` axes are walked through; a run is a box of the others.
    fn new(
        shape: &'a [u64],
        start: &'a [u64],
        valid_shape: &'a [u64],
        outer_count: usize,
        width: usize,
    ) -> Self {
        let (outer, inner) = valid_shape.split_at(outer_count.min(valid_shape.len()));
        let left = if valid_shape.contains(&0) { 0 } else { outer.iter().product() };
        Self {
            shape,
            start,
            outer,
            place: vec![0; outer.len()],
            left,
            run_elements: inner.iter().product(),
            width,
        }
    }
}

impl Iterator for Runs<'_> {
    type Item = std::ops::Range<usize>;

    fn next(&mut self) -> Option<Self::Item> {
        self.left = self.left.checked_sub(1)?;
        let within = self.place.iter().copied().chain(std::iter::repeat(0));
        let axes = self.start.iter().zip(self.shape).zip(within);
        let first = axes.fold(0, |at, ((start, length), within)| at * length + start + within);
        for (place, length) in self.place.iter_mut().zip(self.outer).rev() {
            *place += 1;
            if *place < *length {
                break;
            }
            *place = 0;
        }
        let start = usize::try_from(first).ok()?.checked_mul(self.width)?;
        Some(start..start.checked_add(usize::try_from(self.run_elements).ok()?.checked_mul(self.width)?)?)
    }
}
