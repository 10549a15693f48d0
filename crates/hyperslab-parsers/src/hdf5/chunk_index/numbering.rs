//! How indexes number chunks, and where these numbers lie in the array's current grid.

use crate::error::Error;

/// The grid of an array's chunks, and the order in which linear indexes number it.
///
/// Fixed arrays and implicit indexes number the grid over the *maximum* shape, in row-major order. Extensible arrays do
/// the same, but with the one unlimited axis moved to the front. The array's own grid covers its current shape.
#[derive(Debug)]
pub(super) struct Numbering {
    chunk_shape: Vec<u64>,
    grid_shape: Vec<u64>,
    /// Chunks along each axis of the maximum shape; `None` if the axis is unlimited.
    max_grid: Vec<Option<u64>>,
    chunk_count: u64,
}

impl Numbering {
    /// For an array of this shape and maximum shape.
    pub fn new(chunk_shape: &[u64], shape: &[u64], max_shape: &[Option<u64>]) -> Result<Self, Error> {
        let problem = |problem: String| Error::invalid("a chunked layout", 0, problem);
        if shape.len() != chunk_shape.len() || max_shape.len() != shape.len() || shape.is_empty() {
            let axes = (chunk_shape.len(), shape.len(), max_shape.len());
            return Err(problem(format!("chunk shape, shape and maximum shape have {axes:?} axes")));
        }
        if chunk_shape.contains(&0) {
            return Err(problem(format!("chunks of shape {chunk_shape:?}")));
        }
        let in_chunks = |(length, &chunk): (u64, &u64)| length.div_ceil(chunk);
        let grid_shape: Vec<u64> = shape.iter().copied().zip(chunk_shape).map(in_chunks).collect();
        let chunk_count =
            grid_shape.iter().try_fold(1_u64, |count, &length| count.checked_mul(length.max(1)));
        if chunk_count.is_none() {
            return Err(problem(format!("an array of shape {shape:?} in chunks of {chunk_shape:?}")));
        }
        let max_grid = (max_shape.iter().zip(chunk_shape))
            .map(|(length, chunk)| length.map(|length| length.div_ceil(*chunk)))
            .collect();
        let chunk_count = grid_shape.iter().product();
        Ok(Self { chunk_shape: chunk_shape.to_vec(), grid_shape, max_grid, chunk_count })
    }

    /// How many axes.
    pub fn ndim(&self) -> usize {
        self.chunk_shape.len()
    }

    /// How many chunks the array has now.
    pub fn chunk_count(&self) -> u64 {
        self.chunk_count
    }

    /// The linear index of a chunk; `None` outside the current shape, where arrays that shrank leave chunks.
    pub fn of_chunk(&self, chunk_index: impl Iterator<Item = u64>) -> Option<u64> {
        let mut axes = chunk_index.zip(&self.grid_shape);
        axes.try_fold(0_u64, |linear, (index, &length)| {
            // The chunk count of the whole grid fits, so every part of it does.
            (index < length).then(|| linear.wrapping_mul(length).wrapping_add(index))
        })
    }

    /// The first element of the chunk with a linear index.
    pub fn start(&self, mut index: u64) -> Vec<u64> {
        let mut start = vec![0; self.ndim()];
        for ((position, &chunk), &length) in
            start.iter_mut().zip(&self.chunk_shape).zip(&self.grid_shape).rev()
        {
            *position = (index % length.max(1)).saturating_mul(chunk);
            index /= length.max(1);
        }
        start
    }

    /// The linear index of the chunk that starts at an element. Fails if no chunk starts there.
    #[inline]
    pub fn of_offsets(&self, offsets: impl Iterator<Item = u64>) -> Result<Option<u64>, u64> {
        let mut linear = 0_u64;
        let mut inside = true;
        for ((offset, &chunk), &length) in offsets.zip(&self.chunk_shape).zip(&self.grid_shape) {
            let index = offset.checked_div(chunk).unwrap_or_default();
            if index.wrapping_mul(chunk) != offset {
                return Err(offset);
            }
            inside &= index < length;
            linear = linear.wrapping_mul(length).wrapping_add(index);
        }
        Ok(inside.then_some(linear))
    }

    /// Counts chunks in the order of fixed arrays and implicit indexes.
    pub fn row_major(&self) -> Result<Order<'_>, Error> {
        self.order((0..self.ndim()).collect())
    }

    /// Counts chunks in the order of extensible arrays.
    pub fn unlimited_first(&self) -> Result<Order<'_>, Error> {
        let unlimited = self.max_grid.iter().position(Option::is_none).unwrap_or(0);
        let others = (0..self.ndim()).filter(|&axis| axis != unlimited);
        self.order(std::iter::once(unlimited).chain(others).collect())
    }

    fn order(&self, axes: Vec<usize>) -> Result<Order<'_>, Error> {
        let length_of = |&axis: &usize| self.max_grid.get(axis).copied().flatten();
        let lengths: Option<Vec<u64>> = axes.iter().skip(1).map(length_of).collect();
        let Some(mut lengths) = lengths else {
            return Err(Error::invalid(
                "a chunk index",
                0,
                "it cannot number an array with these unlimited axes",
            ));
        };
        lengths.insert(0, u64::MAX); // the slowest axis never wraps around
        Ok(Order { numbering: self, axes, lengths })
    }
}

/// The axes from the slowest to the fastest, and the length of each in chunks.
pub(super) struct Order<'a> {
    numbering: &'a Numbering,
    axes: Vec<usize>,
    lengths: Vec<u64>,
}

impl Order<'_> {
    /// Starts counting at a number.
    pub fn from(&self, mut number: u64) -> Counter<'_> {
        let mut chunk_index = vec![0; self.axes.len()];
        for (&axis, &length) in self.axes.iter().zip(&self.lengths).rev() {
            if let Some(position) = chunk_index.get_mut(axis) {
                *position = number % length.max(1);
            }
            number /= length.max(1);
        }
        Counter { order: self, chunk_index }
    }
}

/// A chunk, by its number.
pub(super) struct Counter<'a> {
    order: &'a Order<'a>,
    chunk_index: Vec<u64>,
}

impl Counter<'_> {
    /// The linear index of this chunk in the current grid, if it lies there. Then moves on to the next number.
    pub fn next(&mut self) -> Option<u64> {
        let linear = self.order.numbering.of_chunk(self.chunk_index.iter().copied());
        for (&axis, &length) in self.order.axes.iter().zip(&self.order.lengths).rev() {
            let Some(position) = self.chunk_index.get_mut(axis) else { break };
            *position = position.saturating_add(1);
            if *position < length {
                break;
            }
            *position = 0;
        }
        linear
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

    use super::*;

    fn indices(order: &Order<'_>, first: u64, count: usize) -> Vec<Option<u64>> {
        let mut counter = order.from(first);
        (0..count).map(|_| counter.next()).collect()
    }

    #[test]
    fn maximum_shape_counts() {
        let numbering = Numbering::new(&[2, 2], &[4, 4], &[Some(4), Some(6)]).unwrap();
        let order = numbering.row_major().unwrap();
        assert_eq!(indices(&order, 0, 6), [Some(0), Some(1), None, Some(2), Some(3), None]);
        assert_eq!(indices(&order, 3, 2), [Some(2), Some(3)]);
    }

    #[test]
    fn unlimited_axis_goes_first() {
        let numbering = Numbering::new(&[2, 2], &[4, 6], &[Some(6), None]).unwrap();
        let order = numbering.unlimited_first().unwrap();
        let expected = [Some(0), Some(3), None, Some(1), Some(4), None, Some(2), Some(5), None, None];
        assert_eq!(indices(&order, 0, 10), expected);
        assert_eq!(indices(&order, 4, 3), expected[4..7]);
    }

    #[test]
    fn two_unlimited_axes_have_no_numbers() {
        let numbering = Numbering::new(&[2, 2], &[4, 6], &[None, None]).unwrap();
        assert!(numbering.row_major().is_err());
        assert!(numbering.unlimited_first().is_err());
    }

    #[test]
    fn offsets_must_be_where_chunks_start() {
        let numbering = Numbering::new(&[2, 3], &[4, 6], &[None, None]).unwrap();
        assert_eq!(numbering.of_offsets([2, 3].into_iter()), Ok(Some(3)));
        assert_eq!(numbering.start(3), [2, 3]);
        assert_eq!(numbering.of_offsets([4, 3].into_iter()), Ok(None));
        assert_eq!(numbering.of_offsets([2, 4].into_iter()), Err(4));
        assert_eq!(numbering.of_offsets([u64::MAX, 0].into_iter()), Err(u64::MAX));
    }

    #[test]
    fn impossible_grids_are_refused() {
        assert!(Numbering::new(&[1, 1], &[u64::MAX, 2], &[None, None]).is_err());
        assert!(Numbering::new(&[0, 1], &[1, 2], &[None, None]).is_err());
        assert!(Numbering::new(&[1], &[1, 2], &[None, None]).is_err());
    }
}
