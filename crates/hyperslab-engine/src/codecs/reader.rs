//! Reads encoded bytes from front to back, as bytes or as bits. Running out is an error, never a panic.

use crate::Error;

/// The remaining bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bytes<'a> {
    codec: &'static str,
    rest: &'a [u8],
}

impl<'a> Bytes<'a> {
    /// A reader of all bytes. Errors name `codec`.
    pub(crate) fn new(codec: &'static str, bytes: &'a [u8]) -> Self {
        Self { codec, rest: bytes }
    }

    /// What remains.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `nbytes` bytes.
    pub(crate) fn take(&mut self, nbytes: usize) -> Result<&'a [u8], Error> {
        let (taken, rest) = self
            .rest
            .split_at_checked(nbytes)
            .ok_or(Error::Damaged { codec: self.codec, problem: "the encoded bytes end too early" })?;
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut bytes = [0; N];
        bytes.copy_from_slice(self.take(N)?);
        Ok(bytes)
    }

    /// One byte.
    pub(crate) fn byte(&mut self) -> Result<u8, Error> {
        self.array::<1>().map(|[byte]| byte)
    }

    /// Four bytes, little-endian.
    pub(crate) fn u32_le(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_le_bytes)
    }

    /// Four bytes, little-endian, signed.
    pub(crate) fn i32_le(&mut self) -> Result<i32, Error> {
        self.array().map(i32::from_le_bytes)
    }

    /// Four bytes, big-endian.
    pub(crate) fn u32_be(&mut self) -> Result<u32, Error> {
        self.array().map(u32::from_be_bytes)
    }

    /// Eight bytes, big-endian.
    pub(crate) fn u64_be(&mut self) -> Result<u64, Error> {
        self.array().map(u64::from_be_bytes)
    }
}

/// Bits, starting with the most significant bit of each byte.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bits<'a> {
    bytes: &'a [u8],
    next: usize,
    /// The next bits, left-aligned.
    held: u64,
    held_nbits: u32,
}

impl<'a> Bits<'a> {
    /// A reader of all bits.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, next: 0, held: 0, held_nbits: 0 }
    }

    /// Refills the register to at least 56 bits, or to all that remain.
    fn refill(&mut self) {
        let word = self.bytes.get(self.next..).and_then(<[u8]>::first_chunk::<8>);
        if let Some(word) = word {
            // Bits beyond the counted ones may be loaded twice; they are equal.
            self.held |= u64::from_be_bytes(*word) >> self.held_nbits;
            self.next += ((63 - self.held_nbits) / 8) as usize;
            self.held_nbits |= 0b11_1000; // 56, and up to seven more
            return;
        }
        while self.held_nbits <= 56 {
            let Some(&byte) = self.bytes.get(self.next) else { return };
            self.held |= u64::from(byte) << (56 - self.held_nbits);
            self.held_nbits += 8;
            self.next += 1;
        }
    }

    /// The next bits, at most 56, as a number.
    pub(crate) fn take(&mut self, nbits: u32) -> Option<u64> {
        if nbits > self.held_nbits {
            self.refill();
        }
        if nbits > self.held_nbits || nbits > 56 {
            return None;
        }
        let taken = self.held.checked_shr(64 - nbits).unwrap_or(0);
        self.held <<= nbits;
        self.held_nbits -= nbits;
        Some(taken)
    }

    /// The next bits, at most 64, as a number.
    pub(crate) fn take_wide(&mut self, nbits: u32) -> Option<u64> {
        if nbits <= 32 {
            return self.take(nbits);
        }
        let high = self.take(nbits - 32)?;
        Some((high << 32) | self.take(32)?)
    }

    /// Counts the zeros before the next one, and takes that one too.
    pub(crate) fn zeros(&mut self) -> Option<u32> {
        let mut count = 0_u32;
        loop {
            let zeros = self.held.leading_zeros();
            if zeros < self.held_nbits {
                self.held = (self.held << zeros) << 1;
                self.held_nbits -= zeros + 1;
                return count.checked_add(zeros);
            }
            count = count.checked_add(self.held_nbits)?;
            (self.held, self.held_nbits) = (0, 0);
            self.refill();
            if self.held_nbits == 0 {
                return None;
            }
        }
    }
}
