//! The chunks along one axis that a selection touches. Handling each axis separately makes millions of chunks cost only
//! a few lists.

use std::ops::Range;

use crate::array::segment::SegmentAxis;
use crate::error::Error;
use crate::plan::placement::{AxisPart, Piece, Pieces};
use crate::selection::axis::AxisSelection;
use crate::selection::orthogonal::AxisIndices;

/// How a segment that is an unbroken interval of one axis lies in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AxisInterval {
    /// The start of its box in the array.
    pub origin: u64,
    /// The box's length.
    pub length: u64,
    /// The start of the box in the grid's array.
    pub source_origin: u64,
    /// The grid's chunk length.
    pub chunk_length: u64,
}

impl AxisInterval {
    /// How a segment's axis lies, if it is one interval both in its array and in its source.
    fn of(axis: &SegmentAxis, chunk_length: u64) -> Option<Self> {
        let (shown, source) = (axis.shown, axis.source);
        (shown.is_contiguous() && source.is_contiguous()).then(|| Self {
            origin: shown.start(),
            length: shown.len(),
            source_origin: source.start(),
            chunk_length,
        })
    }

    fn stop(&self) -> u64 {
        self.origin.saturating_add(self.length)
    }

    /// The chunk that holds index `index` of the array, and its position in that chunk.
    fn locate(&self, index: u64) -> (u64, u64) {
        let source = index - self.origin + self.source_origin;
        (source / self.chunk_length, source % self.chunk_length)
    }

    /// The array's index for an index of the grid's array; less than `origin` if that index is before the box.
    fn index_of(&self, source: u64) -> u64 {
        source.saturating_add(self.origin).saturating_sub(self.source_origin)
    }

    /// The index in the array where the chunk after `coordinate` starts.
    fn end_of(&self, coordinate: u64) -> u64 {
        self.index_of((coordinate + 1) * self.chunk_length)
    }

    /// How many parts of `most` elements a chunk has.
    fn parts_of_chunk(&self, most: u64) -> u64 {
        self.chunk_length.div_ceil(most)
    }

    /// The number of the part that holds index `index` of the array, counting from the first chunk.
    fn part_number(&self, index: u64, most: u64) -> u64 {
        let (coordinate, inner) = self.locate(index);
        coordinate * self.parts_of_chunk(most) + inner / most
    }
}

/// The chunks along one axis of a segment that a selection touches.
#[derive(Clone, Debug)]
pub(crate) enum AxisCut {
    /// An unbroken interval. Its parts are computed on demand. A part starts every `most` elements of a chunk.
    Interval { axis: AxisInterval, start: u64, stop: u64, output_start: u64, most: u64 },
    /// Anything else. `chunks` has each coordinate and the number of its first piece.
    Listed { chunks: Vec<(u64, usize)>, pieces: Vec<Piece> },
}

impl AxisCut {
    /// The part of `indices` that lies in a segment.
    pub fn new(indices: &AxisIndices, axis: &SegmentAxis, chunk_length: u64) -> Result<Self, Error> {
        match (indices, AxisInterval::of(axis, chunk_length)) {
            (AxisIndices::Regular(selected), Some(axis)) => Self::regular(selected.merged(), axis),
            (AxisIndices::Regular(selected), None) => {
                Ok(Self::listed(shared(*selected, axis.shown)?, axis, chunk_length))
            }
            (AxisIndices::Listed(indices), _) => {
                let positions = (0..)
                    .zip(indices)
                    .filter_map(|(position, &index)| Some((position, axis.shown.position_at(index)?)));
                Ok(Self::listed(positions, axis, chunk_length))
            }
        }
    }

    /// The single part of an axis that the array does not have.
    pub fn fixed(axis: &SegmentAxis, chunk_length: u64) -> Self {
        Self::listed(std::iter::once((0, 0)), axis, chunk_length)
    }

    fn regular(selected: AxisSelection, axis: AxisInterval) -> Result<Self, Error> {
        let (first, stop) = (selected.position_of(axis.origin), selected.position_of(axis.stop()));
        if selected.count() == 1 && first < stop {
            let (start, most) = (selected.nth(first), axis.chunk_length);
            let interval =
                Self::Interval { axis, start, stop: start + (stop - first), output_start: first, most };
            return Ok(interval);
        }
        check_pieces(most_pieces(selected, axis, first..stop))?;
        let (mut chunks, mut pieces, mut position) = (Vec::new(), Vec::new(), first);
        while position < stop {
            let (coordinate, _) = axis.locate(selected.nth(position));
            let chunk_stop = selected.position_of(axis.end_of(coordinate)).min(stop);
            chunks.push((coordinate, pieces.len()));
            push_blocks(&mut pieces, selected, axis, position..chunk_stop);
            position = chunk_stop;
        }
        Ok(Self::Listed { chunks, pieces })
    }

    /// From positions in the output and in the segment's axis.
    fn listed(positions: impl Iterator<Item = (u64, u64)>, axis: &SegmentAxis, chunk_length: u64) -> Self {
        let mut located: Vec<(u64, u64, u64)> = positions
            .map(|(output, position)| {
                let index = axis.source.nth(position);
                (index / chunk_length, output, index % chunk_length)
            })
            .collect();
        located.sort_unstable();
        let (mut chunks, mut pieces) = (Vec::<(u64, usize)>::new(), Vec::new());
        for (coordinate, position, inner) in located {
            let begins = chunks.last().is_none_or(|&(last, _)| last != coordinate);
            if begins {
                chunks.push((coordinate, pieces.len()));
            }
            push_element(&mut pieces, begins, position, inner);
        }
        Self::Listed { chunks, pieces }
    }

    /// How many parts there are.
    pub fn len(&self) -> u64 {
        match self {
            Self::Listed { chunks, .. } => chunks.len() as u64,
            Self::Interval { axis, start, stop, most, .. } => {
                axis.part_number(stop - 1, *most) - axis.part_number(*start, *most) + 1
            }
        }
    }

    /// How many elements the parts have together.
    pub fn element_count(&self) -> u64 {
        match self {
            Self::Interval { start, stop, .. } => stop - start,
            Self::Listed { pieces, .. } => pieces.iter().map(|piece| piece.count).sum(),
        }
    }

    /// The number of elements of the largest part.
    pub fn most_elements(&self) -> u64 {
        match self {
            Self::Interval { start, stop, most, .. } => (*most).min(stop - start),
            Self::Listed { .. } => {
                (0..self.len()).map(|number| self.part(number).element_count()).max().unwrap_or(0)
            }
        }
    }

    /// Part number `number`, which must be below `len()`.
    pub fn part(&self, number: u64) -> AxisPart<'_> {
        match self {
            Self::Interval { axis, start, stop, output_start, most } => {
                let (parts, number) = (axis.parts_of_chunk(*most), axis.part_number(*start, *most) + number);
                let coordinate = number / parts;
                let source = coordinate * axis.chunk_length + number % parts * most;
                let begin = axis.index_of(source).max(*start);
                let end = axis.index_of(source + most).min(axis.end_of(coordinate)).min(*stop);
                let piece = Piece {
                    chunk_start: axis.locate(begin).1,
                    step: 1,
                    output_start: output_start + (begin - start),
                    count: end - begin,
                };
                AxisPart { coordinate, pieces: Pieces::One(piece) }
            }
            Self::Listed { chunks, pieces } => {
                let number = usize::try_from(number).unwrap_or(usize::MAX);
                let (coordinate, first) = chunks[number];
                let stop = chunks.get(number + 1).map_or(pieces.len(), |&(_, next)| next);
                AxisPart { coordinate, pieces: Pieces::Several(&pieces[first..stop]) }
            }
        }
    }

    /// Whether part number `number` is the first one of its chunk.
    pub fn begins_chunk(&self, number: u64) -> bool {
        number == 0 || self.part(number - 1).coordinate != self.part(number).coordinate
    }

    /// The numbers of the parts of the chunk at a coordinate.
    pub fn parts_of(&self, coordinate: u64) -> Range<u64> {
        match self {
            Self::Interval { axis, start, stop, most, .. } => {
                let parts = axis.parts_of_chunk(*most);
                let (first, last) = (axis.part_number(*start, *most), axis.part_number(stop - 1, *most));
                let own = coordinate.saturating_mul(parts);
                let number = |part: u64| part.clamp(first, last + 1) - first;
                number(own)..number(own.saturating_add(parts))
            }
            Self::Listed { chunks, .. } => {
                let before = |coordinate| chunks.partition_point(|&(other, _)| other < coordinate) as u64;
                before(coordinate)..before(coordinate.saturating_add(1))
            }
        }
    }

    /// The same elements in parts of at most `most` elements. Several parts may be of one chunk.
    pub fn split(self, most: u64) -> Result<Self, Error> {
        if self.most_elements() <= most {
            return Ok(self);
        }
        let (chunks, pieces) = match self {
            Self::Interval { axis, start, stop, output_start, .. } => {
                return Ok(Self::Interval { axis, start, stop, output_start, most });
            }
            Self::Listed { chunks, pieces } => (chunks, pieces),
        };
        check_pieces(pieces.iter().fold(0, |sum, piece| sum.saturating_add(piece.count.div_ceil(most) + 1)))?;
        let whole = Self::Listed { chunks, pieces };
        let (mut chunks, mut pieces) = (Vec::new(), Vec::new());
        for part in (0..whole.len()).map(|number| whole.part(number)) {
            let mut room = 0;
            for piece in part.pieces.iter() {
                let mut done = 0;
                while done < piece.count {
                    if room == 0 {
                        chunks.push((part.coordinate, pieces.len()));
                        room = most;
                    }
                    let taken = piece.part(done, room);
                    pieces.push(taken);
                    (done, room) = (done + taken.count, room - taken.count);
                }
            }
        }
        Ok(Self::Listed { chunks, pieces })
    }
}

/// The positions, in each of two selections, of the indices that they share. It tries the indices of the smaller one.
fn shared(one: AxisSelection, other: AxisSelection) -> Result<impl Iterator<Item = (u64, u64)>, Error> {
    let within = |tried: AxisSelection, bounds: AxisSelection| {
        tried.position_of(bounds.start())..tried.position_of(bounds.stop())
    };
    let (in_one, in_other) = (within(one, other), within(other, one));
    let is_fewer = in_one.end - in_one.start <= in_other.end - in_other.start;
    let (tried, positions, bounds) = if is_fewer { (one, in_one, other) } else { (other, in_other, one) };
    check_pieces(positions.end - positions.start)?;
    Ok(positions.filter_map(move |position| {
        let found = bounds.position_at(tried.nth(position))?;
        Some(if is_fewer { (position, found) } else { (found, position) })
    }))
}

/// The most pieces that one axis of a plan may keep: some gigabytes. More would only be a file's claim.
const MOST_PIECES: u64 = 1 << 26;

/// The most pieces that a selection's `positions` can make.
fn most_pieces(selected: AxisSelection, axis: AxisInterval, positions: Range<u64>) -> u64 {
    if positions.is_empty() {
        return 0;
    }
    let chunk = |position| axis.locate(selected.nth(position)).0;
    let chunk_count = chunk(positions.end - 1) - chunk(positions.start) + 1;
    match selected.block() {
        1 => chunk_count.min(positions.end - positions.start),
        block => {
            (positions.end - positions.start) / block + 1 + chunk_count.min(positions.end - positions.start)
        }
    }
}

fn check_pieces(count: u64) -> Result<(), Error> {
    if count <= MOST_PIECES { Ok(()) } else { Err(Error::TooScattered { limit: MOST_PIECES }) }
}

/// The pieces of the selection's `positions`, all in one chunk.
fn push_blocks(pieces: &mut Vec<Piece>, selected: AxisSelection, axis: AxisInterval, positions: Range<u64>) {
    let mut position = positions.start;
    while position < positions.end {
        let (step, room) = match selected.block() {
            1 => (selected.stride(), u64::MAX),
            block => (1, block - position % block),
        };
        let count = room.min(positions.end - position);
        let chunk_start = axis.locate(selected.nth(position)).1;
        pieces.push(Piece { chunk_start, step, output_start: position, count });
        position += count;
    }
}

/// Adds a listed element of a chunk: to the last piece if it continues evenly, otherwise as a new piece.
fn push_element(pieces: &mut Vec<Piece>, begins: bool, position: u64, inner: u64) {
    if let Some(last) = pieces.last_mut().filter(|_| !begins) {
        let end = last.chunk_start + (last.count - 1) * last.step;
        let follows = last.output_start + last.count == position && inner > end;
        if follows && (last.count == 1 || inner - end == last.step) {
            last.step = inner - end;
            last.count += 1;
            return;
        }
    }
    pieces.push(Piece { chunk_start: inner, step: 1, output_start: position, count: 1 });
}
