//! External files: an array's bytes in other files, one after another (HDF5 File Format Specification 3.0, IV.A.2.h).

use hyperslab_core::{ByteRange, Element, Fill, Manifest, Segment, SegmentAxis, Unreadable};

use super::local_heap::LocalHeap;
use super::sizes::{Sizes, all_ones};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;
use crate::segment;

/// The message: the location of the names, and the parts.
#[derive(Clone, Debug)]
pub(crate) struct ExternalFiles {
    heap: u64,
    parts: Vec<Part>,
}

/// Consecutive bytes of the array in one file.
#[derive(Clone, Copy, Debug)]
struct Part {
    name: u64,
    offset: u64,
    /// `None` for the rest of the array.
    length: Option<u64>,
}

/// A part, with the name of its file.
#[derive(Clone, Debug)]
pub(crate) struct NamedPart {
    file: String,
    part: Part,
}

impl NamedPart {
    /// The file, where the part starts in it, and its length; `None` for the rest of the array.
    pub fn facts(&self) -> (String, u64, Option<u64>) {
        (self.file.clone(), self.part.offset, self.part.length)
    }
}

impl ExternalFiles {
    /// From the body of a message.
    pub fn read(cursor: &mut Cursor<'_>, sizes: Sizes) -> Result<Self, Error> {
        let version = cursor.u8()?;
        if version != 1 {
            return Err(Error::unsupported(format!("external file list version {version}")));
        }
        cursor.skip(5)?; // reserved, slots allocated
        let count = cursor.u16()?;
        let heap = sizes.defined_address(cursor)?;
        let mut parts = Vec::new();
        for _ in 0..count {
            let (name, offset) = (sizes.length(cursor)?, sizes.length(cursor)?);
            let length = sizes.length(cursor)?;
            let length = (length != all_ones(sizes.length)).then_some(length);
            parts.push(Part { name, offset, length });
        }
        Ok(Self { heap, parts })
    }

    /// The parts, with the names of their files.
    pub fn named(&self, pages: &Pages<'_>, sizes: Sizes) -> Result<Vec<NamedPart>, Error> {
        let heap = LocalHeap::read(pages, sizes, self.heap)?;
        let name = |part: &Part| Ok(NamedPart { file: heap.text(pages, part.name)?, part: *part });
        self.parts.iter().map(name).collect()
    }
}

/// One segment for each box of consecutive bytes in one file.
pub(crate) fn segments(
    parts: &[NamedPart],
    shape: &[u64],
    element: &Element,
    fill: &Fill,
    other_files: &mut Vec<String>,
) -> Result<Vec<Segment>, Unreadable> {
    let width = element.nbytes().max(1);
    let total = segment::array_nbytes(shape, element).ok_or_else(segment::too_large)?;
    let (mut segments, mut done) = (Vec::new(), 0_u64);
    for NamedPart { file, part } in parts {
        let length = part.length.unwrap_or(u64::MAX).min(total - done);
        if length % width != 0 {
            return Err(Unreadable::unsupported("an element that lies in two external files"));
        }
        let file = file_number(file, other_files)?;
        let mut offset = part.offset;
        for (origin, shape) in boxes(shape, done / width, (done + length) / width) {
            let nbytes = shape.iter().product::<u64>() * width;
            let range = ByteRange::new(offset, nbytes)?;
            segments.push(in_box(&origin, &shape, element, fill, file, range)?);
            offset = range.end();
        }
        done += length;
    }
    Ok(segments)
}

fn file_number(name: &str, other_files: &mut Vec<String>) -> Result<u32, Unreadable> {
    let known = other_files.iter().position(|known| known == name);
    let number = known.unwrap_or_else(|| {
        other_files.push(name.to_string());
        other_files.len() - 1
    });
    u32::try_from(number + 1).map_err(|_| Unreadable::damaged("too many external files"))
}

fn in_box(
    origin: &[u64],
    shape: &[u64],
    element: &Element,
    fill: &Fill,
    file: u32,
    range: ByteRange,
) -> Result<Segment, Unreadable> {
    let manifest = Manifest::of_chunks(vec![segment::stored(0, file, range)]);
    let whole = segment::gridded(shape, segment::one_chunk(shape), element, fill, Vec::new(), manifest)?;
    Ok(Segment { axes: SegmentAxis::of_box(origin, shape, &vec![0; shape.len()])?, ..whole })
}

/// Elements `start .. stop` of an array as boxes, in row-major order: at most two for each axis, and one more.
fn boxes(shape: &[u64], mut start: u64, stop: u64) -> Vec<(Vec<u64>, Vec<u64>)> {
    let mut found = Vec::new();
    while start < stop {
        let (origin, lengths, count) = largest_box(shape, start, stop - start);
        found.push((origin, lengths));
        start += count;
    }
    found
}

/// The largest box that starts at an element, is contiguous, and has at most `limit` elements.
fn largest_box(shape: &[u64], start: u64, limit: u64) -> (Vec<u64>, Vec<u64>, u64) {
    let ndim = shape.len();
    let (mut origin, mut lengths) = (vec![0; ndim], vec![1; ndim]);
    let (mut rest, mut row, mut growing) = (start, 1_u64, true);
    for (axis, &length) in shape.iter().enumerate().rev() {
        let length = length.max(1);
        let index = rest % length;
        rest /= length;
        let taken = if growing { (limit / row).min(length - index).max(1) } else { 1 };
        // A box may only grow along slower axes while it covers the faster ones completely.
        growing = growing && index == 0 && taken == length;
        if let (Some(origin), Some(extent)) = (origin.get_mut(axis), lengths.get_mut(axis)) {
            (*origin, *extent) = (index, taken);
        }
        row *= taken;
    }
    (origin, lengths, row)
}

#[cfg(test)]
mod tests {
    use super::boxes;

    #[test]
    fn boxes_cover_their_elements_in_order() {
        let shape = [3, 4, 5];
        for start in 0..60 {
            for stop in start..=60 {
                let mut next = start;
                let found = boxes(&shape, start, stop);
                assert!(found.len() <= 7);
                for (origin, lengths) in found {
                    assert_eq!(next, (origin[0] * 4 + origin[1]) * 5 + origin[2]);
                    assert!(origin.iter().zip(&lengths).zip(&shape).all(|((o, l), s)| o + l <= *s));
                    next += lengths.iter().product::<u64>();
                }
                assert_eq!(next, stop);
            }
        }
    }

    #[test]
    fn scalars_and_empty_arrays() {
        assert_eq!(boxes(&[], 0, 1), [(vec![], vec![])]);
        assert!(boxes(&[4, 0], 0, 0).is_empty());
    }
}
