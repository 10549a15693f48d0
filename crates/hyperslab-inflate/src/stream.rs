//! One stream, decoded symbol by symbol with every check: headers, stored blocks, and both ends.

use crate::Failure;
use crate::bits::Bits;
use crate::huffman::{END, LITERAL, SECOND};
use crate::tables::{DISTANCE_BITS, SYMBOL_BITS, Tables};

/// With more input than this left, one round of a fast loop reads within it.
pub(crate) const INPUT_MARGIN: usize = 32;
/// With more output than this left, one round of a fast loop writes within it.
pub(crate) const OUTPUT_MARGIN: usize = 320;

/// What one symbol led to.
#[derive(PartialEq, Eq)]
enum Next {
    Symbol,
    Block,
}

/// A stream and how far it is decoded.
pub(crate) struct Stream<'j> {
    pub(crate) input: &'j [u8],
    pub(crate) output: &'j mut [u8],
    pub(crate) bits: Bits,
    pub(crate) written: usize,
    is_last_block: bool,
    is_in_block: bool,
}

impl<'j> Stream<'j> {
    /// A raw DEFLATE stream that begins at the start of `input`.
    pub(crate) fn new(input: &'j [u8], output: &'j mut [u8]) -> Self {
        let bits = Bits::default();
        Self { input, output, bits, written: 0, is_last_block: false, is_in_block: false }
    }

    /// Whether a fast loop can run.
    fn has_room(&self) -> bool {
        self.input.len() - self.bits.next > INPUT_MARGIN && self.output.len() - self.written > OUTPUT_MARGIN
    }

    /// Decodes the first symbol after a fast loop, and then as many as are needed until a fast loop can go on.
    /// Returns whether the stream is at its end; if it is, `bits` are at the byte after it.
    pub(crate) fn settle(&mut self, tables: &mut Tables) -> Result<bool, Failure> {
        if self.is_in_block {
            self.is_in_block = self.symbol(tables)? == Next::Symbol;
        }
        loop {
            if !self.is_in_block {
                if self.is_last_block {
                    self.bits.give_back()?;
                    return Ok(true);
                }
                self.is_in_block = self.header(tables)?;
            } else if self.has_room() {
                self.bits.give_back()?;
                return Ok(false);
            } else {
                self.is_in_block = self.symbol(tables)? == Next::Symbol;
            }
        }
    }

    /// Begins a block. Returns whether symbols follow; a stored block is copied.
    fn header(&mut self, tables: &mut Tables) -> Result<bool, Failure> {
        self.bits.refill(self.input)?;
        self.is_last_block = self.bits.take(1) == 1;
        match self.bits.take(2) {
            0 => self.stored().map(|()| false),
            1 => tables.fixed().map(|()| true),
            2 => tables.dynamic(self.input, &mut self.bits).map(|()| true),
            _ => Err(Failure::Damaged),
        }
    }

    fn stored(&mut self) -> Result<(), Failure> {
        self.bits.align()?;
        let rest = self.input.get(self.bits.next..).unwrap_or(&[]);
        let Some((&[low, high, not_low, not_high], rest)) = rest.split_first_chunk() else {
            return Err(Failure::Damaged);
        };
        let count = u16::from_le_bytes([low, high]);
        if count != !u16::from_le_bytes([not_low, not_high]) {
            return Err(Failure::Damaged);
        }
        let count = usize::from(count);
        let bytes = rest.get(..count).ok_or(Failure::Damaged)?;
        let output = &mut self.output[self.written..];
        output.get_mut(..count).ok_or(Failure::TooLong)?.copy_from_slice(bytes);
        self.written += count;
        self.bits.next += 4 + count;
        Ok(())
    }

    /// Decodes one symbol.
    fn symbol(&mut self, tables: &Tables) -> Result<Next, Failure> {
        self.bits.refill(self.input)?;
        let (entry, before) = self.entry(&tables.symbols, SYMBOL_BITS);
        if entry & LITERAL != 0 {
            *self.output.get_mut(self.written).ok_or(Failure::TooLong)? = (entry >> 16) as u8;
            self.written += 1;
            return Ok(Next::Symbol);
        }
        if entry & END != 0 {
            return Ok(Next::Block);
        }
        let length = number(entry, before) as usize;
        self.bits.refill(self.input)?;
        let (entry, before) = self.entry(&tables.distances, DISTANCE_BITS);
        let distance = number(entry, before) as usize;
        let from = self.written.checked_sub(distance).ok_or(Failure::Damaged)?;
        let end = self.written + length;
        if end > self.output.len() {
            return Err(Failure::TooLong);
        }
        if distance >= length {
            self.output.copy_within(from..from + length, self.written);
        } else {
            (0..length).for_each(|index| self.output[self.written + index] = self.output[from + index]);
        }
        self.written = end;
        Ok(Next::Symbol)
    }

    /// Takes a code and its extra bits. Returns its entry, and the bits before they were taken.
    fn entry(&mut self, table: &[u32], index_bits: usize) -> (u32, u64) {
        let mut entry = table[self.bits.held as usize & ((1 << index_bits) - 1)];
        if entry & SECOND != 0 {
            self.bits.take(index_bits as u32);
            let place = self.bits.held as usize & ((1 << (entry >> 8 & 31)) - 1);
            entry = table[(entry >> 16) as usize + place];
        }
        let before = self.bits.held;
        self.bits.take(entry & 0xff);
        (entry, before)
    }
}

/// The length or distance of an entry, with its extra bits, which `bits` begin with.
pub(crate) fn number(entry: u32, bits: u64) -> u32 {
    let extra = (bits & ((1 << (entry & 0x3f)) - 1)) >> (entry >> 8 & 63);
    (entry >> 16) + extra as u32
}
