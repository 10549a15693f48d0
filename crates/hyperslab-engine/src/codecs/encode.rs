//! Encodes chunks of versioned files with HDF5's filters, exactly as libhdf5 does: LZF is skipped for a chunk that it
//! would not shorten, deflate is never skipped.
//!
//! This must match: when libhdf5 2.0 overwrites a part of a chunk and the stored length stays the same, it leaves the
//! old filter mask in the index.

use super::{fletcher32, lzf, shuffle, zlib};

/// One step between elements and stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Deflate with zlib's header, at one of zlib's levels.
    Deflate(u32),
    /// Shuffle for elements of this many bytes.
    Shuffle(usize),
    /// A checksum after the data.
    Fletcher32,
    /// LZF.
    Lzf,
}

/// Encodes a chunk. Returns the stored bytes, and a mask of the skipped filters: the lowest bit stands for the first
/// filter. `None` if zlib does not have the level.
pub fn encode(chunk: &[u8], filters: &[Filter]) -> Option<(Vec<u8>, u32)> {
    let (mut bytes, mut mask) = (chunk.to_vec(), 0);
    for (number, filter) in filters.iter().enumerate() {
        bytes = match *filter {
            Filter::Deflate(level) => zlib::encode(level, &bytes)?,
            Filter::Shuffle(width) => shuffle::encode(width.max(1), &bytes),
            Filter::Fletcher32 => fletcher32::encode(&bytes),
            Filter::Lzf => match lzf::encode(&bytes) {
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

#[cfg(test)]
mod tests {
    use super::super::buffer::{Buffer, Size};
    use super::super::{fletcher32, lzf, shuffle};
    use super::{Filter, encode};

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
            let encoded = lzf::encode(&bytes);
            let mut out = Buffer::default();
            let nbytes = lzf::decode(&encoded, Size::Exact(bytes.len()), &mut out);
            assert_eq!(nbytes, Ok(bytes.len()));
            assert_eq!(out.filled(bytes.len()), bytes);
        }
    }

    #[test]
    fn shuffle_is_undone() {
        for (width, count) in [(1, 10), (2, 9), (8, 800), (8, 801), (3, 2)] {
            let bytes = noise(count);
            let mut out = vec![0; bytes.len()];
            shuffle::unshuffle_whole(&shuffle::encode(width, &bytes), width, &mut out);
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
