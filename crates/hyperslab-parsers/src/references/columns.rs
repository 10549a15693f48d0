//! The columns of a manifest in few bytes. Each number is stored as its difference from a prediction, and equal
//! differences as their count. Chunks written one after another take almost no bytes.

use hyperslab_core::{ChunkState, Lengths, Manifest, PerChunk, StoredChunk};

use super::stored::{Input, Stored};
use crate::cursor::Cursor;
use crate::error::Error;

/// The most chunks of one manifest. A few bytes may stand for any number of chunks, so the file's size does not bound
/// them.
pub const MOST_CHUNKS: u64 = if cfg!(fuzzing) { 1 << 12 } else { 1 << 26 };
/// How many equal differences are worth a run.
const LEAST_RUN: usize = 4;
/// How many differences are collected before they are written.
const MOST_LITERALS: usize = 1 << 16;

/// A manifest as bytes; `None` if it has too many chunks.
pub(super) fn encode(manifest: &Manifest) -> Option<Vec<u8>> {
    let inline = manifest.inline_indices();
    let count = manifest.chunk_count() - inline.len() as u64;
    if count > MOST_CHUNKS {
        return None;
    }
    let mut out = Vec::new();
    count.write(&mut out);
    let is_dense = manifest.stored().zip(0..).all(|(chunk, position)| chunk.index == position);
    is_dense.write(&mut out);
    let column = |value: fn(&StoredChunk) -> u64, expected: fn(&StoredChunk) -> u64, out: &mut Vec<u8>| {
        let mut differences = Differences { out, literals: Vec::new() };
        let mut expect = 0;
        for chunk in manifest.stored() {
            differences.push(value(&chunk).wrapping_sub(expect));
            expect = expected(&chunk);
        }
        differences.flush(0);
    };
    if !is_dense {
        column(|chunk| chunk.index, |chunk| chunk.index.wrapping_add(1), &mut out);
    }
    column(|chunk| chunk.range.length, |chunk| chunk.range.length, &mut out);
    column(|chunk| chunk.range.offset, |chunk| chunk.range.end(), &mut out);
    column(|chunk| u64::from(chunk.file), |chunk| u64::from(chunk.file), &mut out);
    column(|chunk| u64::from(chunk.filter_mask), |chunk| u64::from(chunk.filter_mask), &mut out);
    inline.len().write(&mut out);
    for index in inline {
        if let ChunkState::Inline(bytes) = manifest.state(index) {
            index.write(&mut out);
            bytes.len().write(&mut out);
            out.extend_from_slice(bytes);
        }
    }
    Some(out)
}

/// Encodes differences: `2n` and n numbers, or `2n + 1` and the number that is repeated n times.
struct Differences<'o> {
    out: &'o mut Vec<u8>,
    /// Not written yet. The last ones may be the start of a run.
    literals: Vec<(u64, usize)>,
}

impl Differences<'_> {
    fn push(&mut self, difference: u64) {
        match self.literals.last_mut() {
            Some((last, count)) if *last == difference => *count += 1,
            _ => {
                if self.literals.last().is_some_and(|(_, count)| *count >= LEAST_RUN) {
                    self.flush(0);
                } else if self.literals.len() >= MOST_LITERALS {
                    self.flush(1);
                }
                self.literals.push((difference, 1));
            }
        }
    }

    /// Writes all except the last few.
    fn flush(&mut self, kept: usize) {
        let rest = self.literals.split_off(self.literals.len().saturating_sub(kept));
        let run = self.literals.pop_if(|(_, count)| *count >= LEAST_RUN);
        let count: usize = self.literals.iter().map(|(_, count)| count).sum();
        if count > 0 {
            (2 * count).write(self.out);
            for (difference, count) in &self.literals {
                (0..*count).for_each(|_| folded(*difference).write(self.out));
            }
        }
        if let Some((difference, count)) = run {
            (2 * count + 1).write(self.out);
            folded(difference).write(self.out);
        }
        self.literals = rest;
    }
}

/// A difference with its sign in the lowest bit, so small differences of either sign are short.
fn folded(difference: u64) -> u64 {
    let signed = difference.cast_signed();
    ((signed << 1) ^ (signed >> 63)).cast_unsigned()
}

fn unfolded(number: u64) -> u64 {
    (number >> 1) ^ (number & 1).wrapping_neg()
}

/// Decodes a manifest. Its bytes start at `offset` in the file; the grid has this many chunks.
pub(super) fn decode(bytes: &[u8], offset: u64, grid_count: u64) -> Result<Manifest, Error> {
    let mut input = Input::new(Cursor::new("a manifest", offset, bytes));
    let count = u64::read(&mut input)?;
    if count > MOST_CHUNKS || count > grid_count {
        return Err(input.invalid("more chunks than the array has room for"));
    }
    let count = usize::try_from(count).map_err(|_| input.invalid("too many chunks"))?;
    let indices = if bool::read(&mut input)? {
        None
    } else {
        let mut indices = Vec::with_capacity(count);
        each(&mut input, count, |difference, _| {
            let expected = indices.last().map_or(0, |last: &u64| last.wrapping_add(1));
            indices.push(expected.wrapping_add(difference));
        })?;
        Some(indices)
    };
    let last = indices.as_ref().and_then(|indices| indices.last());
    if last.is_some_and(|&last| last >= grid_count) {
        return Err(input.invalid("a chunk outside the array"));
    }
    let lengths = lengths(&mut input, count)?;
    let mut offsets = Vec::with_capacity(count);
    let mut expected = 0_u64;
    each(&mut input, count, |difference, entry| {
        let offset = expected.wrapping_add(difference);
        expected = offset.wrapping_add(lengths.get(entry).unwrap_or_default());
        offsets.push(offset);
    })?;
    let (files, masks) = (per_chunk(&mut input, count)?, per_chunk(&mut input, count)?);
    let manifest = Manifest::of_columns(indices, offsets, lengths, files, masks);
    let mut manifest = manifest.ok_or_else(|| input.invalid("columns that contradict one another"))?;
    for _ in 0..input.count()? {
        let (index, nbytes) = (u64::read(&mut input)?, input.count()?);
        manifest.insert_inline(index, input.cursor.take(nbytes)?.to_vec());
    }
    Ok(manifest)
}

/// Passes each difference of a column, and its position, to `give`.
fn each(input: &mut Input<'_>, count: usize, mut give: impl FnMut(u64, usize)) -> Result<(), Error> {
    let mut position = 0;
    while position < count {
        let head = usize::read(input)?;
        let stop = position + head / 2;
        if head / 2 == 0 || stop > count {
            return Err(input.invalid("a column of another length"));
        }
        if head % 2 == 1 {
            let difference = unfolded(u64::read(input)?);
            (position..stop).for_each(|position| give(difference, position));
        } else {
            for position in position..stop {
                give(unfolded(u64::read(input)?), position);
            }
        }
        position = stop;
    }
    Ok(())
}

fn lengths(input: &mut Input<'_>, count: usize) -> Result<Lengths, Error> {
    let (mut length, mut narrow, mut wide) = (0_u64, Vec::with_capacity(count), Vec::new());
    each(input, count, |difference, _| {
        length = length.wrapping_add(difference);
        match u32::try_from(length) {
            Ok(length) if wide.is_empty() => narrow.push(length),
            _ => {
                wide.extend(narrow.drain(..).map(u64::from));
                wide.push(length);
            }
        }
    })?;
    Ok(if wide.is_empty() { Lengths::Narrow(narrow) } else { Lengths::Wide(wide) })
}

/// A column that usually has one value. Allocates nothing until a second value comes.
fn per_chunk(input: &mut Input<'_>, count: usize) -> Result<PerChunk, Error> {
    let (mut value, mut each_value, mut is_wide) = (0_u64, None::<Vec<u32>>, false);
    each(input, count, |difference, position| {
        let before = value;
        value = value.wrapping_add(difference);
        let narrow = u32::try_from(value);
        is_wide |= narrow.is_err();
        if difference != 0 && position > 0 && each_value.is_none() {
            let mut values = Vec::with_capacity(count);
            values.resize(position, u32::try_from(before).unwrap_or_default());
            each_value = Some(values);
        }
        if let Some(values) = &mut each_value {
            values.push(narrow.unwrap_or_default());
        }
    })?;
    if is_wide {
        return Err(input.invalid("a number that is too large"));
    }
    Ok(each_value.map_or(PerChunk::Same(u32::try_from(value).unwrap_or_default()), PerChunk::Each))
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::cast_possible_truncation)]
mod tests {
    use super::*;
    use hyperslab_core::ByteRange;

    fn chunk(index: u64, file: u32, offset: u64, length: u64, filter_mask: u32) -> StoredChunk {
        StoredChunk { index, file, range: ByteRange { offset, length }, filter_mask }
    }

    fn check(chunks: Vec<StoredChunk>) -> usize {
        let manifest = Manifest::of_chunks(chunks);
        let bytes = encode(&manifest).unwrap();
        assert_eq!(decode(&bytes, 0, 1 << 40).unwrap(), manifest);
        bytes.len()
    }

    #[test]
    fn chunks_one_behind_another_take_no_bytes() {
        let nbytes = check((0..1_000_000).map(|n| chunk(n, 0, 400 + n * 77, 77, 0)).collect());
        assert!(nbytes < 60, "{nbytes}");
    }

    #[test]
    fn chunks_of_every_kind() {
        assert!(check(Vec::new()) < 10);
        check(vec![chunk(5, 7, u64::MAX - 3, 3, 9)]);
        check(
            (0..999)
                .map(|n| chunk(n * n, (n % 3) as u32, 1_000_000 - n * 7, n % 5, (n / 500) as u32))
                .collect(),
        );
        check((0..9).map(|n| chunk(n, 0, n << 40, 1 << (4 * n), 0)).collect());
        check((0..200_000).map(|n| chunk(n, 1, n * 3_000, 1_000 + n * 7_919 % 1_000, 0)).collect());
    }

    #[test]
    fn inline_chunks() {
        let mut manifest = Manifest::of_inline(vec![1, 2, 3]);
        manifest.insert_inline(4, Vec::new());
        assert_eq!(decode(&encode(&manifest).unwrap(), 0, 9).unwrap(), manifest);
    }

    #[test]
    fn hostile_bytes_are_errors() {
        let manifest =
            Manifest::of_chunks((0..99).map(|n| chunk(n * 2, 1, n * 100, 50 + n % 7, 2)).collect());
        let bytes = encode(&manifest).unwrap();
        assert!(decode(&bytes, 0, 50).is_err());
        for end in 0..bytes.len() {
            assert!(decode(&bytes[..end], 0, 1000).is_err(), "{end}");
        }
        for position in 0..bytes.len() {
            for value in [0, 1, 127, 128, 255] {
                let mut changed = bytes.clone();
                changed[position] = value;
                let _ = decode(&changed, 0, 1000); // any result will do
            }
        }
    }
}
