//! Encodes LZ4 blocks byte for byte as the LZ4 library's fast compressor does (`LZ4_compress_fast` of 1.9 and 1.10), at each
//! acceleration: c-blosc takes a higher one for each lower level, and searches noise in larger steps.

const LEAST_MATCH: usize = 4;
/// The last bytes of a block are literals, and no match begins behind the last twelve.
const LAST_LITERALS: usize = 5;
const NO_MATCH_AFTER: usize = 12;
/// Shorter blocks have no match, and longer ones cannot be encoded.
const LEAST_NBYTES: usize = NO_MATCH_AFTER + 1;
const MOST_NBYTES: usize = 0x7E00_0000;
/// Blocks below this size have offsets of two bytes from their beginning, and a table of twice as many.
const SMALL_NBYTES: usize = (64 << 10) + NO_MATCH_AFTER - 1;
const MOST_DISTANCE: usize = (1 << 16) - 1;
/// After so many steps without a match, as a power of two, the step grows by a byte.
const STEPS_BITS: u32 = 6;
const MOST_IN_TOKEN: usize = 15;
/// Short literals are copied as so many bytes; those that are too many are overwritten.
const SHORT: usize = 16;

/// Where sequences of bytes were last seen, by their hashes.
trait Table {
    fn hash(input: &[u8], at: usize) -> usize;
    /// The place under a hash, which gets this one.
    fn replace(&mut self, hash: usize, at: usize) -> usize;
    /// Whether a place is too far away to name.
    fn is_far(seen: usize, at: usize) -> bool;
}

const SMALL_BITS: u32 = 13;
const LARGE_BITS: u32 = 12;

#[derive(Clone)]
struct Small([u16; 1 << SMALL_BITS]);

impl Table for Small {
    #[inline]
    fn hash(input: &[u8], at: usize) -> usize {
        (four(input, at).wrapping_mul(2_654_435_761) >> (32 - SMALL_BITS)) as usize
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // blocks are short
    fn replace(&mut self, hash: usize, at: usize) -> usize {
        std::mem::replace(&mut self.0[hash & ((1 << SMALL_BITS) - 1)], at as u16).into()
    }

    #[inline]
    fn is_far(_: usize, _: usize) -> bool {
        false
    }
}

#[derive(Clone)]
struct Large([u32; 1 << LARGE_BITS]);

impl Table for Large {
    #[inline]
    #[allow(clippy::cast_possible_truncation)] // of so few bits
    fn hash(input: &[u8], at: usize) -> usize {
        ((eight(input, at) << 24).wrapping_mul(889_523_592_379) >> (64 - LARGE_BITS)) as usize
    }

    #[inline]
    #[allow(clippy::cast_possible_truncation)] // blocks have at most MOST_NBYTES
    fn replace(&mut self, hash: usize, at: usize) -> usize {
        std::mem::replace(&mut self.0[hash & ((1 << LARGE_BITS) - 1)], at as u32) as usize
    }

    #[inline]
    fn is_far(seen: usize, at: usize) -> bool {
        seen + MOST_DISTANCE < at
    }
}

/// What one thread keeps from block to block.
#[derive(Default)]
pub(super) struct Lz4 {
    small: Option<Box<Small>>,
    large: Option<Box<Large>>,
    out: Vec<u8>,
}

impl Lz4 {
    /// About how many bytes it takes.
    pub fn nbytes(&self) -> usize {
        self.out.len()
    }

    /// Encodes a block into at most `most` bytes; `None` if the compressor cannot promise that.
    pub fn encode(&mut self, bytes: &[u8], acceleration: usize, most: usize) -> Option<&[u8]> {
        if bytes.len() > MOST_NBYTES {
            return None;
        }
        let room = most.min(bytes.len() + bytes.len() / 255 + SHORT) + 2 * SHORT;
        if self.out.len() < room {
            self.out.resize(room, 0);
        }
        let (out, acceleration) = (&mut self.out[..], acceleration.clamp(1, 65_537));
        let nbytes = if bytes.len() < SMALL_NBYTES {
            let table = self.small.get_or_insert_with(|| Box::new(Small([0; 1 << SMALL_BITS])));
            table.0.fill(0);
            encode(bytes, table.as_mut(), acceleration, out, most)?
        } else {
            let table = self.large.get_or_insert_with(|| Box::new(Large([0; 1 << LARGE_BITS])));
            table.0.fill(0);
            encode(bytes, table.as_mut(), acceleration, out, most)?
        };
        self.out.get(..nbytes)
    }
}

/// Bytes of any block, whatever it holds.
pub(super) const fn bound(nbytes: usize) -> usize {
    nbytes + nbytes / 255 + 16
}

/// Encodes a block. As in the library, the result is `None` as soon as it might get longer than `most`.
fn encode<T: Table>(
    input: &[u8],
    table: &mut T,
    acceleration: usize,
    out: &mut [u8],
    most: usize,
) -> Option<usize> {
    let (mut anchor, mut op) = (0, 0);
    if input.len() >= LEAST_NBYTES {
        let stop = input.len() - NO_MATCH_AFTER + 1;
        table.replace(T::hash(input, 0), 0);
        let mut at = 1;
        while let Some((mut seen, found)) = search(input, table, at, stop, acceleration) {
            at = found;
            while at > anchor && seen > 0 && input[at - 1] == input[seen - 1] {
                (at, seen) = (at - 1, seen - 1);
            }
            let literals = at - anchor;
            if op + literals + 3 + LAST_LITERALS + literals / 255 > most {
                return None;
            }
            let mut token = op;
            op = put_literals(input, anchor, literals, out, op);
            loop {
                out[op..op + 2].copy_from_slice(&distance(at - seen));
                op += 2;
                let more = same(input, at + LEAST_MATCH, seen + LEAST_MATCH);
                at += more + LEAST_MATCH;
                if op + 1 + LAST_LITERALS + (more + 240) / 255 > most {
                    return None;
                }
                out[token] |= in_token(more);
                op = put_length(more, out, op);
                anchor = at;
                if at >= stop {
                    break;
                }
                table.replace(T::hash(input, at - 2), at - 2);
                seen = table.replace(T::hash(input, at), at);
                if T::is_far(seen, at) || four(input, seen) != four(input, at) {
                    break;
                }
                token = op;
                out[op] = 0;
                op += 1;
            }
            if at >= stop {
                break;
            }
            at += 1;
        }
    }
    let literals = input.len() - anchor;
    if op + literals + 1 + (literals + 240) / 255 > most {
        return None;
    }
    Some(put_literals(input, anchor, literals, out, op))
}

/// The next place from `at` on whose four bytes were seen before, and where; in steps that grow.
#[inline]
fn search<T: Table>(
    input: &[u8],
    table: &mut T,
    at: usize,
    stop: usize,
    acceleration: usize,
) -> Option<(usize, usize)> {
    let (mut next, mut step, mut steps) = (at, 1, acceleration << STEPS_BITS);
    let mut hash = T::hash(input, next);
    loop {
        let at = next;
        next += step;
        step = steps >> STEPS_BITS;
        steps += 1;
        if next > stop {
            return None;
        }
        let seen = table.replace(hash, at);
        hash = T::hash(input, next);
        if !T::is_far(seen, at) && four(input, seen) == four(input, at) {
            return Some((seen, at));
        }
    }
}

/// How many bytes are the same at two places, up to the last literals.
#[inline]
fn same(input: &[u8], at: usize, seen: usize) -> usize {
    let limit = (input.len() - LAST_LITERALS).saturating_sub(at);
    let mut count = 0;
    while count + 8 <= limit {
        let differing = eight(input, at + count) ^ eight(input, seen + count);
        if differing != 0 {
            return count + differing.trailing_zeros() as usize / 8;
        }
        count += 8;
    }
    while count < limit && input[at + count] == input[seen + count] {
        count += 1;
    }
    count
}

/// The token, the count and the bytes of literals. Returns where the next byte goes.
#[inline]
fn put_literals(input: &[u8], from: usize, count: usize, out: &mut [u8], op: usize) -> usize {
    out[op] = in_token(count) << 4;
    let op = put_length(count, out, op + 1);
    if count <= SHORT && from + SHORT <= input.len() && op + SHORT <= out.len() {
        out[op..op + SHORT].copy_from_slice(&input[from..from + SHORT]);
    } else {
        out[op..op + count].copy_from_slice(&input[from..from + count]);
    }
    op + count
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // at most 15
fn in_token(count: usize) -> u8 {
    count.min(MOST_IN_TOKEN) as u8
}

/// What of a count does not fit into the token.
#[inline]
#[allow(clippy::cast_possible_truncation)] // less than 255
fn put_length(count: usize, out: &mut [u8], mut op: usize) -> usize {
    let Some(mut rest) = count.checked_sub(MOST_IN_TOKEN) else { return op };
    while rest >= 255 {
        out[op] = 255;
        (rest, op) = (rest - 255, op + 1);
    }
    out[op] = rest as u8;
    op + 1
}

#[inline]
#[allow(clippy::cast_possible_truncation)] // matches are not further away
fn distance(nbytes: usize) -> [u8; 2] {
    (nbytes as u16).to_le_bytes()
}

#[inline]
fn four(input: &[u8], at: usize) -> u32 {
    input[at..].first_chunk().map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

#[inline]
fn eight(input: &[u8], at: usize) -> u64 {
    input[at..].first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

#[cfg(test)]
mod tests {
    use super::super::lz4::decode_block;
    use super::{Lz4, bound};

    /// Noise with so many bits of each byte, which repeats itself.
    fn noise(nbytes: usize, bits: u32) -> Vec<u8> {
        let mut state = 7_u64;
        let mut made: Vec<u8> = (0..nbytes)
            .map(|_| {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                u8::try_from(state >> 56 >> (8 - bits)).unwrap_or(0)
            })
            .collect();
        if nbytes > 100 {
            made.copy_within(..nbytes / 5, nbytes / 2);
        }
        made
    }

    #[test]
    fn what_it_makes_is_decoded() {
        let mut lz4 = Lz4::default();
        for nbytes in [0, 1, 12, 13, 14, 100, 5000, 65_546, 65_547, 300_000] {
            for bits in [1, 2, 5, 8] {
                for acceleration in [1, 2, 5, 9] {
                    let bytes = noise(nbytes, bits);
                    let made = lz4.encode(&bytes, acceleration, bound(nbytes)).unwrap_or_default();
                    let mut out = vec![0; nbytes];
                    assert_eq!(decode_block("lz4", made, &mut out), Ok(()));
                    assert_eq!(out, bytes);
                }
            }
        }
    }

    #[test]
    fn it_ends_where_there_is_no_room() {
        let (mut lz4, bytes) = (Lz4::default(), noise(5000, 8));
        assert_eq!(lz4.encode(&bytes, 1, 2000), None);
        let nbytes = lz4.encode(&[3; 5000], 1, bound(5000)).map_or(0, <[u8]>::len);
        assert!((20..50).contains(&nbytes));
        assert!(lz4.encode(&[3; 5000], 1, nbytes + 1).is_some());
        assert_eq!(lz4.encode(&[3; 5000], 1, nbytes - 1), None);
    }
}
