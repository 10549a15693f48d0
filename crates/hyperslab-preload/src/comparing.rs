//! How long libhdf5 would have taken: now and then, it reads a few chunks of what we have just read. Its time for that, by
//! what it has to decode, times what it would have had to decode for all our reads.
//!
//! Of the chunks read in a row the fastest counts: in the midst of its own reads libhdf5 has its memory at hand. The time
//! is the processor's, not the clock's, or a busy machine would count for libhdf5 alone. So the estimate is the time that
//! libhdf5 would need on a processor of its own, if it did not have to wait for the disk.
//!
//! Samples are taken when we have worked for all arrays many times as long as all samples take, so they cost a few percent
//! at most. A program that hardly reads has no estimate.

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use hyperslab_libhdf5::{ArrayKey, Boxes, Dataspace, Library, Space, has_failed};

use crate::callers::Site;
use crate::chunk_box::ChunkBox;
use crate::comparison::Comparison;
use crate::counts::{self, Count};
use crate::known::known;
use crate::open_array::Facts;
use crate::request::{Call, Request};
use crate::settings::settings;

/// libhdf5 reads at least one byte in so many nanoseconds, as far as this decides when to sample.
const NANOSECONDS_PER_BYTE: u64 = 4;
/// How many times as long as one part of each round of samples we have to work first.
const TIMES: u64 = 80;
/// How many samples a round has.
const SAMPLES: usize = 4;
/// How many rounds an array has.
const ROUNDS: usize = 4;
/// A sample has chunks of so many bytes together, so that the call itself takes little of the time.
const SAMPLE_NBYTES: u64 = 256 << 10;
/// Selections with larger gaps are not compared if there are no filters: what is copied is not what libhdf5 reads then.
const MOST_GAPS: u64 = 2;
/// Places are spread by this step, each far from all before.
const STEP: f64 = 0.618_033_988_749_894_9;

/// What to read as a sample.
struct Round {
    chunk: Vec<u64>,
    /// Decoded bytes of a chunk; 0 if what is copied counts.
    chunk_nbytes: u64,
    /// Bytes of an element in memory.
    width: u64,
    boxes: Vec<ChunkBox>,
}

/// Takes account of a read that we served, and takes samples if it is time.
pub(crate) fn compare(
    site: &Site,
    library: &Library,
    call: &Call,
    key: ArrayKey,
    request: &Request,
    (nbytes, took): (u64, Duration),
) {
    let width = nbytes / request.count.max(1);
    let round = {
        let Some(mut known) = known() else { return };
        let Some(array) = known.find(key) else { return };
        let Some(facts) = array.facts.as_ref().ok().filter(|facts| facts.lacked_filter.is_none()) else {
            return;
        };
        if !facts.is_filtered && !is_dense(&request.file, request.count) {
            return;
        }
        let Some(touched) = ChunkBox::of(&request.file, &facts.piece) else { return };
        let comparison = &mut array.comparison;
        let work = work_nbytes(facts, &touched, comparison.cached.as_ref(), nbytes);
        comparison.add(work, counts::nanoseconds(took));
        comparison.count();
        if comparison.recent.back() != Some(&touched) {
            comparison.recent.push_back(touched.clone());
            while comparison.recent.len() > SAMPLES {
                comparison.recent.pop_front();
            }
        }
        comparison.cached = Some(touched).filter(|touched| fits(facts, touched));
        Round::of(facts, width, comparison)
    };
    let Some(round) = round else { return };
    let samples: Vec<_> =
        round.boxes.iter().filter_map(|one| round.sample(site, library, call, one)).collect();
    let Some(mut known) = known() else { return };
    let Some(array) = known.find(key) else { return };
    array.comparison.is_over |= samples.is_empty();
    array.comparison.add_samples(&samples);
    array.comparison.count();
}

/// Whether the elements selected are most of those in between.
fn is_dense(file: &Dataspace, count: u64) -> bool {
    let Some((low, high)) = file.bounds() else { return false };
    let lengths = low.iter().zip(&high).map(|(low, high)| high - low + 1);
    lengths.fold(1_u64, u64::saturating_mul) <= count.saturating_mul(MOST_GAPS)
}

/// Whether libhdf5 keeps all chunks that a read touches.
fn fits(facts: &Facts, touched: &ChunkBox) -> bool {
    touched.is_full() && touched.count.saturating_mul(facts.chunk_nbytes) <= facts.cache_nbytes
}

/// The bytes that libhdf5 would decode for a read, or copy if there are no filters: whole chunks, unless it has them in its
/// cache from the read before.
fn work_nbytes(facts: &Facts, touched: &ChunkBox, cached: Option<&ChunkBox>, nbytes: u64) -> u64 {
    if !facts.is_filtered {
        return nbytes;
    }
    let is_cached = cached.is_some_and(|cached| cached.has(touched));
    if is_cached { 0 } else { touched.count.saturating_mul(facts.chunk_nbytes) }
}

impl Round {
    /// The next samples, if it is time for them and there are chunks that libhdf5 has not read as samples.
    fn of(facts: &Facts, width: u64, comparison: &mut Comparison) -> Option<Self> {
        let most_touched = comparison.recent.iter().map(|one| one.count).max()?;
        let piece_nbytes = facts.piece.iter().fold(width, |all, &one| all.saturating_mul(one));
        let most = (SAMPLE_NBYTES / piece_nbytes.max(1)).max(1);
        let nbytes = piece_nbytes.saturating_mul(most.min(most_touched));
        let one = nbytes.saturating_mul(NANOSECONDS_PER_BYTE);
        let enough = one.saturating_add(counts::get(Count::SampledNanoseconds)).saturating_mul(TIMES);
        let is_due = counts::get(Count::ServedNanoseconds) >= enough;
        if comparison.is_over || !is_due || nbytes > settings().memory_nbytes as u64 {
            return None;
        }
        let mut boxes = Vec::new();
        let taken = comparison.starts.len();
        for (number, read) in (taken..taken + SAMPLES).zip(comparison.recent.iter().cycle()) {
            #[allow(clippy::cast_precision_loss)] // there are few
            let part = read.part(most, (0.5 + number as f64 * STEP).fract());
            let start: Vec<u64> = part.axes.iter().map(|(start, _)| *start).collect();
            if !comparison.starts.contains(&start) {
                comparison.starts.push(start);
                boxes.push(part);
            }
        }
        comparison.is_over = comparison.starts.len() >= SAMPLES * ROUNDS;
        let chunk_nbytes = if facts.is_filtered { facts.chunk_nbytes } else { 0 };
        (!boxes.is_empty()).then(|| Self { chunk: facts.piece.clone(), chunk_nbytes, width, boxes })
    }

    /// libhdf5 reads some chunks: what it decodes, or copies, and its nanoseconds.
    fn sample(&self, site: &Site, library: &Library, call: &Call, chunks: &ChunkBox) -> Option<(u64, u64)> {
        let file = Boxes::of(library.array(call.array).space()?).ok()?;
        let shape = file.shape();
        let axes = chunks.axes.iter().zip(&self.chunk);
        let start: Vec<u64> = axes.clone().map(|((start, _), chunk)| start * chunk).collect();
        let ends = axes.zip(shape).map(|(((_, stop), chunk), &length)| length.min(stop * chunk));
        let count: Vec<u64> = ends.zip(&start).map(|(end, start)| end.saturating_sub(*start)).collect();
        let total = count.iter().try_fold(1_u64, |product, &length| product.checked_mul(length))?;
        let nbytes = total.checked_mul(self.width).filter(|&nbytes| nbytes > 0)?;
        let mut out = Vec::<u8>::new();
        out.try_reserve_exact(usize::try_from(nbytes).ok()?).ok()?;
        out.resize(usize::try_from(nbytes).ok()?, 0);
        file.select(&start, &count).ok()?;
        // Of the same shape: otherwise libhdf5 would look at each element for itself, which takes longer than to decode it.
        let memory = Space::created(library, &count)?;
        let argument = |id: i64| usize::try_from(id).ok();
        let (array, kind) = (argument(call.array)?, argument(call.memory_type)?);
        let (memory, file) = (argument(memory.id())?, argument(file.space().id())?);
        let (begun, before) = (Instant::now(), counts::processor_now());
        // SAFETY: the function is `H5Dread`, and there is room for all elements selected.
        let result = unsafe { (site.real)(array, kind, memory, file, 0, out.as_mut_ptr() as usize) };
        let took = counts::processor_now().saturating_sub(before).max(1);
        let work =
            if self.chunk_nbytes > 0 { chunks.count.saturating_mul(self.chunk_nbytes) } else { nbytes };
        counts::add(Count::SampledNbytes, work);
        counts::add(Count::SampledNanoseconds, counts::nanoseconds(begun.elapsed()));
        (!has_failed(result)).then_some((work, took))
    }
}
