//! Puts elements where they belong in the output, which several threads fill at once.
//!
//! One of the places listed in `lib.rs` that may use `unsafe`: threads share one buffer, and the plan, not
//! the
//! compiler, knows that they write different parts of it.
#![allow(unsafe_code)]

use std::io::IoSliceMut;
use std::marker::PhantomData;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{ChunkRead, Placement, ReadPlan, Row};

use crate::codecs::Decoded;

/// Most rows of one vectored request: what Linux takes.
const MOST_ROWS: usize = 1024;

/// The output of some of a plan's reads, which must not write the same elements.
pub(crate) struct Destination<'a> {
    start: *mut u8,
    nbytes: usize,
    plan: &'a ReadPlan,
    reads: Range<u64>,
    claims: Vec<AtomicU64>,
    out: PhantomData<&'a mut [u8]>,
}

// SAFETY: the buffer is borrowed exclusively for 'a, and it is reached only through targets. `claim` gives
// each
// read's target once, and the reads of one destination write different elements, so no byte has two owners.
unsafe impl Sync for Destination<'_> {}

// SAFETY: as for Sync; nothing in it belongs to the thread that made it.
unsafe impl Send for Destination<'_> {}

impl<'a> Destination<'a> {
    /// The output of reads number `reads`. All of them, if the plan is disjoint; else of one segment.
    pub fn new(out: &'a mut [u8], plan: &'a ReadPlan, reads: Range<u64>) -> Self {
        assert!(plan.is_disjoint() || plan.are_of_one_segment(&reads), "reads that overlap");
        let words = usize::try_from((reads.end - reads.start).div_ceil(64)).unwrap_or(usize::MAX);
        let claims = std::iter::repeat_with(AtomicU64::default).take(words).collect();
        Self { start: out.as_mut_ptr(), nbytes: out.len(), plan, reads, claims, out: PhantomData }
    }

    /// The elements that a read writes: to the first who asks, then to nobody.
    pub fn claim(&self, number: u64) -> Option<Target<'_>> {
        let place = number.checked_sub(self.reads.start).filter(|_| number < self.reads.end)?;
        let word = self.claims.get(usize::try_from(place / 64).ok()?)?;
        let bit = 1 << (place % 64);
        if word.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return None;
        }
        Some(Target { destination: self, read: self.plan.read(number)? })
    }
}

/// The elements of the output that one read writes.
pub(crate) struct Target<'d> {
    destination: &'d Destination<'d>,
    /// The read.
    pub read: ChunkRead<'d>,
}

/// Which rows of a plain chunk are fetched together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchLimits {
    /// Elements between two rows that may be fetched in vain.
    pub gap: u64,
    /// Elements from the first row's start to the last one's end.
    pub span: u64,
}

impl BatchLimits {
    fn joins(self, first: &Row, last: &Row, next: &Row) -> bool {
        let end = last.chunk_offset + span(last);
        next.chunk_offset >= end
            && next.chunk_offset - end <= self.gap
            && next.chunk_offset + span(next) - first.chunk_offset <= self.span
    }

    /// A row whose elements lie apart, in rows of a bounded span.
    fn pieces(self, row: Row) -> impl Iterator<Item = Row> {
        let most = if row.step == 1 {
            row.count
        } else if row.step - 1 > self.gap {
            1
        } else {
            (self.span / row.step).max(1)
        };
        let starts = (0..row.count).step_by(usize::try_from(most).unwrap_or(usize::MAX).max(1));
        starts.map(move |first| Row {
            chunk_offset: row.chunk_offset + first * row.step,
            output_offset: row.output_offset + first,
            count: most.min(row.count - first),
            step: if most == 1 { 1 } else { row.step },
        })
    }
}

/// Elements from a row's first to its last in the chunk's buffer.
pub(crate) fn span(row: &Row) -> u64 {
    (row.count - 1) * row.step + 1
}

impl<'d> Target<'d> {
    /// Where the read's elements are.
    pub fn placement(&self) -> &Placement<'d> {
        &self.read.placement
    }

    /// Width of an element in bytes.
    pub fn element_nbytes(&self) -> usize {
        index(self.destination.plan.element_nbytes())
    }

    /// Every row with its part of the output.
    pub fn rows(&mut self, mut each: impl FnMut(Row, &mut [u8])) {
        let done: Result<(), std::convert::Infallible> = self.read.placement.rows(|row| {
            // SAFETY: the row is one of this target's, and the slice ends before the next row's begins.
            each(row, unsafe { self.slice(&row) });
            Ok(())
        });
        let Ok(()) = done;
    }

    /// Groups of rows that are fetched together, in the order of the chunk's bytes, with their parts of the
    /// output.
    pub fn batches<E>(
        &mut self,
        limits: BatchLimits,
        mut each: impl FnMut(&[Row], &mut [IoSliceMut<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut rows: Vec<Row> = Vec::new();
        let mut flush = |rows: &mut Vec<Row>| {
            // SAFETY: the rows are different ones of this target's, so their slices do not meet, and the
            // slices
            // end with this call.
            let mut slices: Vec<IoSliceMut<'_>> =
                rows.iter().map(|row| IoSliceMut::new(unsafe { self.slice(row) })).collect();
            let done = if rows.is_empty() { Ok(()) } else { each(rows, &mut slices) };
            rows.clear();
            done
        };
        self.read.placement.rows(|row| {
            for row in limits.pieces(row) {
                let ends = match (rows.first(), rows.last()) {
                    (Some(first), Some(last)) => rows.len() == MOST_ROWS || !limits.joins(first, last, &row),
                    _ => false,
                };
                if ends {
                    flush(&mut rows)?;
                }
                rows.push(row);
            }
            Ok(())
        })?;
        flush(&mut rows)
    }

    /// Copy this read's elements out of its decoded chunk.
    pub fn scatter(&mut self, decoded: Decoded<'_>) {
        let element_nbytes = self.element_nbytes();
        match decoded {
            Decoded::Plain(chunk) => self.rows(|row, out| gather(chunk, element_nbytes, row, out)),
            Decoded::Shuffled(shuffled) if shuffled.element_nbytes == element_nbytes => {
                self.rows(|row, out| shuffled.gather(index(row.chunk_offset), index(row.step), out));
            }
            Decoded::Shuffled(shuffled) => {
                let mut chunk = vec![0; shuffled.planes.len()];
                shuffled.unshuffle(&mut chunk);
                self.rows(|row, out| gather(&chunk, element_nbytes, row, out));
            }
        }
    }

    /// A row's part of the output.
    ///
    /// # Safety
    /// The row is one of this target's, or part of one, and no other slice of it is alive.
    #[allow(clippy::mut_from_ref)] // the targets, not the references, keep slices apart
    unsafe fn slice(&self, row: &Row) -> &mut [u8] {
        let element_nbytes = self.element_nbytes();
        let start = index(row.output_offset).saturating_mul(element_nbytes);
        let nbytes = index(row.count).saturating_mul(element_nbytes);
        let fits = start.checked_add(nbytes).is_some_and(|stop| stop <= self.destination.nbytes);
        assert!(fits, "a row outside the output");
        // SAFETY: within the buffer, as just checked; ours alone, by this function's contract and `claim`.
        unsafe { std::slice::from_raw_parts_mut(self.destination.start.add(start), nbytes) }
    }
}

/// Copy a row out of a chunk whose elements are whole.
pub(crate) fn gather(chunk: &[u8], element_nbytes: usize, row: Row, out: &mut [u8]) {
    let start = index(row.chunk_offset) * element_nbytes;
    if row.step == 1 {
        return out.copy_from_slice(&chunk[start..start + out.len()]);
    }
    let sources = chunk[start..].chunks(element_nbytes * index(row.step));
    for (element, source) in out.chunks_exact_mut(element_nbytes).zip(sources) {
        element.copy_from_slice(&source[..element_nbytes]);
    }
}

/// Offsets into a buffer that exists fit its index type; others fail where they are used.
pub(crate) fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
