//! HDF5's sieve buffer (`H5Dcontig.c`): a window on an array in one piece. Short runs are read and written through it.

use hyperslab_core::ByteRange;

use crate::operation::Operation;

/// HDF5's default.
const MOST_NBYTES: u64 = 65_536;

#[derive(Clone, Debug)]
pub(crate) struct Sieve {
    array_nbytes: u64,
    most_nbytes: u64,
    window: Option<ByteRange>,
    is_dirty: bool,
}

impl Sieve {
    /// For an array of this many bytes. The buffer is empty.
    pub fn new(array_nbytes: u64) -> Self {
        Self { array_nbytes, most_nbytes: array_nbytes.min(MOST_NBYTES), window: None, is_dirty: false }
    }

    /// Reads or writes a run. Calls `ask` for each request that this makes.
    pub fn access(
        &mut self,
        operation: Operation,
        run: ByteRange,
        mut ask: impl FnMut(Operation, ByteRange),
    ) {
        let is_inside =
            self.window.is_some_and(|window| run.offset >= window.offset && run.end() <= window.end());
        if is_inside {
            self.is_dirty |= operation == Operation::Write;
        } else if run.length > self.most_nbytes {
            let meets = |window: ByteRange| window.offset < run.end() && run.offset < window.end();
            if self.window.is_some_and(meets) {
                self.flush(&mut ask);
                self.window = self.window.filter(|_| operation == Operation::Read);
            }
            ask(operation, run);
        } else if operation == Operation::Read || !self.extends(run) {
            self.flush(&mut ask);
            let length = self.most_nbytes.min(self.array_nbytes - run.offset);
            let window = ByteRange { offset: run.offset, length };
            if operation == Operation::Read || length > run.length {
                ask(Operation::Read, window);
            }
            self.window = Some(window);
            self.is_dirty = operation == Operation::Write;
        }
    }

    /// The same buffer without anything in it. What was changed must have been written.
    pub fn emptied(self) -> Self {
        Self { window: None, is_dirty: false, ..self }
    }

    /// Writes what was changed.
    pub fn flush(&mut self, mut ask: impl FnMut(Operation, ByteRange)) {
        if let Some(window) = self.window.filter(|_| std::mem::take(&mut self.is_dirty)) {
            ask(Operation::Write, window);
        }
    }

    /// Adds a run that is written directly before or after the changed bytes, if there is room.
    fn extends(&mut self, run: ByteRange) -> bool {
        let Some(window) = self.window.filter(|_| self.is_dirty) else { return false };
        let length = window.length + run.length;
        let is_beside = run.end() == window.offset || run.offset == window.end();
        if !is_beside || length > self.most_nbytes {
            return false;
        }
        self.window = Some(ByteRange { offset: run.offset.min(window.offset), length });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(
        sieve: &mut Sieve,
        operation: Operation,
        offset: u64,
        length: u64,
    ) -> Vec<(Operation, u64, u64)> {
        let mut found = Vec::new();
        sieve.access(operation, ByteRange { offset, length }, |operation, range| {
            found.push((operation, range.offset, range.length));
        });
        found
    }

    #[test]
    fn short_reads_come_through_a_window_and_long_ones_do_not() {
        let mut sieve = Sieve::new(1 << 20);
        assert_eq!(asked(&mut sieve, Operation::Read, 100, 8), [(Operation::Read, 100, 65_536)]);
        assert_eq!(asked(&mut sieve, Operation::Read, 65_628, 8), []);
        assert_eq!(asked(&mut sieve, Operation::Read, 0, 70_000), [(Operation::Read, 0, 70_000)]);
        assert_eq!(asked(&mut sieve, Operation::Read, 65_628, 8), []);
        assert_eq!(
            asked(&mut sieve, Operation::Read, (1 << 20) - 8, 8),
            [(Operation::Read, (1 << 20) - 8, 8)]
        );
    }

    #[test]
    fn writes_side_by_side_are_one() {
        let mut sieve = Sieve::new(1 << 20);
        let whole = 1 << 20;
        assert_eq!(
            asked(&mut sieve, Operation::Write, whole - 8, 8),
            [],
            "nothing behind it is worth reading"
        );
        assert_eq!(asked(&mut sieve, Operation::Write, whole - 16, 8), []);
        let written = (Operation::Write, whole - 16, 16);
        assert_eq!(asked(&mut sieve, Operation::Write, 0, 8), [written, (Operation::Read, 0, 65_536)]);
        let written = (Operation::Write, 0, 65_536);
        assert_eq!(asked(&mut sieve, Operation::Write, 8, 80_000), [written, (Operation::Write, 8, 80_000)]);
        assert_eq!(asked(&mut sieve, Operation::Read, 0, 8), [(Operation::Read, 0, 65_536)]);
    }
}
