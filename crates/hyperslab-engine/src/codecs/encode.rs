//! Encodes chunks, one step after the other.
//!
//! HDF5's own filters work exactly as libhdf5 does them: LZF is skipped for a chunk that it would not shorten, deflate is
//! never skipped. This must match: when libhdf5 2.0 overwrites a part of a chunk and the stored length stays the same, it
//! leaves the old filter mask in the index.

use std::borrow::Cow;

use hyperslab_core::Checksum;

use super::compress::{Blosc, Compressors, Inner};
use super::{bitshuffle, blosc_encode, checksum, lz4, lz4_numcodecs, lzf, shuffle};

/// One step between elements and stored bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Filter {
    /// Deflate with zlib's header, at one of zlib's levels.
    Deflate(u32),
    /// Deflate with gzip's header.
    Gzip(u32),
    /// Shuffle for elements of this many bytes.
    Shuffle(usize),
    /// HDF5's checksum after the data.
    Fletcher32,
    /// CRC-32C after the data.
    Crc32c,
    /// LZF.
    Lzf,
    /// One Zstandard frame, at one of its levels.
    Zstd(i32),
    /// LZ4 in the framing of HDF5's filter, in blocks of this many bytes.
    Lz4Hdf5(usize),
    /// LZ4 in numcodecs' framing.
    Lz4Numcodecs,
    /// One chunk of Blosc 1.
    Blosc(Blosc),
    /// Bits of equal significance together, for elements of this many bytes, then a compressor.
    Bitshuffle(usize, Inner),
}

/// Encodes chunks and keeps what the compressors need from one chunk to the next.
#[derive(Default)]
pub struct Encoder(Compressors);

impl Encoder {
    /// Encodes a chunk. Returns the stored bytes, and a mask of the skipped filters: the lowest bit stands for the first
    /// filter. `None` if a compressor refuses its level or the chunk's size.
    pub fn encode<'c>(&mut self, chunk: &'c [u8], filters: &[Filter]) -> Option<(Cow<'c, [u8]>, u32)> {
        let (mut bytes, mut mask) = (Cow::Borrowed(chunk), 0);
        for (number, filter) in filters.iter().enumerate() {
            match self.step(&bytes, *filter)? {
                Some(encoded) => bytes = Cow::Owned(encoded),
                None => mask |= 1 << number,
            }
        }
        Some((bytes, mask))
    }

    /// One step; `Some(None)` if it is skipped for this chunk, `None` if it cannot be done.
    #[allow(clippy::option_option)] // three cases, and the caller treats each differently
    fn step(&mut self, bytes: &[u8], filter: Filter) -> Option<Option<Vec<u8>>> {
        Some(Some(match filter {
            Filter::Deflate(level) => self.0.deflate(bytes, level, false)?,
            Filter::Gzip(level) => self.0.deflate(bytes, level, true)?,
            Filter::Shuffle(width) => shuffle::encode(width.max(1), bytes),
            Filter::Fletcher32 => checksum::encode(Checksum::Fletcher32, bytes),
            Filter::Crc32c => checksum::encode(Checksum::Crc32c, bytes),
            Filter::Lzf => match lzf::encode(bytes) {
                shorter if shorter.len() < bytes.len() => shorter,
                _ => return Some(None),
            },
            Filter::Zstd(level) => self.0.inner(bytes, Inner::Zstd(level))?,
            Filter::Lz4Hdf5(block_nbytes) => lz4::encode(bytes, block_nbytes)?,
            Filter::Lz4Numcodecs => lz4_numcodecs::encode(bytes)?,
            Filter::Blosc(blosc) => blosc_encode::encode(bytes, blosc, &mut self.0)?,
            Filter::Bitshuffle(width, inner) => bitshuffle::encode(bytes, width, inner, &mut self.0)?,
        }))
    }
}

/// Encodes one chunk; see [`Encoder::encode`].
pub fn encode(chunk: &[u8], filters: &[Filter]) -> Option<(Vec<u8>, u32)> {
    Encoder::default().encode(chunk, filters).map(|(bytes, mask)| (bytes.into_owned(), mask))
}

#[cfg(test)]
mod tests {
    use super::super::buffer::{Buffer, Size};
    use super::super::scratch::{Coded, Tools};
    use super::super::{checksum, lzf, shuffle};
    use super::{Checksum, Filter, encode};

    pub(in super::super) fn noise(count: u64) -> Vec<u8> {
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
            let coded = Coded::of(&encoded, Size::Exact(bytes.len()));
            let nbytes = lzf::decode(&coded, &mut out, &mut Tools::default());
            assert_eq!(nbytes, Ok(bytes.len()));
            assert_eq!(out.filled(bytes.len()), bytes);
        }
    }

    #[test]
    fn shuffle_is_undone() {
        for width in [1, 2, 3, 4, 8, 12, 16] {
            for count in [0, 2, 9, 10, 800, 801, 5000] {
                let bytes = noise(count);
                let mut out = vec![0; bytes.len()];
                shuffle::unshuffle_whole(&shuffle::encode(width, &bytes), width, &mut out);
                assert_eq!(out, bytes);
            }
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
        let (sum, size) = (Checksum::Fletcher32, Size::AtMost(100));
        assert!(checksum::decode(sum, false, &stored, size, &mut Buffer::default()).is_ok());
        assert_eq!(encode(&bytes, &[Filter::Deflate(99)]), None);
    }
}
