//! The bits of a stream, checked: for headers and where the fast loop may not go.

use crate::Failure;

/// A place in the input, and the bits that come next. Beyond the end of the input, zeros come.
#[derive(Clone, Copy, Default)]
pub(crate) struct Bits {
    /// The next byte of the input to take.
    pub(crate) next: usize,
    /// The bits; those above `count` are zeros.
    pub(crate) held: u64,
    pub(crate) count: u32,
    /// How many bytes of zeros were taken beyond the end.
    beyond: u32,
}

impl Bits {
    /// Less than 8 bits, which come before the byte `next`.
    pub(crate) fn at(next: usize, held: u64, count: u32) -> Self {
        Self { next, held, count, beyond: 0 }
    }

    /// Holds more than 56 bits after this. Fails where a stream has long ended.
    pub(crate) fn refill(&mut self, input: &[u8]) -> Result<(), Failure> {
        while self.count <= 56 {
            match input.get(self.next) {
                Some(&byte) => {
                    self.held |= u64::from(byte) << self.count;
                    self.next += 1;
                }
                None => self.beyond += 1,
            }
            self.count += 8;
        }
        if self.beyond > 8 { Err(Failure::Damaged) } else { Ok(()) }
    }

    /// Takes bits that are held.
    pub(crate) fn take(&mut self, count: u32) -> u32 {
        let taken = self.held & ((1 << count) - 1);
        self.held >>= count;
        self.count -= count;
        taken as u32
    }

    /// Gives whole bytes back, so that `next` is the byte after the last bit that was taken, and less than 8 bits are
    /// held. Fails if bits from beyond the end were taken.
    pub(crate) fn give_back(&mut self) -> Result<(), Failure> {
        let whole = self.count / 8;
        let Some(real) = whole.checked_sub(self.beyond) else { return Err(Failure::Damaged) };
        self.beyond = 0;
        self.next -= real as usize;
        self.count %= 8;
        self.held &= (1 << self.count) - 1;
        Ok(())
    }

    /// Drops what is left of a byte, and gives whole bytes back.
    pub(crate) fn align(&mut self) -> Result<(), Failure> {
        self.take(self.count % 8);
        self.give_back()
    }
}
