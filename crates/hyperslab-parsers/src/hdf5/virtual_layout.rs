//! The mappings of a virtual array, an object of the global heap, and their selections.
//!
//! Version 0 and the selections of versions 1 to 3 are in the HDF5 File Format Specification 3.0 ("Disk Format: Level
//! 1G"). In version 1, entries share names. HDF5 2.0 writes version 1 if that is shorter.

use std::sync::Arc;

use hyperslab_core::{
    MappedAxis, MappedBoxes, Points, VirtualAxis, VirtualBox, VirtualMapping, VirtualMappings,
    VirtualSelection,
};

use super::lookup3::{Hashing, checked_beside};
use super::sizes::{Sizes, all_ones};
use crate::cursor::Cursor;
use crate::error::Error;

const MAPPINGS: &str = "the mappings of a virtual array";
/// The most axes that an HDF5 array can have.
const MAX_NDIM: u32 = 32;
/// Entry flag since version 1: its file is that of an earlier entry.
const SHARED_FILE: u8 = 1;
/// Its path is that of an earlier entry.
const SHARED_PATH: u8 = 2;
/// Its file is the virtual array's own.
const SAME_FILE: u8 = 4;

/// For a selection of one box, in version 1: the bytes before its numbers, which take four bytes each.
const BOX_HEAD_NBYTES: usize = 24;

/// The mappings, from the bytes of the heap object at `offset` in the file.
pub(crate) fn read_mappings(bytes: &[u8], offset: u64, sizes: Sizes) -> Result<VirtualMappings, Error> {
    let boxes = |content, hashing: &mut Hashing<'_>| boxes_of_one(content, sizes, hashing);
    let (content, boxes) = checked_beside(MAPPINGS, offset, bytes, boxes)?;
    if let Some(boxes) = boxes {
        return Ok(VirtualMappings::Boxes(boxes));
    }
    let mut cursor = Cursor::new(MAPPINGS, offset, content);
    let version = cursor.u8()?;
    if version > 1 {
        return Err(Error::unsupported(format!("mappings of a virtual array in version {version}")));
    }
    let count = sizes.length(&mut cursor)?;
    read_each(cursor, version, count, sizes).map(VirtualMappings::Each)
}

/// Mappings of any kind, one after another.
fn read_each(
    mut cursor: Cursor<'_>,
    version: u8,
    count: u64,
    sizes: Sizes,
) -> Result<Vec<VirtualMapping>, Error> {
    let mut mappings: Vec<VirtualMapping> = Vec::new();
    for _ in 0..count {
        // Every entry takes bytes, so a wrong count meets the end.
        let (file, path) = read_names(&mut cursor, version, sizes, &mappings)?;
        let source = read_selection(&mut cursor)?;
        let target = read_selection(&mut cursor)?;
        mappings.push(VirtualMapping { file, path, source, target });
    }
    Ok(mappings)
}

/// Parses all mappings in the general way.
#[cfg(fuzzing)]
pub(crate) fn read_one_by_one(bytes: &[u8], sizes: Sizes) -> Result<Vec<VirtualMapping>, Error> {
    let mut cursor = Cursor::new(MAPPINGS, 0, super::lookup3::checked(MAPPINGS, 0, bytes)?);
    let version = cursor.u8()?;
    let count = sizes.length(&mut cursor)?;
    read_each(cursor, version, count, sizes)
}

/// Mappings of version 0 that differ only in their numbers, each of one box: libhdf5 writes one for each chunk of an
/// array. `None` for any others and for damaged ones. There may be very many, so each costs only a few comparisons.
fn boxes_of_one(content: &[u8], sizes: Sizes, hashing: &mut Hashing<'_>) -> Option<MappedBoxes> {
    let mut cursor = Cursor::new(MAPPINGS, 0, content);
    let (0, count @ 1..) = (cursor.u8().ok()?, sizes.length(&mut cursor).ok()?) else { return None };
    let entries = cursor.rest();
    let file = entries.get(..entries.iter().position(|&byte| byte == 0)?)?;
    let behind = entries.get(file.len().checked_add(1)?..)?;
    let path = behind.get(..behind.iter().position(|&byte| byte == 0)?)?;
    let head_nbytes = file.len().checked_add(path.len())?.checked_add(2 + BOX_HEAD_NBYTES)?;
    let head = entries.get(..head_nbytes)?;
    let box_head = head.get(head_nbytes.checked_sub(BOX_HEAD_NBYTES)?..)?;
    // Kind, version; reserved, length; axes, boxes.
    let (Some(2), Some(1)) = (number(box_head, 0), number(box_head, 1)) else { return None };
    let (Some(ndim @ 1..=MAX_NDIM), Some(1)) = (number(box_head, 4), number(box_head, 5)) else {
        return None;
    };
    let ndim = ndim as usize;
    let entry_nbytes = head_nbytes.checked_add(BOX_HEAD_NBYTES + 16 * ndim)?;
    let count = usize::try_from(count).ok()?;
    let entries = entries.get(..count.checked_mul(entry_nbytes)?)?;
    let mut axes = Vec::with_capacity(count.checked_mul(ndim)?); // fewer than there are bytes
    let mut left = entries.len();
    for entry in entries.chunks_exact(entry_nbytes) {
        let (own_head, rest) = entry.split_at_checked(head_nbytes)?;
        let (source, rest) = rest.split_at_checked(8 * ndim)?;
        let (target_head, target) = rest.split_at_checked(BOX_HEAD_NBYTES)?;
        if own_head != head || target_head != box_head {
            return None;
        }
        left = left.saturating_sub(entry_nbytes);
        hashing.go_on(left);
        for axis in 0..ndim {
            let (start, source_start) = (number(target, axis)?, number(source, axis)?);
            let distance = number(target, axis + ndim)?.checked_sub(start)?;
            if number(source, axis + ndim)?.checked_sub(source_start)? != distance {
                return None;
            }
            axes.push(MappedAxis { start, source_start, length: distance.checked_add(1)? });
        }
    }
    let name = |bytes| std::str::from_utf8(bytes).ok().map(Arc::from);
    MappedBoxes::new(name(file)?, name(path)?, ndim, axes)
}

/// A little-endian number of four bytes.
#[inline]
fn number(bytes: &[u8], position: usize) -> Option<u32> {
    let four = bytes.get(position.checked_mul(4)?..)?.first_chunk::<4>()?;
    Some(u32::from_le_bytes(*four))
}

/// The file and path of the next entry.
fn read_names(
    cursor: &mut Cursor<'_>,
    version: u8,
    sizes: Sizes,
    earlier: &[VirtualMapping],
) -> Result<(Arc<str>, Arc<str>), Error> {
    let flags = if version == 0 { 0 } else { cursor.u8()? };
    if flags > (SHARED_FILE | SHARED_PATH | SAME_FILE)
        || flags & (SHARED_FILE | SAME_FILE) == SHARED_FILE | SAME_FILE
    {
        return Err(Error::unsupported(format!("mappings of a virtual array with flags {flags:#x}")));
    }
    let file = match flags {
        flags if flags & SAME_FILE != 0 => ".".into(),
        flags if flags & SHARED_FILE != 0 => Arc::clone(&read_shared(cursor, sizes, earlier)?.file),
        _ => read_name(cursor, earlier.last().map(|last| &last.file))?,
    };
    let path = match flags {
        flags if flags & SHARED_PATH != 0 => Arc::clone(&read_shared(cursor, sizes, earlier)?.path),
        _ => read_name(cursor, earlier.last().map(|last| &last.path))?,
    };
    Ok((file, path))
}

/// The earlier entry, whose number comes next.
fn read_shared<'a>(
    cursor: &mut Cursor<'_>,
    sizes: Sizes,
    earlier: &'a [VirtualMapping],
) -> Result<&'a VirtualMapping, Error> {
    let number = sizes.length(cursor)?;
    let entry = usize::try_from(number).ok().and_then(|number| earlier.get(number));
    entry.ok_or_else(|| {
        cursor.invalid(format!("a name shared with entry {number}, which is not an earlier one"))
    })
}

/// Text that ends with a zero byte. It usually equals that of the entry before, and is then shared.
fn read_name(cursor: &mut Cursor<'_>, before: Option<&Arc<str>>) -> Result<Arc<str>, Error> {
    let Some(length) = cursor.rest().iter().position(|&byte| byte == 0) else {
        return Err(cursor.invalid("a name without an end"));
    };
    let bytes = cursor.take(length)?;
    cursor.skip(1)?;
    if let Some(before) = before.filter(|before| before.as_bytes() == bytes) {
        return Ok(Arc::clone(before));
    }
    let name = std::str::from_utf8(bytes);
    name.map(Arc::from).map_err(|_| Error::unsupported("a virtual array whose source's name is not UTF-8"))
}

/// The next serialized selection.
fn read_selection(cursor: &mut Cursor<'_>) -> Result<VirtualSelection, Error> {
    let (kind, version) = (cursor.u32()?, cursor.u32()?);
    match (kind, version) {
        (0, 1) => read_whole(cursor, VirtualSelection::Nothing),
        (3, 1) => read_whole(cursor, VirtualSelection::All),
        (1, 1 | 2) => read_points(cursor, version),
        (2, 1) => {
            cursor.skip(8)?; // reserved, length
            let ndim = read_ndim(cursor)?;
            read_boxes(cursor, ndim, 4)
        }
        (2, 2) => read_regular_or_boxes(cursor, Some(8)),
        (2, 3) => read_regular_or_boxes(cursor, None),
        _ => Err(Error::unsupported(format!("a selection of kind {kind}, version {version}"))),
    }
}

/// Selections without parameters: reserved bytes and a length follow.
fn read_whole(cursor: &mut Cursor<'_>, selection: VirtualSelection) -> Result<VirtualSelection, Error> {
    cursor.skip(8)?;
    Ok(selection)
}

fn read_ndim(cursor: &mut Cursor<'_>) -> Result<usize, Error> {
    match cursor.u32()? {
        ndim @ 1..=MAX_NDIM => Ok(ndim as usize),
        ndim => Err(cursor.invalid(format!("a selection of {ndim} axes"))),
    }
}

/// Bytes of each number of a selection.
fn read_width(cursor: &mut Cursor<'_>) -> Result<usize, Error> {
    match cursor.u8()? {
        width @ (2 | 4 | 8) => Ok(usize::from(width)),
        width => Err(cursor.invalid(format!("a selection of numbers {width} bytes wide"))),
    }
}

/// A regular hyperslab. Since version 2 it also has a length; `width` is known from it.
fn read_regular_or_boxes(cursor: &mut Cursor<'_>, width: Option<usize>) -> Result<VirtualSelection, Error> {
    let flags = cursor.u8()?;
    let width = match width {
        Some(width) => cursor.skip(4).map(|()| width)?,
        None => read_width(cursor)?,
    };
    let ndim = read_ndim(cursor)?;
    match flags {
        0 => read_boxes(cursor, ndim, width),
        1 => (0..ndim)
            .map(|_| read_axis(cursor, width))
            .collect::<Result<_, _>>()
            .map(VirtualSelection::Regular),
        _ => Err(Error::unsupported(format!("a selection with flags {flags:#x}"))),
    }
}

fn read_axis(cursor: &mut Cursor<'_>, width: usize) -> Result<VirtualAxis, Error> {
    let (start, stride) = (cursor.uint(width)?, cursor.uint(width)?);
    let limited = |number: u64| (number != all_ones(width)).then_some(number);
    let (count, block) = (limited(cursor.uint(width)?), limited(cursor.uint(width)?));
    let ends = [start, stride, count.unwrap_or(1), block.unwrap_or(1)];
    let reach = count.unwrap_or(1).saturating_sub(1).checked_mul(stride);
    let end = reach.and_then(|reach| reach.checked_add(start)?.checked_add(block.unwrap_or(1)));
    let overlapping = count != Some(1) && block.is_none_or(|block| stride < block);
    if end.is_none_or(|end| end > i64::MAX as u64) || overlapping {
        return Err(cursor.invalid(format!("start, stride, count and block are {ends:?}")));
    }
    Ok(VirtualAxis { start, stride, count, block })
}

/// Boxes, each given by its first and its last element.
fn read_boxes(cursor: &mut Cursor<'_>, ndim: usize, width: usize) -> Result<VirtualSelection, Error> {
    let count = cursor.uint(width)?;
    if count == 1 {
        return read_box(cursor, ndim, width);
    }
    let mut boxes = Vec::new();
    for _ in 0..count {
        let start = read_numbers(cursor, ndim, width)?;
        let last = read_numbers(cursor, ndim, width)?;
        if start.iter().zip(&last).any(|(start, last)| start > last) {
            return Err(cursor.invalid(format!("a box from {start:?} to {last:?}")));
        }
        let stop: Option<Vec<u64>> = last.iter().map(|last| last.checked_add(1)).collect();
        let stop = stop.ok_or_else(|| cursor.invalid("a box that ends beyond 2^64"))?;
        boxes.push(VirtualBox { start, stop });
    }
    Ok(VirtualSelection::Boxes(boxes))
}

/// One box, which is regular.
fn read_box(cursor: &mut Cursor<'_>, ndim: usize, width: usize) -> Result<VirtualSelection, Error> {
    let mut axes = Vec::with_capacity(ndim);
    for _ in 0..ndim {
        axes.push(VirtualAxis { start: cursor.uint(width)?, stride: 1, count: Some(1), block: Some(1) });
    }
    for axis in &mut axes {
        let last = cursor.uint(width)?;
        let length = last.checked_sub(axis.start).and_then(|length| length.checked_add(1));
        let length = length.filter(|_| last < i64::MAX as u64);
        let wrong = || cursor.invalid(format!("a box from {} to {last}", axis.start));
        let length = length.ok_or_else(wrong)?;
        (axis.stride, axis.block) = (length, Some(length));
    }
    Ok(VirtualSelection::Regular(axes))
}

fn read_numbers(cursor: &mut Cursor<'_>, count: usize, width: usize) -> Result<Vec<u64>, Error> {
    (0..count).map(|_| cursor.uint(width)).collect()
}

fn read_points(cursor: &mut Cursor<'_>, version: u32) -> Result<VirtualSelection, Error> {
    let width = if version == 1 { cursor.skip(8).map(|()| 4)? } else { read_width(cursor)? };
    let ndim = read_ndim(cursor)?;
    let count = cursor.uint(width)?;
    let total = usize::try_from(count).ok().and_then(|count| count.checked_mul(ndim));
    let fits = |&total: &usize| total.checked_mul(width).is_some_and(|nbytes| nbytes <= cursor.remaining());
    let total = total.filter(fits).ok_or_else(|| cursor.invalid(format!("{count} points")))?;
    let coordinates = read_numbers(cursor, total, width)?;
    let points = Points::new(ndim, coordinates).map_err(|error| cursor.invalid(error.to_string()))?;
    Ok(VirtualSelection::Points(points))
}

#[cfg(test)]
#[path = "virtual_layout_tests.rs"]
mod tests;
