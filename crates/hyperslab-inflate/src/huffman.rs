//! Tables that decode Huffman codes: one look-up for short codes, a second one for long codes.
//!
//! An entry holds, from its lowest bit on: how many bits the code and its extra bits take (8 bits), how many of them the
//! code takes (5), flags (3), and a value: the literal, the base of a length or distance, or where a second table begins.

/// The longest code.
pub(crate) const MAX_CODE_BITS: usize = 15;
/// The literal is the value; nothing else is to do.
pub(crate) const LITERAL: u32 = 1 << 31;
/// Not an entry that one step without branches can decode.
pub(crate) const RARE: u32 = 1 << 15;
/// The value says where a second table begins, and bits 8 to 12 how many bits index it.
pub(crate) const SECOND: u32 = 1 << 14;
/// The block ends.
pub(crate) const END: u32 = 1 << 13;

const LENGTH_BASES: [u16; 29] = [
    3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 15, 17, 19, 23, 27, 31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195,
    227, 258,
];
const LENGTH_EXTRA: [u8; 29] =
    [0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0];
const DISTANCE_BASES: [u16; 30] = [
    1, 2, 3, 4, 5, 7, 9, 13, 17, 25, 33, 49, 65, 97, 129, 193, 257, 385, 513, 769, 1025, 1537, 2049, 3073,
    4097, 6145, 8193, 12289, 16385, 24577,
];
const DISTANCE_EXTRA: [u8; 30] =
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7, 8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13];

/// What the 288 symbols of literals and lengths mean. Symbols 286 and 287 are no symbols, but zlib's framing lets codes
/// name them; they count as 285, as in libdeflate.
pub(crate) const SYMBOLS: [u32; 288] = {
    let mut meanings = [0; 288];
    let mut symbol = 0;
    while symbol < 288 {
        meanings[symbol] = if symbol < 256 {
            LITERAL | (symbol as u32) << 16
        } else if symbol == 256 {
            RARE | END
        } else {
            let length = if symbol < 286 { symbol - 257 } else { 28 };
            (LENGTH_BASES[length] as u32) << 16 | LENGTH_EXTRA[length] as u32
        };
        symbol += 1;
    }
    meanings
};

/// What the 32 symbols of distances mean. Symbols 30 and 31 count as 29, as in libdeflate.
pub(crate) const DISTANCES: [u32; 32] = {
    let mut meanings = [0; 32];
    let mut symbol = 0;
    while symbol < 32 {
        let distance = if symbol < 30 { symbol } else { 29 };
        meanings[symbol] = (DISTANCE_BASES[distance] as u32) << 16 | DISTANCE_EXTRA[distance] as u32;
        symbol += 1;
    }
    meanings
};

/// What the 19 symbols of the code for lengths of codes mean.
pub(crate) const CODE_LENGTHS: [u32; 19] = {
    let mut meanings = [0; 19];
    let mut symbol = 0;
    while symbol < 19 {
        meanings[symbol] = (symbol as u32) << 16;
        symbol += 1;
    }
    meanings
};

/// Symbols in the order of their codes.
struct Sorted {
    symbols: [u16; 288],
    /// How many symbols have a code of each length.
    counts: [usize; MAX_CODE_BITS + 1],
    longest: usize,
}

impl Sorted {
    fn of(lengths: &[u8]) -> Self {
        let mut counts = [0; MAX_CODE_BITS + 1];
        for &length in lengths {
            counts[usize::from(length) & MAX_CODE_BITS] += 1;
        }
        let longest = (1..=MAX_CODE_BITS).rfind(|&length| counts[length] > 0).unwrap_or(1);
        let mut starts = [0; MAX_CODE_BITS + 2];
        for length in 1..=MAX_CODE_BITS {
            starts[length + 1] = starts[length] + counts[length];
        }
        let mut symbols = [0; 288];
        for (symbol, &length) in (0..).zip(lengths) {
            let length = usize::from(length) & MAX_CODE_BITS;
            if length > 0 {
                if let Some(place) = symbols.get_mut(starts[length]) {
                    *place = symbol;
                }
                starts[length] += 1;
            }
        }
        Self { symbols, counts, longest }
    }

    /// How much of the space of codes with the longest length is used.
    fn space(&self) -> usize {
        (1..=self.longest).fold(0, |space, length| space * 2 + self.counts[length])
    }
}

/// The next code of this length, its bits reversed, as streams have them.
fn next_code(code: usize, length: usize) -> Option<usize> {
    let zeros = code ^ ((1 << length) - 1);
    let bit = 1 << zeros.checked_ilog2()?;
    Some(code & (bit - 1) | bit)
}

/// Fills `table`, of which the first `1 << bits` entries are looked up first. Returns `None` if the lengths make no
/// code. As in libdeflate and zlib, a code may be incomplete if it has one symbol of one bit, or none.
pub(crate) fn build(table: &mut [u32], bits: usize, lengths: &[u8], meanings: &[u32]) -> Option<()> {
    let sorted = Sorted::of(lengths);
    let space = sorted.space();
    let whole = 1 << sorted.longest;
    if space < whole {
        let symbol = match (space, sorted.counts[1]) {
            (0, _) => 0,
            (_, 1) if space * 2 == whole => usize::from(sorted.symbols[0]),
            _ => return None,
        };
        let entry = meanings.get(symbol)? + 0x101;
        table.get_mut(..1 << bits)?.fill(entry);
        return Some(());
    }
    if space > whole {
        return None;
    }
    fill(table, bits, &sorted, meanings)
}

fn fill(table: &mut [u32], bits: usize, sorted: &Sorted, meanings: &[u32]) -> Option<()> {
    let mut counts = sorted.counts;
    let mut symbols = sorted.symbols.iter();
    let mut length = (1..=MAX_CODE_BITS).find(|&length| counts[length] > 0)?;
    let mut code = 0;
    let mut end = 1 << length;
    while length <= bits {
        for _ in 0..counts[length] {
            let entry = *meanings.get(usize::from(*symbols.next()?))?;
            *table.get_mut(code)? = entry + u32::try_from(length).ok()? * 0x101;
            let Some(next) = next_code(code, length) else {
                while end < 1 << bits {
                    table.get_mut(..2 * end)?.copy_within(..end, end);
                    end *= 2;
                }
                return Some(());
            };
            code = next;
        }
        length += 1;
        if length <= bits {
            table.get_mut(..2 * end)?.copy_within(..end, end);
            end *= 2;
        }
    }
    counts[..=bits].fill(0);
    fill_second(table, bits, (code, &mut counts), symbols, meanings)
}

/// The codes that are longer than `bits`.
fn fill_second(
    table: &mut [u32],
    bits: usize,
    (mut code, counts): (usize, &mut [usize; MAX_CODE_BITS + 1]),
    mut symbols: std::slice::Iter<'_, u16>,
    meanings: &[u32],
) -> Option<()> {
    let mut end = 1 << bits;
    let (mut start, mut prefix) = (0, usize::MAX);
    let mut length = bits + 1;
    loop {
        while *counts.get(length)? == 0 {
            length += 1;
        }
        if code & ((1 << bits) - 1) != prefix {
            prefix = code & ((1 << bits) - 1);
            start = end;
            let mut second_bits = length - bits;
            let mut space = counts[length];
            while space < 1 << second_bits {
                second_bits += 1;
                space = space * 2 + counts.get(bits + second_bits)?;
            }
            end = start + (1 << second_bits);
            *table.get_mut(prefix)? =
                u32::try_from(start << 16 | second_bits << 8 | bits).ok()? | RARE | SECOND;
        }
        let rest = u32::try_from(length - bits).ok()?;
        let entry = meanings.get(usize::from(*symbols.next()?))? + rest * 0x101;
        let places = table.get_mut(start + (code >> bits)..end)?;
        places.iter_mut().step_by(1 << rest).for_each(|place| *place = entry);
        counts[length] -= 1;
        match next_code(code, length) {
            Some(next) => code = next,
            None => return Some(()),
        }
    }
}
