//! Reads parts of chunks whose stored bytes are their elements: straight into the output where rows are
//! large.

use std::io::IoSliceMut;

use hyperslab_core::{ByteRange, Row};

use crate::read_error::ReadError;
use crate::scatter::{BatchLimits, Target, gather, index, span};
use crate::stores::Store;

/// Rows at least this long are worth a request, or a part of a vectored one, of their own.
const LONG_ROW_NBYTES: u64 = 512;
/// Bytes of one request that goes through memory of ours.
const SPAN_NBYTES: u64 = 1 << 20;

/// Read what `target` takes of the plain chunk at `chunk`.
pub(crate) fn read_plain(
    store: &dyn Store,
    chunk: ByteRange,
    target: &mut Target<'_>,
    memory: &mut Vec<u8>,
) -> Result<(), ReadError> {
    let element_nbytes = target.element_nbytes();
    let width = (element_nbytes as u64).max(1);
    let row_nbytes = target.placement().row_element_count() * width;
    let is_long = row_nbytes >= LONG_ROW_NBYTES;
    let limits = BatchLimits {
        gap: store.policy().gap_nbytes / width,
        span: if is_long { store.policy().most_nbytes } else { SPAN_NBYTES }.div_ceil(width),
    };
    target.batches(limits, |rows, slices| {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(()) };
        let offset = chunk.offset.saturating_add(first.chunk_offset * width);
        if is_long && are_consecutive(rows) {
            return store.read_vectored(offset, slices);
        }
        if let ([row], [slice]) = (rows, &mut *slices) {
            if row.step == 1 {
                return store.read_into(offset, slice);
            }
        }
        let nbytes = index((last.chunk_offset + span(last) - first.chunk_offset) * width);
        let bytes = room(memory, nbytes);
        store.read_into(offset, bytes)?;
        copy(bytes, element_nbytes, rows, slices);
        Ok(())
    })
}

fn are_consecutive(rows: &[Row]) -> bool {
    rows.iter().all(|row| row.step == 1)
        && rows.windows(2).all(|pair| pair[0].chunk_offset + pair[0].count == pair[1].chunk_offset)
}

/// Copy rows out of bytes that start with the first of them.
fn copy(bytes: &[u8], element_nbytes: usize, rows: &[Row], slices: &mut [IoSliceMut<'_>]) {
    let start = rows.first().map_or(0, |row| row.chunk_offset);
    for (row, slice) in rows.iter().zip(slices) {
        gather(bytes, element_nbytes, Row { chunk_offset: row.chunk_offset - start, ..*row }, slice);
    }
}

/// The first `nbytes` of memory that only grows, so that nothing is zeroed twice.
pub(crate) fn room(memory: &mut Vec<u8>, nbytes: usize) -> &mut [u8] {
    if memory.len() < nbytes {
        *memory = Vec::new(); // what it held is not needed, so it need not be moved
        memory.resize(nbytes, 0);
    }
    &mut memory[..nbytes]
}
