//! Selections as the log has them: a kind, and a list of numbers.

use hyperslab_libhdf5::{Corner, SelectionKind, Space, intervals};

/// The kinds of `log.py`.
pub(crate) const ALL: u8 = 0;
const HYPERSLAB: u8 = 1;
const BOXES: u8 = 2;
const POINTS: u8 = 3;
const LISTS: u8 = 4;
const BOUNDS: u8 = 5;
const NOTHING: u8 = 6;
/// More numbers are not written: then only the bounds are.
const MOST_NUMBERS: usize = 1 << 20;
/// More blocks are not even listed.
const MOST_BLOCKS: usize = 1 << 16;
/// As many as most selections need are on the stack.
const FEW: usize = 4 * 6;

/// A selection.
pub(crate) struct Selected {
    pub kind: u8,
    /// How many elements.
    pub count: u64,
    few: [i64; FEW],
    few_count: usize,
    many: Vec<i64>,
}

impl Selected {
    fn new(kind: u8, count: u64) -> Self {
        Self { kind, count, few: [0; FEW], few_count: 0, many: Vec::new() }
    }

    fn listed(kind: u8, count: u64, many: Vec<i64>) -> Self {
        Self { many, ..Self::new(kind, count) }
    }

    fn push(&mut self, numbers: [u64; 4]) {
        for number in numbers {
            let number = i64::try_from(number).unwrap_or(i64::MAX);
            if self.few_count < FEW && self.many.is_empty() {
                self.few[self.few_count] = number;
                self.few_count += 1;
            } else {
                if self.many.is_empty() {
                    self.many.extend_from_slice(&self.few);
                }
                self.many.push(number);
            }
        }
    }

    /// What the kind needs.
    pub fn numbers(&self) -> &[i64] {
        if self.many.is_empty() { &self.few[..self.few_count] } else { &self.many }
    }

    /// Everything.
    pub fn all(shape: &[u64]) -> Self {
        let count = shape.iter().fold(1, |all: u64, &length| all.saturating_mul(length));
        if count == 0 { Self::new(NOTHING, 0) } else { Self::new(ALL, count) }
    }

    /// The chunk that begins at an offset.
    pub fn chunk(offset: &[u64], chunk: &[u64], shape: &[u64]) -> Self {
        let lengths = || {
            let axes = offset.iter().zip(chunk).zip(shape);
            axes.map(|((&start, &chunk), &length)| (start, chunk.min(length.saturating_sub(start))))
        };
        let count = lengths().fold(1, |all: u64, (_, length)| all.saturating_mul(length));
        if count == 0 {
            return Self::new(NOTHING, 0);
        }
        let mut found = Self::new(HYPERSLAB, count);
        lengths().for_each(|(start, length)| found.push([start, 1, length, 1]));
        found
    }

    /// What is selected of a dataspace with this shape: so many elements.
    #[inline]
    pub fn of(space: Space<'_>, shape: &[u64], count: i64) -> Option<Self> {
        match count {
            0 => Some(Self::new(NOTHING, 0)),
            1.. if shape.is_empty() => Some(Self::all(shape)),
            // A single element needs no more questions, which would take longer than reading it.
            1 => Self::single(&space.bounds()?.0, shape),
            2.. => Self::of_several(space, shape, count.cast_unsigned()),
            _ => None,
        }
    }

    #[inline]
    fn single(index: &Corner, shape: &[u64]) -> Option<Self> {
        let mut found = Self::new(HYPERSLAB, 1);
        for (&start, &length) in index.iter().zip(shape) {
            if start >= length {
                return None;
            }
            found.push([start, 1, 1, 1]);
        }
        if shape.iter().all(|&length| length == 1) { Some(Self::all(shape)) } else { Some(found) }
    }

    fn of_several(space: Space<'_>, shape: &[u64], count: u64) -> Option<Self> {
        match space.selection_kind()? {
            SelectionKind::All => Some(Self::all(shape)),
            SelectionKind::Hyperslabs => {
                let (low, high) = space.bounds()?;
                if let Some(found) = Self::filled(&low, &high, shape, count) {
                    return Some(found);
                }
                if space.is_regular() {
                    Self::regular(space, shape, &low)
                } else {
                    Self::blocks(space, shape.len())
                }
            }
            SelectionKind::Points => Self::points(space, shape.len()),
            SelectionKind::None => None,
        }
    }

    /// The box between two corners; `None` if fewer elements are selected than it has.
    #[inline]
    fn filled(low: &Corner, high: &Corner, shape: &[u64], count: u64) -> Option<Self> {
        let mut found = Self::new(HYPERSLAB, count);
        let (mut room, mut is_all) = (1_u64, true);
        for ((&low, &high), &whole) in low.iter().zip(high).zip(shape) {
            let length = high.checked_sub(low)?.checked_add(1)?;
            room = room.checked_mul(length)?;
            is_all &= low == 0 && length == whole;
            found.push([low, 1, length, 1]);
        }
        (room == count).then(|| if is_all { Self::new(ALL, count) } else { found })
    }

    /// `low` is the first corner, which `H5Soffset_simple` moves.
    #[inline]
    fn regular(space: Space<'_>, shape: &[u64], low: &Corner) -> Option<Self> {
        let [_, stride, count, block] = space.regular()?;
        let mut found = Self::new(HYPERSLAB, 1);
        let mut is_all = true;
        for (axis, &length) in shape.iter().enumerate() {
            let (mut stride, mut count, mut block) = (stride[axis], count[axis], block[axis]);
            if count == 1 || stride == block {
                (stride, count, block) = (1, count.saturating_mul(block), 1);
            }
            found.count = found.count.saturating_mul(count).saturating_mul(block);
            is_all &= low[axis] == 0 && stride == 1 && count == length;
            found.push([low[axis], stride, count, block]);
        }
        Some(if is_all { Self::new(ALL, found.count) } else { found })
    }

    fn blocks(space: Space<'_>, ndim: usize) -> Option<Self> {
        let size = u64::try_from(space.count()).ok()?;
        let count = space.block_count()?;
        if count > MOST_BLOCKS || count == 0 {
            return Self::bounds_only(space, ndim, size);
        }
        let mut corners = space.blocks(count)?;
        move_to(&mut corners, space.bounds()?.0, ndim);
        if let Some(numbers) = product(&corners, ndim) {
            return Some(Self::listed(LISTS, size, numbers));
        }
        if corners.len() > MOST_NUMBERS {
            return Self::bounds_only(space, ndim, size);
        }
        for block in corners.chunks_exact_mut(2 * ndim) {
            for axis in 0..ndim {
                block[ndim + axis] = block[ndim + axis] - block[axis] + 1;
            }
        }
        Some(Self::listed(BOXES, size, signed(&corners)))
    }

    fn points(space: Space<'_>, ndim: usize) -> Option<Self> {
        let count = space.point_count()?;
        if count.checked_mul(ndim)? > MOST_NUMBERS {
            return Self::bounds_only(space, ndim, count as u64);
        }
        let mut indices = space.points(count)?;
        move_to(&mut indices, space.bounds()?.0, ndim);
        Some(Self::listed(POINTS, count as u64, signed(&indices)))
    }

    fn bounds_only(space: Space<'_>, ndim: usize, size: u64) -> Option<Self> {
        let (low, high) = space.bounds()?;
        let lengths = low.iter().zip(&high).map(|(low, high)| high - low + 1);
        let numbers: Vec<u64> = low[..ndim].iter().copied().chain(lengths.take(ndim)).collect();
        Some(Self::listed(BOUNDS, size, signed(&numbers)))
    }
}

/// The index of the only element that is selected of a dataspace with this shape; `None` if it is outside.
#[inline]
pub(crate) fn element(space: Space<'_>, shape: &[u64]) -> Option<Corner> {
    if shape.is_empty() {
        return None;
    }
    let (index, _) = space.bounds()?;
    index.iter().zip(shape).all(|(index, length)| index < length).then_some(index)
}

/// Moves indices, so that the least on each axis is as given. libhdf5 lists them without the offset of the selection.
fn move_to(indices: &mut [u64], low: Corner, ndim: usize) {
    for (axis, low) in low.into_iter().take(ndim).enumerate() {
        let least = indices.iter().skip(axis).step_by(ndim).min().copied().unwrap_or(0);
        if least != low {
            let shift = low.wrapping_sub(least);
            indices.iter_mut().skip(axis).step_by(ndim).for_each(|index| *index = index.wrapping_add(shift));
        }
    }
}

/// Lists of indices whose outer product the blocks are; `None` if they are something else, or very long.
fn product(corners: &[u64], ndim: usize) -> Option<Vec<i64>> {
    let mut numbers = Vec::new();
    for intervals in intervals(corners, ndim)? {
        let total = intervals.iter().fold(0, |all: u64, (first, last)| all.saturating_add(last - first + 1));
        if let [(first, _)] = intervals[..] {
            numbers.extend([0, first, 1, total]);
        } else if numbers.len() as u64 + total <= MOST_NUMBERS as u64 {
            numbers.extend([1, total]);
            numbers.extend(intervals.iter().flat_map(|&(first, last)| first..=last));
        } else {
            return None;
        }
    }
    Some(signed(&numbers))
}

fn signed(numbers: &[u64]) -> Vec<i64> {
    numbers.iter().map(|&number| i64::try_from(number).unwrap_or(i64::MAX)).collect()
}
