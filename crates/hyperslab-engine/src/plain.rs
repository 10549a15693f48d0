//! Reads parts of chunks whose stored bytes are their elements. Large rows go straight into the output.

use std::io::IoSliceMut;

use hyperslab_core::{ByteRange, Row};

use crate::read_error::ReadError;
use crate::scatter::{Target, gather, index};
use crate::stores::{FarStore, Stop, Store};
use crate::stream_copy::copy_past_caches;

/// Bytes and requests of a far store that are waited for together.
const WINDOW_NBYTES: u64 = 64 << 20;
/// Short rows are first read into the thread's memory, at most this many bytes at a time.
const STREAMED_NBYTES: u64 = 4 << 20;
const MOST_SIDE_BY_SIDE: usize = 1024;

/// Reads what `target` takes of the plain chunk at `chunk`. `is_streamed` means that the output's pages exist and
/// exceed the caches, so copying past the caches is fastest.
pub(crate) fn read_plain(
    store: &dyn Store,
    chunk: ByteRange,
    target: &mut Target<'_>,
    memory: &mut Vec<u8>,
    is_streamed: bool,
) -> Result<(), ReadError> {
    let element_nbytes = target.element_nbytes();
    let is_long = target.placement().has_long_rows(element_nbytes as u64);
    target.row_groups(chunk, store.policy(), |rows, range, slices| {
        if is_long && are_consecutive(rows) {
            if is_streamed && slices.len() > 1 && range.length <= STREAMED_NBYTES {
                let bytes = room(memory, index(range.length));
                store.read_into(range.offset, bytes)?;
                copy_past_caches(bytes, slices);
                return Ok(());
            }
            return store.read_vectored(range.offset, slices);
        }
        if let ([row], [slice]) = (rows, &mut *slices)
            && row.step == 1
        {
            return store.read_into(range.offset, slice);
        }
        let bytes = room(memory, index(range.length));
        store.read_into(range.offset, bytes)?;
        copy(bytes, element_nbytes, rows, slices);
        Ok(())
    })
}

/// Like `read_plain`, but with many requests side by side, because each takes long whatever it brings.
pub(crate) fn read_plain_far(
    store: &dyn FarStore,
    chunk: ByteRange,
    target: &mut Target<'_>,
    stop: Stop<'_>,
) -> Result<(), ReadError> {
    let element_nbytes = target.element_nbytes();
    let mut ranges = Vec::new();
    target.row_groups(chunk, store.policy(), |_, range, _| {
        ranges.extend(Some(range).filter(|range| range.length <= WINDOW_NBYTES));
        Ok::<(), ReadError>(())
    })?;
    let mut rest = ranges.as_slice();
    let mut fetched = Vec::new().into_iter();
    target.row_groups(chunk, store.policy(), |rows, range, slices| {
        if let (true, [slice]) = (range.length > WINDOW_NBYTES, &mut *slices) {
            return store.fill(vec![(range.offset, slice)], stop); // one long row needs no copy
        }
        if fetched.len() == 0 {
            let (now, later) = rest.split_at(window(rest));
            rest = later;
            fetched = store.read_ranges(now, stop)?.into_iter();
        }
        let bytes = fetched.next().unwrap_or_default();
        copy(&bytes, element_nbytes, rows, slices);
        Ok(())
    })
}

/// How many of the ranges to fetch at a time: at least one.
fn window(ranges: &[ByteRange]) -> usize {
    let mut nbytes = 0_u64;
    let fits = ranges.iter().take(MOST_SIDE_BY_SIDE).take_while(|range| {
        nbytes = nbytes.saturating_add(range.length);
        nbytes <= WINDOW_NBYTES
    });
    fits.count().max(1).min(ranges.len())
}

fn are_consecutive(rows: &[Row]) -> bool {
    rows.iter().all(|row| row.step == 1)
        && rows.windows(2).all(|pair| pair[0].chunk_offset + pair[0].count == pair[1].chunk_offset)
}

/// Copies rows out of bytes that start with the first of them.
fn copy(bytes: &[u8], element_nbytes: usize, rows: &[Row], slices: &mut [IoSliceMut<'_>]) {
    let start = rows.first().map_or(0, |row| row.chunk_offset);
    for (row, slice) in rows.iter().zip(slices) {
        gather(bytes, element_nbytes, Row { chunk_offset: row.chunk_offset - start, ..*row }, slice);
    }
}

/// The first `nbytes` of memory that only grows, so nothing is zeroed twice.
pub(crate) fn room(memory: &mut Vec<u8>, nbytes: usize) -> &mut [u8] {
    if memory.len() < nbytes {
        *memory = Vec::new(); // its contents are not needed, so they need not be moved
        memory.resize(nbytes, 0);
    }
    &mut memory[..nbytes]
}
