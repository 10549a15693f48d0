//! Copies elements to where they belong in the output, which several threads fill at once.
//!
//! This is one of the files with `unsafe` that `lib.rs` lists: threads share one buffer. The plan knows, and the
//! compiler does not, that they write different parts of it.
#![allow(unsafe_code)]

use std::io::IoSliceMut;
use std::marker::PhantomData;
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_core::{Batches, ByteRange, ChunkRead, CoalescePolicy, Placement, ReadPlan, Row};

use crate::codecs::{Decoded, Shuffled};

/// Rows with fewer elements are small.
const SMALL_ROW_ELEMENTS: u64 = 16;

/// The output of some of a plan's reads, which must not write the same elements.
pub(crate) struct Destination<'a> {
    start: *mut u8,
    nbytes: usize,
    plan: &'a ReadPlan,
    batches: &'a Batches,
    claims: Vec<AtomicU64>,
    out: PhantomData<&'a mut [u8]>,
}

// SAFETY: the buffer is borrowed exclusively for 'a, and only targets reach it. `claim` hands out each position's
// target once, different positions are different reads, and the reads of one destination write different elements. So
// no byte has two owners.
unsafe impl Sync for Destination<'_> {}

// SAFETY: as for Sync; nothing in it belongs to the thread that made it.
unsafe impl Send for Destination<'_> {}

impl<'a> Destination<'a> {
    /// The output of the reads of `batches`. If the plan is not disjoint, they must be of one segment.
    pub fn new(out: &'a mut [u8], plan: &'a ReadPlan, batches: &'a Batches) -> Self {
        assert!(plan.is_disjoint() || plan.are_of_one_segment(&batches.span()), "reads overlap");
        let words = index(batches.read_count().div_ceil(64));
        let claims = std::iter::repeat_with(AtomicU64::default).take(words).collect();
        Self { start: out.as_mut_ptr(), nbytes: out.len(), plan, batches, claims, out: PhantomData }
    }

    /// The elements that the read at a position writes. The first caller gets them, later callers get `None`.
    pub fn claim(&self, position: u64) -> Option<Target<'_>> {
        let word = self.claims.get(usize::try_from(position / 64).ok()?)?;
        let bit = 1 << (position % 64);
        if word.fetch_or(bit, Ordering::Relaxed) & bit != 0 {
            return None;
        }
        Some(Target { destination: self, read: self.plan.read(self.batches.number(position)?)? })
    }
}

/// The elements of the output that one read writes.
pub(crate) struct Target<'d> {
    destination: &'d Destination<'d>,
    /// The read.
    pub read: ChunkRead<'d>,
}

impl<'d> Target<'d> {
    /// Where the read's elements go.
    pub fn placement(&self) -> &Placement<'d> {
        &self.read.placement
    }

    /// Width of an element in bytes.
    pub fn element_nbytes(&self) -> usize {
        index(self.destination.plan.element_nbytes())
    }

    /// Every row, with its part of the output.
    pub fn rows(&mut self, mut each: impl FnMut(Row, &mut [u8])) {
        let done: Result<(), std::convert::Infallible> = self.read.placement.rows(|row| {
            // SAFETY: the row is one of this target's, and the slice ends before the next row's begins.
            each(row, unsafe { self.slice(&row) });
            Ok(())
        });
        let Ok(()) = done;
    }

    /// Every request for the plain chunk at `chunk`: the rows that it fetches, its bytes, and the rows' parts of the
    /// output.
    pub fn row_groups<E>(
        &mut self,
        chunk: ByteRange,
        policy: CoalescePolicy,
        mut each: impl FnMut(&[Row], ByteRange, &mut [IoSliceMut<'_>]) -> Result<(), E>,
    ) -> Result<(), E> {
        let width = self.destination.plan.element_nbytes();
        self.read.placement.row_groups(chunk, width, policy, |rows, range| {
            // SAFETY: these are different rows of this target, so their slices do not overlap, and the slices end with
            // this call.
            let mut slices: Vec<IoSliceMut<'_>> =
                rows.iter().map(|row| IoSliceMut::new(unsafe { self.slice(row) })).collect();
            each(rows, range, &mut slices)
        })
    }

    /// Copies this read's elements out of its decoded chunk.
    pub fn scatter(&mut self, decoded: Decoded<'_>) {
        let element_nbytes = self.element_nbytes();
        match decoded {
            Decoded::Plain(chunk) => self.rows(|row, out| gather(chunk, element_nbytes, row, out)),
            Decoded::Shuffled(shuffled)
                if shuffled.element_nbytes == element_nbytes && !self.is_in_small_rows(&shuffled) =>
            {
                self.rows(|row, out| shuffled.gather(index(row.chunk_offset), index(row.step), out));
            }
            Decoded::Shuffled(shuffled) => {
                let mut chunk = vec![0; shuffled.planes.len()];
                shuffled.unshuffle(&mut chunk);
                self.rows(|row, out| gather(&chunk, element_nbytes, row, out));
            }
        }
    }

    /// Whether most of a chunk is taken in rows so small that gathering each from its planes takes longer than
    /// unshuffling all of the chunk at once.
    fn is_in_small_rows(&self, shuffled: &Shuffled<'_>) -> bool {
        let placement = &self.read.placement;
        placement.row_element_count() < SMALL_ROW_ELEMENTS
            && 2 * index(placement.element_count()) * shuffled.element_nbytes >= shuffled.planes.len()
    }

    /// A row's part of the output.
    ///
    /// # Safety
    /// The row must be one of this target's, or part of one, and no other slice of it may be alive.
    #[allow(clippy::mut_from_ref)] // the targets, not the references, keep slices apart
    unsafe fn slice(&self, row: &Row) -> &mut [u8] {
        let element_nbytes = self.element_nbytes();
        let start = index(row.output_offset).saturating_mul(element_nbytes);
        let nbytes = index(row.count).saturating_mul(element_nbytes);
        let fits = start.checked_add(nbytes).is_some_and(|stop| stop <= self.destination.nbytes);
        assert!(fits, "a row outside the output");
        // SAFETY: it lies within the buffer, as just checked, and is ours alone, by this function's contract and
        // `claim`.
        unsafe { std::slice::from_raw_parts_mut(self.destination.start.add(start), nbytes) }
    }
}

/// Copies a row out of a chunk whose elements are whole.
pub(crate) fn gather(chunk: &[u8], element_nbytes: usize, row: Row, out: &mut [u8]) {
    let start = index(row.chunk_offset) * element_nbytes;
    if row.step == 1 {
        let source = &chunk[start..start + out.len()];
        return match out.len() {
            2 => copy::<2>(source, out),
            4 => copy::<4>(source, out),
            8 => copy::<8>(source, out),
            _ => out.copy_from_slice(source),
        };
    }
    let sources = chunk[start..].chunks(element_nbytes * index(row.step));
    for (element, source) in out.chunks_exact_mut(element_nbytes).zip(sources) {
        element.copy_from_slice(&source[..element_nbytes]);
    }
}

/// Copies one element: a length that the compiler knows needs no call.
fn copy<const N: usize>(source: &[u8], out: &mut [u8]) {
    if let (Some(source), Some(out)) = (source.first_chunk::<N>(), out.first_chunk_mut::<N>()) {
        *out = *source;
    }
}

/// Offsets into an existing buffer fit its index type. Others fail where they are used.
pub(crate) fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}
