//! Encoding chunks with HDF5's filters, for versioned files, as libhdf5 does it: LZF is left out for a chunk that it would
//! not shorten, deflate never is.
//!
//! That must be so: where libhdf5 2.0 overwrites a part of a chunk, and its stored length stays the same, it leaves the
//! filter mask in the index as it was.

use hyperslab_core::fletcher32;
use libdeflater::{CompressionLvl, Compressor};

/// One step between elements and stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Deflate, with zlib's header, at a level of zlib's.
    Deflate(u32),
    /// Shuffle of elements of so many bytes.
    Shuffle(usize),
    /// A checksum behind the data.
    Fletcher32,
    /// LZF.
    Lzf,
}

/// Encode a chunk: the stored bytes, and a bit for each filter that was left out, the first filter's the least; `None` if
/// a level is none of zlib's.
pub fn encode(chunk: &[u8], filters: &[Filter]) -> Option<(Vec<u8>, u32)> {
    let (mut bytes, mut mask) = (chunk.to_vec(), 0);
    for (number, filter) in filters.iter().enumerate() {
        bytes = match *filter {
            Filter::Deflate(level) => deflated(level, &bytes)?,
            Filter::Shuffle(width) => shuffled(width.max(1), &bytes),
            Filter::Fletcher32 => [&bytes[..], &fletcher32(&bytes).to_le_bytes()].concat(),
            Filter::Lzf => match lzf(&bytes) {
                shorter if shorter.len() < bytes.len() => shorter,
                _ => {
                    mask |= 1 << number;
                    bytes
                }
            },
        };
    }
    Some((bytes, mask))
}

fn deflated(level: u32, bytes: &[u8]) -> Option<Vec<u8>> {
    let mut compressor = Compressor::new(CompressionLvl::new(i32::try_from(level).ok()?).ok()?);
    let mut out = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let nbytes = compressor.zlib_compress(bytes, &mut out).ok()?;
    out.truncate(nbytes);
    Some(out)
}

/// The first bytes of all elements, then the second ones, and so on; last what makes no whole element.
fn shuffled(width: usize, bytes: &[u8]) -> Vec<u8> {
    let count = bytes.len() / width;
    if count <= 1 || width == 1 {
        return bytes.to_vec();
    }
    let mut out = vec![0; bytes.len()];
    for (index, plane) in out.chunks_exact_mut(count).take(width).enumerate() {
        for (byte, element) in plane.iter_mut().zip(bytes.chunks_exact(width)) {
            *byte = element[index];
        }
    }
    out[count * width..].copy_from_slice(&bytes[count * width..]);
    out
}

/// How far back LZF can copy from, and how much at once.
const MOST_DISTANCE: usize = 1 << 13;
const MOST_LENGTH: usize = 264;
const MOST_LITERALS: usize = 32;
const TABLE_BITS: u32 = 14;

/// LZF: runs of literals, and copies of what stood before. What is encoded piece by piece is decoded as one.
pub fn lzf(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    let mut last_seen = vec![usize::MAX; 1 << TABLE_BITS];
    let (mut at, mut literals) = (0, 0);
    while let Some(&[a, b, c]) = bytes.get(at..at + 3).and_then(<[u8]>::first_chunk::<3>) {
        let three = u32::from_le_bytes([a, b, c, 0]);
        let seen = &mut last_seen[(three.wrapping_mul(0x9e37_79b1) >> (32 - TABLE_BITS)) as usize];
        let before = std::mem::replace(seen, at);
        let is_near = before < at && at - before <= MOST_DISTANCE;
        if !is_near || bytes[before..before + 3] != [a, b, c] {
            at += 1;
            continue;
        }
        let most = MOST_LENGTH.min(bytes.len() - at);
        let same = bytes[before..].iter().zip(&bytes[at..at + most]).take_while(|(one, other)| one == other);
        let length = same.count();
        push_literals(&mut out, &bytes[literals..at]);
        push_copy(&mut out, at - before, length);
        at += length;
        literals = at;
    }
    push_literals(&mut out, &bytes[literals..]);
    out
}

#[allow(clippy::cast_possible_truncation)] // lengths and distances are bounded by the constants above
fn push_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(MOST_LITERALS) {
        out.push((run.len() - 1) as u8);
        out.extend(run);
    }
}

#[allow(clippy::cast_possible_truncation)]
fn push_copy(out: &mut Vec<u8>, distance: usize, length: usize) {
    let (distance, length) = (distance - 1, length - 2);
    if length < 7 {
        out.push((length << 5 | distance >> 8) as u8);
    } else {
        out.push((7 << 5 | distance >> 8) as u8);
        out.push((length - 7) as u8);
    }
    out.push(distance as u8);
}

#[cfg(test)]
mod tests {
    use super::super::{Buffer, Size, fletcher32, lzf as decoder, unshuffle_whole};
    use super::{Filter, encode, lzf, shuffled};

    fn noise(count: u64) -> Vec<u8> {
        let mixed =
            |i: u64| (i.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (i << 7)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (0..count).map(|i| mixed(i).to_be_bytes()[0]).collect()
    }

    #[test]
    fn lzf_is_decoded() {
        let words: Vec<u8> = (0..3000_u32).flat_map(|i| (i / 9).to_le_bytes()).collect();
        let mut mixed = noise(9000);
        mixed.extend_from_within(500..4000);
        mixed.extend(vec![7; 1000]);
        let far = [noise(40), vec![1; 8192], noise(40), vec![1; 8191], noise(40)].concat();
        for bytes in [vec![5; 10_000], vec![0; 5], vec![], words, mixed, far, noise(5000)] {
            let encoded = lzf(&bytes);
            let mut out = Buffer::default();
            let nbytes = decoder::decode(&encoded, Size::Exact(bytes.len()), &mut out);
            assert_eq!(nbytes, Ok(bytes.len()));
            assert_eq!(out.filled(bytes.len()), bytes);
        }
    }

    #[test]
    fn shuffle_is_undone() {
        for (width, count) in [(1, 10), (2, 9), (8, 800), (8, 801), (3, 2)] {
            let bytes = noise(count);
            let mut out = vec![0; bytes.len()];
            unshuffle_whole(&shuffled(width, &bytes), width, &mut out);
            assert_eq!(out, bytes);
        }
    }

    #[test]
    fn only_lzf_is_left_out() {
        let bytes = noise(4000);
        let (stored, mask) = encode(&bytes, &[Filter::Shuffle(1), Filter::Deflate(4)]).unwrap_or_default();
        assert!(stored.len() > 4000 && mask == 0);
        assert_eq!(encode(&bytes, &[Filter::Shuffle(1), Filter::Lzf]), Some((bytes.clone(), 2)));
        let filters = [Filter::Shuffle(4), Filter::Deflate(4), Filter::Fletcher32];
        let (stored, _) = encode(&[3; 1000], &filters).unwrap_or_default();
        assert!((5..100).contains(&stored.len()));
        assert!(fletcher32::verify(&stored).is_ok());
        assert_eq!(encode(&bytes, &[Filter::Deflate(99)]), None);
    }
}
