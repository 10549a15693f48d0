//! Row-major (C) order: the last axis is the fastest.

/// The position of `index` in an array of this shape.
pub(crate) fn ravel(index: &[u64], shape: &[u64]) -> u64 {
    index.iter().zip(shape).fold(0, |linear, (&index, &length)| linear * length + index)
}

/// The index on each axis for a position in an array of this shape.
pub(crate) fn unravel(mut linear: u64, shape: &[u64]) -> Vec<u64> {
    let mut index = vec![0; shape.len()];
    for (digit, &length) in index.iter_mut().zip(shape).rev() {
        *digit = linear % length;
        linear /= length;
    }
    index
}

/// One wheel for each axis, turned through all positions in row-major order.
#[derive(Clone, Debug)]
pub(crate) struct Odometer {
    lengths: Vec<usize>,
    positions: Vec<usize>,
    finished: bool,
}

impl Odometer {
    /// All wheels at 0. Without wheels there is one position. With a wheel of length 0 there is none.
    pub(crate) fn new(lengths: Vec<usize>) -> Self {
        Self { positions: vec![0; lengths.len()], finished: lengths.contains(&0), lengths }
    }

    /// The position of every wheel, or `None` after the last one.
    pub(crate) fn read(&self) -> Option<&[usize]> {
        (!self.finished).then_some(&self.positions)
    }

    /// Moves to the next position.
    pub(crate) fn turn(&mut self) {
        for (position, &length) in self.positions.iter_mut().zip(&self.lengths).rev() {
            *position += 1;
            if *position < length {
                return;
            }
            *position = 0;
        }
        self.finished = true;
    }
}
