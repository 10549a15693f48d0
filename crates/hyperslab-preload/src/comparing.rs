//! How long libhdf5 would have taken: once per array, it reads a few chunks of what we have just read. The fastest of these
//! counts, since the first one includes what libhdf5 does only once.
//!
//! A sample is taken when we have worked for all arrays many times as long as all samples take, so they cost a few percent
//! at most. A program that hardly reads has no estimate.

#![allow(unsafe_code)]

use std::time::{Duration, Instant};

use crate::callers::Site;
use crate::counts::{self, Count};
use crate::dataspace::Dataspace;
use crate::known::{ArrayKey, Facts, known};
use crate::libhdf5::{Held, Library, has_failed};
use crate::request::{Call, Request};
use crate::settings::settings;

/// libhdf5 reads at least one byte in so many nanoseconds, as far as this decides when to sample.
const NANOSECONDS_PER_BYTE: u64 = 4;
/// How many times as long as one part of each sample we have to work first.
const TIMES: u64 = 60;
/// How many chunks a sample has, at equal distances.
const SAMPLES: u64 = 3;
/// Selections with larger gaps are not compared: libhdf5 might decode chunks in which little is selected.
const MOST_GAPS: u64 = 2;
/// `H5S_SELECT_SET`.
const SET: i32 = 0;

/// Takes account of a read that we served, and takes a sample if it is time.
pub(crate) fn compare(
    site: &Site,
    library: &Library,
    call: &Call,
    key: ArrayKey,
    request: &Request,
    done: (u64, Duration),
) {
    let (nbytes, nanoseconds) = (done.0, counts::nanoseconds(done.1));
    if !is_dense(&request.file, request.count) {
        return;
    }
    let Some((shape, width)) = ({
        let Some(mut known) = known() else { return };
        let Some(array) = known.find(key) else { return };
        let width = nbytes / request.count.max(1);
        let facts = array.facts.as_ref().ok();
        let comparison = &mut array.comparison;
        comparison.nbytes +=
            facts.map_or(nbytes, |facts| decoded_nbytes(facts, &request.file, width).max(nbytes));
        comparison.nanoseconds += nanoseconds;
        let sample = facts.map(|facts| facts.piece.iter().fold(width, |all, &one| all.saturating_mul(one)));
        let is_due = sample.is_some_and(|sample| {
            let one = sample.saturating_mul(NANOSECONDS_PER_BYTE);
            let enough = one.saturating_add(counts::get(Count::SampledNanoseconds)).saturating_mul(TIMES);
            counts::get(Count::ServedNanoseconds) >= enough && sample <= settings().memory_nbytes as u64
        });
        match comparison.sample {
            Some(_) => {
                comparison.count();
                None
            }
            None if comparison.is_hopeless || !is_due => None,
            None => facts.map(|facts| (facts.piece.clone(), width)),
        }
    }) else {
        return;
    };
    let samples =
        (1..=SAMPLES).filter_map(|number| sample(site, library, call, request, &shape, (width, number)));
    let sample =
        samples.min_by_key(|&(nbytes, nanoseconds)| nanoseconds.saturating_mul(1 << 10) / nbytes.max(1));
    let Some(mut known) = known() else { return };
    let Some(array) = known.find(key) else { return };
    array.comparison.sample = sample;
    array.comparison.is_hopeless = sample.is_none();
    if let Some((nbytes, nanoseconds)) = sample {
        counts::add(Count::SampledNbytes, nbytes);
        counts::add(Count::SampledNanoseconds, nanoseconds);
        array.comparison.count();
    }
}

/// Whether the elements selected are most of those in between.
fn is_dense(file: &Dataspace, count: u64) -> bool {
    let Some((low, high)) = file.bounds() else { return false };
    let lengths = low.iter().zip(&high).map(|(low, high)| high - low + 1);
    lengths.fold(1_u64, u64::saturating_mul) <= count.saturating_mul(MOST_GAPS)
}

/// The bytes that libhdf5 would decode: of whole chunks, if its cache is too small for those that a read touches. 0 if the
/// cache keeps them: then a part of them may be there already.
fn decoded_nbytes(facts: &Facts, file: &Dataspace, width: u64) -> u64 {
    let Some((low, high)) = file.bounds().filter(|_| facts.is_filtered) else { return 0 };
    let axes = facts.piece.iter().zip(low.iter().zip(&high));
    let counts = axes.map(|(&piece, (low, high))| high / piece.max(1) - low / piece.max(1) + 1);
    let chunk_count = counts.fold(1, u64::saturating_mul);
    if chunk_count.saturating_mul(facts.chunk_nbytes) <= facts.cache_nbytes {
        return 0;
    }
    facts
        .piece
        .iter()
        .fold(chunk_count, |product, &length| product.saturating_mul(length))
        .saturating_mul(width)
}

/// libhdf5 reads a piece of this shape in the midst of what was asked for: bytes and nanoseconds.
fn sample(
    site: &Site,
    library: &Library,
    call: &Call,
    request: &Request,
    piece: &[u64],
    (width, number): (u64, u64),
) -> Option<(u64, u64)> {
    let (low, high) = request.file.bounds()?;
    let shape = &request.file.shape;
    let middles = low.iter().zip(&high).map(|(low, high)| low + (high - low) / (SAMPLES + 1) * number);
    let start: Vec<u64> = middles.zip(piece).map(|(middle, &piece)| middle / piece.max(1) * piece).collect();
    let ends = start.iter().zip(piece).zip(shape);
    let count: Vec<u64> = ends.map(|((&start, &piece), &length)| piece.min(length - start)).collect();
    let total = count.iter().try_fold(1_u64, |product, &length| product.checked_mul(length))?;
    let nbytes = total.checked_mul(width).filter(|&nbytes| nbytes > 0)?;
    let mut out = Vec::<u8>::new();
    out.try_reserve_exact(usize::try_from(nbytes).ok()?).ok()?;
    out.resize(usize::try_from(nbytes).ok()?, 0);
    // SAFETY: the spaces have an axis for each number, and the memory has room for all elements selected.
    unsafe {
        let file = Held::new(library, (library.call.array_space)(call.array))?;
        let none = std::ptr::null();
        let ones = vec![1_u64; count.len()];
        let select = library.call.select_hyperslab;
        if select(file.id, SET, start.as_ptr(), none, ones.as_ptr(), count.as_ptr()) < 0 {
            return None;
        }
        let memory = Held::new(library, (library.call.create_space)(1, &raw const total, none))?;
        let argument = |id: i64| usize::try_from(id).ok();
        let (array, kind) = (argument(call.array)?, argument(call.memory_type)?);
        let (memory, file) = (argument(memory.id)?, argument(file.id)?);
        let begun = Instant::now();
        let result = (site.real)(array, kind, memory, file, 0, out.as_mut_ptr() as usize);
        let took = begun.elapsed();
        (!has_failed(result)).then(|| (nbytes, counts::nanoseconds(took).max(1)))
    }
}
