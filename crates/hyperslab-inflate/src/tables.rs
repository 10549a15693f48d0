//! The tables of one block, and what its header says.

use crate::Failure;
use crate::bits::Bits;
use crate::huffman::{CODE_LENGTHS, DISTANCES, LITERAL, RARE, SECOND, SYMBOLS, build};

/// How many bits the first look-up of a literal or length takes.
pub(crate) const SYMBOL_BITS: usize = 11;
/// How many bits the first look-up of a distance takes.
pub(crate) const DISTANCE_BITS: usize = 8;
/// How many bytes a step without branches copies.
pub(crate) const STEP_NBYTES: u32 = 32;
/// How many bytes such a step copies where they may overlap.
pub(crate) const NEAR_STEP_NBYTES: u32 = 16;
/// The most entries that 288 codes of up to 15 bits can take with [`SYMBOL_BITS`], as zlib's `enough` counts them.
const SYMBOL_ENTRIES: usize = 2342;
/// The same for 32 codes with [`DISTANCE_BITS`].
const DISTANCE_ENTRIES: usize = 402;
/// The order in which a header has the lengths of the codes for lengths.
const ORDER: [u8; 19] = [16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15];

/// An entry of the table of steps that is no step.
pub(crate) const NO_STEP: u64 = 1 << 31;

/// Distances, for steps: apart, because a step reads three numbers sooner than it takes one to pieces. The first of each
/// is for steps without a match, the others are for the bits that index them.
pub(crate) struct Backs {
    /// How many bits a distance takes, with [`NEAR`] or [`SECOND`].
    pub(crate) counts: [u32; 1 + (1 << DISTANCE_BITS)],
    /// Which of the bits are extra bits.
    pub(crate) masks: [u32; 1 + (1 << DISTANCE_BITS)],
    pub(crate) bases: [u32; 1 + (1 << DISTANCE_BITS)],
}

/// The distance may be less than 32.
pub(crate) const NEAR: u32 = 1 << 12;

impl Backs {
    /// What a step without a match copies is overwritten by the next one. It comes from so far back because a processor
    /// waits for what it has just written in other pieces.
    const NONE: Self = Self {
        counts: [0; 1 + (1 << DISTANCE_BITS)],
        masks: [0; 1 + (1 << DISTANCE_BITS)],
        bases: [512; 1 + (1 << DISTANCE_BITS)],
    };

    fn fill(&mut self, distances: &[u32]) {
        for (index, &entry) in (1..=1 << DISTANCE_BITS).zip(distances) {
            let (all, code) = (entry & 0xff, entry >> 8 & 31);
            let base = entry >> 16;
            let near = if base < STEP_NBYTES { NEAR } else { 0 };
            self.counts[index] = if entry & SECOND != 0 { SECOND } else { all | near };
            self.masks[index] = ((1 << all) - 1) & !((1 << code) - 1);
            self.bases[index] = base;
        }
    }
}

/// How a block is decoded fastest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Nearly only literals.
    Literals,
    /// Few matches, or long ones: branches that are foretold well.
    Plain,
    /// Mostly matches.
    Matches,
    /// Literals and short matches mixed: steps without branches.
    Mixed,
    /// The same, with matches from less than 32 bytes back.
    Near,
}

impl Kind {
    /// How many streams are decoded fastest side by side.
    pub(crate) fn side_by_side(self) -> usize {
        match self {
            Self::Literals | Self::Mixed => 3,
            Self::Plain | Self::Matches | Self::Near => 2,
        }
    }
}

/// The tables of one block.
pub(crate) struct Tables {
    /// One step of up to two literals and perhaps a length, from the lowest bit on: how many bits it takes (8 bits), a
    /// mask of the bits that index the distance (8; 0 if none follows), the length or 0 (8), [`NO_STEP`] (8), three
    /// bytes of literals (24), how many literals there are (8).
    pub(crate) steps: [u64; 1 << SYMBOL_BITS],
    pub(crate) symbols: [u32; SYMBOL_ENTRIES],
    pub(crate) distances: [u32; DISTANCE_ENTRIES],
    pub(crate) backs: Backs,
    lengths: [u8; 288 + 32 + 138],
    /// Whether `steps` belong to `symbols`.
    has_steps: bool,
    is_fixed: bool,
    kind: Kind,
}

impl Tables {
    pub(crate) const fn new() -> Self {
        Self {
            steps: [NO_STEP; 1 << SYMBOL_BITS],
            symbols: [0; SYMBOL_ENTRIES],
            distances: [0; DISTANCE_ENTRIES],
            backs: Backs::NONE,
            lengths: [0; 288 + 32 + 138],
            has_steps: false,
            is_fixed: false,
            kind: Kind::Plain,
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        self.kind
    }

    /// Makes the tables of a block with codes that the format fixes.
    pub(crate) fn fixed(&mut self) -> Result<(), Failure> {
        if self.is_fixed {
            return Ok(());
        }
        self.lengths[..144].fill(8);
        self.lengths[144..256].fill(9);
        self.lengths[256..280].fill(7);
        self.lengths[280..288].fill(8);
        self.lengths[288..320].fill(5);
        self.build(288, 32)?;
        self.is_fixed = true;
        Ok(())
    }

    /// Reads a block's codes and makes its tables.
    pub(crate) fn dynamic(&mut self, input: &[u8], bits: &mut Bits) -> Result<(), Failure> {
        self.is_fixed = false;
        bits.refill(input)?;
        let symbol_count = 257 + bits.take(5) as usize;
        let distance_count = 1 + bits.take(5) as usize;
        let length_count = 4 + bits.take(4) as usize;
        let mut lengths = [0; 19];
        for &place in ORDER.iter().take(length_count) {
            bits.refill(input)?;
            lengths[usize::from(place)] = bits.take(3) as u8;
        }
        let mut table = [0; 128];
        build(&mut table, 7, &lengths, &CODE_LENGTHS).ok_or(Failure::Damaged)?;
        self.read_lengths(input, bits, &table, symbol_count + distance_count)?;
        self.build(symbol_count, distance_count)
    }

    fn read_lengths(
        &mut self,
        input: &[u8],
        bits: &mut Bits,
        table: &[u32; 128],
        count: usize,
    ) -> Result<(), Failure> {
        let mut filled = 0;
        while filled < count {
            bits.refill(input)?;
            let entry = table[(bits.held & 127) as usize];
            bits.take(entry & 0xff);
            let (value, repeats) = match entry >> 16 {
                16 => {
                    let last = filled.checked_sub(1).ok_or(Failure::Damaged)?;
                    (self.lengths[last], 3 + bits.take(2))
                }
                17 => (0, 3 + bits.take(3)),
                18 => (0, 11 + bits.take(7)),
                length => (length as u8, 1),
            };
            let end = filled + repeats as usize;
            self.lengths.get_mut(filled..end).ok_or(Failure::Damaged)?.fill(value);
            filled = end;
        }
        if filled == count { Ok(()) } else { Err(Failure::Damaged) }
    }

    fn build(&mut self, symbol_count: usize, distance_count: usize) -> Result<(), Failure> {
        let (symbols, rest) = self.lengths.split_at(symbol_count);
        let distances = &rest[..distance_count];
        build(&mut self.distances, DISTANCE_BITS, distances, &DISTANCES).ok_or(Failure::Damaged)?;
        build(&mut self.symbols, SYMBOL_BITS, symbols, &SYMBOLS).ok_or(Failure::Damaged)?;
        self.has_steps = false;
        self.kind = kind(symbols, distances);
        Ok(())
    }

    /// Makes the table of steps, if steps are how to decode the block, and unless it is there.
    #[inline(always)]
    pub(crate) fn make_steps(&mut self) {
        let longest = match self.kind {
            Kind::Mixed => STEP_NBYTES,
            Kind::Near => NEAR_STEP_NBYTES,
            Kind::Literals | Kind::Plain | Kind::Matches => return,
        };
        if self.has_steps {
            return;
        }
        self.has_steps = true;
        self.backs.fill(&self.distances);
        for (index, step) in (0..).zip(&mut self.steps) {
            *step = step_at(&self.symbols, index, longest);
        }
    }
}

/// Chooses by the lengths of the codes: a code of `n` bits is expected once in `2^n` symbols.
fn kind(symbols: &[u8], distances: &[u8]) -> Kind {
    let share = |lengths: &[u8]| -> u32 {
        lengths.iter().filter(|&&length| length > 0).map(|&length| 32768 >> length).sum()
    };
    let matches = share(symbols.get(257..).unwrap_or(&[]));
    let long = share(symbols.get(273..).unwrap_or(&[])); // lengths from 35 on
    let near = share(distances.get(..9).unwrap_or(distances)); // distances up to 24
    let long = (long * 32768).checked_div(matches).unwrap_or(0);
    let is_long = long > 4915 || near > 6554 || (matches < 8192 && long + near > 4915);
    match matches {
        ..1966 => Kind::Literals,
        1966..3277 => Kind::Plain,
        30474.. => Kind::Matches,
        16384..30474 if is_long => Kind::Matches,
        _ if is_long => Kind::Plain,
        _ if near > 1638 => Kind::Near,
        _ => Kind::Mixed,
    }
}

/// The step that begins with these bits.
#[inline(always)]
fn step_at(symbols: &[u32; SYMBOL_ENTRIES], index: u32, longest: u32) -> u64 {
    let mut step = NO_STEP;
    let (mut taken, mut literals) = (0, 0);
    for count in 0..2 {
        let entry = symbols[(index >> taken) as usize & ((1 << SYMBOL_BITS) - 1)];
        let (code_bits, all_bits) = (entry >> 8 & 31, entry & 0xff);
        let end = taken + all_bits;
        if entry & RARE != 0 || end as usize > SYMBOL_BITS {
            break;
        }
        if entry & LITERAL == 0 {
            let extra = index >> (taken + code_bits) & ((1 << (all_bits - code_bits)) - 1);
            let length = (entry >> 16) + extra;
            if length <= longest {
                let head = u64::from(end | 0xff << 8 | length << 16);
                step = head | u64::from(literals) << 32 | count << 56;
            }
            break;
        }
        literals |= (entry >> 16 & 0xff) << (8 * count);
        taken = end;
        step = u64::from(taken) | u64::from(literals) << 32 | (count + 1) << 56;
    }
    step
}
