//! Which elements of a chunk go where in the output.

use std::ops::Deref;

/// Elements along one axis, evenly spaced in a chunk and contiguous in the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// The offset of the first one in the chunk.
    pub chunk_start: u64,
    /// The distance to the next one in the chunk.
    pub step: u64,
    /// The offset of the first one in the output.
    pub output_start: u64,
    /// How many there are.
    pub count: u64,
}

impl Piece {
    /// The elements from number `first` on, at most `count` of them.
    pub(crate) fn part(self, first: u64, count: u64) -> Self {
        Self {
            chunk_start: self.chunk_start + first * self.step,
            output_start: self.output_start + first,
            count: count.min(self.count - first),
            ..self
        }
    }
}

/// What a selection takes of one chunk along one axis.
#[derive(Clone, Debug)]
pub struct AxisPart<'a> {
    /// The chunk's index on this axis.
    pub coordinate: u64,
    /// Its elements, in the output's order.
    pub pieces: Pieces<'a>,
}

/// One piece, as in most parts, or several.
#[derive(Clone, Debug)]
pub enum Pieces<'a> {
    /// Computed.
    One(Piece),
    /// From a list.
    Several(&'a [Piece]),
}

impl Deref for Pieces<'_> {
    type Target = [Piece];

    fn deref(&self) -> &[Piece] {
        match self {
            Self::One(piece) => std::slice::from_ref(piece),
            Self::Several(pieces) => pieces,
        }
    }
}

impl AxisPart<'_> {
    /// How many elements are taken.
    pub fn element_count(&self) -> u64 {
        self.pieces.iter().map(|piece| piece.count).sum()
    }
}

/// Elements that are contiguous in the output and evenly spaced in the chunk's buffer: one copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Row {
    /// Where it starts in the chunk's buffer, in elements.
    pub chunk_offset: u64,
    /// The distance between its elements in the chunk's buffer; 1 for a plain copy.
    pub step: u64,
    /// Where it starts in the output, in elements.
    pub output_offset: u64,
    /// How many elements it has.
    pub count: u64,
}

impl Row {
    /// Where its last element ends in the chunk's buffer, in elements.
    pub fn chunk_stop(&self) -> u64 {
        self.chunk_offset + (self.count - 1) * self.step + 1
    }
}

/// Where the elements that a read takes of one chunk are in the chunk's buffer and in the output.
///
/// The output offsets of different rows never overlap: each axis assigns every position of the output to one piece
/// only.
#[derive(Clone, Debug)]
pub struct Placement<'a> {
    pub(crate) parts: Vec<AxisPart<'a>>,
    /// The distance between neighbours on each axis in the chunk's buffer.
    pub(crate) chunk_strides: &'a [u64],
    /// The distance between neighbours on each axis in the output.
    pub(crate) output_strides: &'a [u64],
    /// The number of elements of a chunk on each axis.
    pub(crate) chunk_shape: &'a [u64],
}

impl Placement<'_> {
    /// How many elements are taken.
    pub fn element_count(&self) -> u64 {
        self.parts.iter().map(AxisPart::element_count).product()
    }

    /// Visits every row, in the output's order. Stops at the first error.
    pub fn rows<E>(&self, mut each: impl FnMut(Row) -> Result<(), E>) -> Result<(), E> {
        let (axes, line) = self.folded();
        self.walk(0, axes, line, (0, 0), &mut each)
    }

    /// The length that all rows have except those at an edge. Tells small rows from large ones.
    pub fn row_element_count(&self) -> u64 {
        let (axes, line) = self.folded();
        let Some(part) = axes.checked_sub(1).and_then(|axis| self.parts.get(axis)) else { return line };
        let longest = part.pieces.iter().filter(|piece| piece.step == 1).map(|piece| piece.count).max();
        line * longest.unwrap_or(1)
    }

    /// How many axes need a loop, and how long a line is. The faster axes, which are complete in both buffers, make up
    /// a line.
    ///
    /// An axis is complete if it starts and ends where the next slower one steps. The slowest axis always needs a loop.
    fn folded(&self) -> (usize, u64) {
        let (mut axes, mut line) = (self.parts.len(), 1);
        while axes > 1 {
            let axis = axes - 1;
            let length = self.chunk_shape[axis];
            let is_taken_whole = matches!(*self.parts[axis].pieces, [piece] if piece.step == 1
                && piece.count == length);
            let steps = |strides: &[u64]| strides[axis] == line && strides[axis - 1] == line * length;
            if !is_taken_whole || !steps(self.chunk_strides) || !steps(self.output_strides) {
                break;
            }
            (axes, line) = (axis, line * length);
        }
        (axes, line)
    }

    fn walk<E>(
        &self,
        axis: usize,
        axes: usize,
        line: u64,
        (chunk_base, output_base): (u64, u64),
        each: &mut impl FnMut(Row) -> Result<(), E>,
    ) -> Result<(), E> {
        if axis == axes {
            let row = Row { chunk_offset: chunk_base, step: 1, output_offset: output_base, count: line };
            return each(row);
        }
        let (chunk_stride, output_stride) = (self.chunk_strides[axis], self.output_strides[axis]);
        for piece in self.parts[axis].pieces.iter() {
            let chunk_start = chunk_base + piece.chunk_start * chunk_stride;
            let output_start = output_base + piece.output_start * output_stride;
            if axis + 1 == axes
                && output_stride == line
                && let Some((step, count)) = joined(*piece, chunk_stride, line)
            {
                each(Row { chunk_offset: chunk_start, step, output_offset: output_start, count })?;
                continue;
            }
            for number in 0..piece.count {
                let chunk = chunk_start + number * piece.step * chunk_stride;
                self.walk(axis + 1, axes, line, (chunk, output_start + number * output_stride), each)?;
            }
        }
        Ok(())
    }
}

/// The step and count of one row that covers several lines, if a single row can.
fn joined(piece: Piece, chunk_stride: u64, line: u64) -> Option<(u64, u64)> {
    let step = piece.step * chunk_stride;
    if step == line || piece.count == 1 {
        return Some((1, piece.count * line));
    }
    (line == 1).then_some((step, piece.count))
}
