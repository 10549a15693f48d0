//! Encodes chunks, one step after the other.
//!
//! HDF5's own filters work exactly as libhdf5 does them: LZF is skipped for a chunk that it would not shorten, deflate is
//! never skipped. This must match: when libhdf5 2.0 overwrites a part of a chunk and the stored length stays the same, it
//! leaves the old filter mask in the index.

use std::borrow::Cow;
use std::sync::Arc;

use hyperslab_core::{Checksum, KnownCodec};

use super::compress::{Blosc, Compressors, Inner, Made};
use super::{bitshuffle, blosc_encode, checksum, lz4, lz4_numcodecs, lzf, shuffle};

/// `ZSTD_CLEVEL_DEFAULT`.
const USUAL_ZSTD_LEVEL: i64 = 3;

/// The level that makes chunks no more than 2 % larger than zlib does at each of its levels, and sooner.
const LEVELS_OF_ZLIB: [i64; 10] = [0, 4, 4, 4, 4, 5, 7, 8, 9, 9];

/// The same for the levels of Zlib in Blosc, whose streams are shorter.
const LEVELS_OF_ZLIB_IN_BLOSC: [u32; 10] = [0, 4, 4, 4, 4, 6, 7, 8, 9, 10];

/// The level of Zstandard that each level of Blosc stands for.
const ZSTD_LEVELS_OF_BLOSC: [i32; 10] = [1, 1, 3, 5, 7, 9, 11, 13, 15, 22];

type Encode = dyn Fn(&[u8], &mut Compressors) -> Made + Send + Sync;

/// One step between elements and stored bytes.
#[derive(Clone)]
pub struct Filter {
    hdf5: Option<u32>,
    encode: Arc<Encode>,
}

impl Filter {
    /// The step of this name with these numbers: levels, widths in bytes, and what Blosc and bitshuffle compress with.
    /// `None` if there is none. Python's table of codecs says which it takes.
    pub fn of(step: &str, numbers: &[i64]) -> Option<Self> {
        let codec = match step {
            "lz4_hdf5" => Some("lz4"),
            "lz4" => None,
            other => Some(other),
        };
        let known = codec.and_then(|codec| KnownCodec::all().find(|one| one.name == codec && one.hdf5 != 0));
        Some(Self { hdf5: known.map(|known| known.hdf5), encode: encoder(step, numbers)? })
    }

    /// The step that does what HDF5's filter of this number does with these parameters; `None` if there is none, or if it
    /// would not make what HDF5's makes, as far as its size and what decodes it are concerned.
    pub fn of_hdf5(number: u32, values: &[u32]) -> Option<Self> {
        let step = KnownCodec::of_hdf5(number)?.name;
        let given: Vec<i64> = values.iter().map(|&value| value.into()).collect();
        match (step, &given[..]) {
            ("deflate", &[level]) => Self::of(step, &[*LEVELS_OF_ZLIB.get(usize::try_from(level).ok()?)?]),
            ("shuffle", &[width]) => Self::of(step, &[width]),
            ("fletcher32", []) | ("lzf", _) => Self::of(step, &[]),
            ("bitshuffle", &[_, _, width, 0, 2]) => Self::of(step, &[width, 1, 0]),
            ("bitshuffle", &[_, _, width, 0, 3, level @ 1..=22]) => Self::of(step, &[width, 5, level]),
            ("zstd", &[level @ 1..=22]) => Self::of(step, &[level]),
            ("zstd", []) => Self::of(step, &[USUAL_ZSTD_LEVEL]),
            ("blosc", &[_, _, width, _, ref rest @ ..]) => Self::of_blosc(width, rest),
            ("lz4", []) => Self::of("lz4_hdf5", &[0]),
            ("lz4", &[block]) => Self::of("lz4_hdf5", &[block]),
            _ => None,
        }
    }

    /// HDF5's filter of Blosc, given what it leaves out.
    fn of_blosc(width: i64, values: &[i64]) -> Option<Self> {
        let value = |place: usize, usual: i64| values.get(place).copied().unwrap_or(usual);
        let (level, shuffle, compressor) = (value(0, 5), value(1, 1), value(2, 0));
        let mut blosc =
            blosc(compressor, level, shuffle, width).filter(|_| values.len() <= 3 && shuffle <= 2)?;
        if let Inner::Deflate(_) = blosc.inner {
            blosc.inner = Inner::Deflate(*LEVELS_OF_ZLIB_IN_BLOSC.get(usize::from(blosc.level))?);
        }
        blosc.is_skipped = true;
        let encode: Arc<Encode> = Arc::new(move |bytes, by| blosc_encode::encode(bytes, blosc, by));
        Some(Self { hdf5: KnownCodec::all().find(|one| one.name == "blosc").map(|one| one.hdf5), encode })
    }

    /// The number of the filter in HDF5, if it is one.
    pub fn hdf5(&self) -> Option<u32> {
        self.hdf5
    }
}

fn encoder(step: &str, numbers: &[i64]) -> Option<Arc<Encode>> {
    let width = |value: i64| usize::try_from(value).ok();
    Some(match (step, numbers) {
        ("deflate" | "gzip", &[level]) => {
            let (level, is_gzip) = (u32::try_from(level).ok()?, step == "gzip");
            Arc::new(move |bytes, by| by.deflate(bytes, level, is_gzip).map(Some))
        }
        ("shuffle", &[element]) => {
            let element = width(element)?.max(1);
            Arc::new(move |bytes, _| Some(Some(shuffle::encode(element, bytes))))
        }
        ("fletcher32", []) => Arc::new(|bytes, _| Some(Some(checksum::encode(Checksum::Fletcher32, bytes)))),
        ("crc32c", []) => Arc::new(|bytes, _| Some(Some(checksum::encode(Checksum::Crc32c, bytes)))),
        ("lzf", []) => {
            Arc::new(|bytes, _| Some(Some(lzf::encode(bytes)).filter(|made| made.len() < bytes.len())))
        }
        ("zstd", &[level]) => {
            let inner = Inner::Zstd(i32::try_from(level).ok()?);
            Arc::new(move |bytes, by| by.inner(bytes, inner).map(Some))
        }
        ("lz4_hdf5", &[block]) => {
            let block_nbytes = width(block)?;
            Arc::new(move |bytes, by| lz4::encode(bytes, block_nbytes, &mut by.lz4).map(Some))
        }
        ("lz4", []) => Arc::new(|bytes, by| lz4_numcodecs::encode(bytes, &mut by.lz4).map(Some)),
        ("blosc", &[compressor, level, shuffle, element]) => {
            let blosc = blosc(compressor, level, shuffle, element)?;
            Arc::new(move |bytes, by| blosc_encode::encode(bytes, blosc, by))
        }
        ("bitshuffle", &[element, compressor, level]) => {
            let (element, inner) = (width(element)?, inner(compressor, level)?);
            Arc::new(move |bytes, by| bitshuffle::encode(bytes, element, inner, by).map(Some))
        }
        _ => return None,
    })
}

/// What Blosc does, by its numbers. Zlib's levels are libdeflate's.
fn blosc(compressor: i64, level: i64, shuffle: i64, element: i64) -> Option<Blosc> {
    let own_level = u8::try_from(level).ok().filter(|level| *level <= 9)?;
    let inner = match compressor {
        0 => Inner::BloscLz { level: own_level.into(), is_split: false },
        5 => Inner::Zstd(*ZSTD_LEVELS_OF_BLOSC.get(usize::from(own_level))?),
        other => inner(other, level)?,
    };
    let (shuffle, element_nbytes) = (u8::try_from(shuffle).ok()?, usize::try_from(element).ok()?);
    Some(Blosc { inner, level: own_level, shuffle, element_nbytes, is_skipped: false })
}

/// What compresses blocks, by Blosc's numbers; -1 for nothing.
fn inner(compressor: i64, level: i64) -> Option<Inner> {
    Some(match compressor {
        -1 => Inner::Plain,
        1 => Inner::Lz4,
        4 => Inner::Deflate(u32::try_from(level).ok()?),
        5 => Inner::Zstd(i32::try_from(level).ok()?),
        _ => return None,
    })
}

/// Encodes chunks and keeps what the compressors need from one chunk to the next.
#[derive(Default)]
pub struct Encoder(Compressors);

impl Encoder {
    /// About how many bytes it keeps.
    pub fn nbytes(&self) -> usize {
        self.0.nbytes()
    }

    /// Encodes a chunk. Returns the stored bytes, and a mask of the skipped filters: the lowest bit stands for the first
    /// filter. `None` if a compressor refuses its level or the chunk's size.
    pub fn encode<'c>(&mut self, chunk: &'c [u8], filters: &[Filter]) -> Option<(Cow<'c, [u8]>, u32)> {
        let (mut bytes, mut mask) = (Cow::Borrowed(chunk), 0);
        for (number, filter) in filters.iter().enumerate() {
            match (filter.encode)(&bytes, &mut self.0)? {
                Some(encoded) => bytes = Cow::Owned(encoded),
                None => mask |= 1 << number,
            }
        }
        Some((bytes, mask))
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
    use super::super::{blosclz, blosclz_encode, checksum, lzf, shuffle};
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
    fn what_blosclz_makes_is_decoded() {
        let words: Vec<u8> = (0..3000_u32).flat_map(|i| (i / 9).to_le_bytes()).collect();
        let far = [noise(900), vec![1; 70_000], noise(900), vec![1; 9000], noise(900)].concat();
        for bytes in [vec![5; 10_000], vec![0; 66], words, far] {
            for (level, is_split) in [(1, true), (5, false), (9, true)] {
                let Some(encoded) = blosclz_encode::encode(&bytes, level, is_split) else { continue };
                let mut out = vec![0; bytes.len()];
                assert_eq!(blosclz::decode_into(&encoded, &mut out), Ok(()));
                assert!(out == bytes && encoded.len() < bytes.len());
            }
        }
        assert!(blosclz_encode::encode(&vec![5; 10_000], 1, true).is_some());
        for short in [0, 1, 15, 65] {
            assert_eq!(blosclz_encode::encode(&vec![0; short], 9, true), None);
        }
        assert_eq!(blosclz_encode::encode(&noise(5000), 9, true), None);
    }

    #[test]
    fn blosc_is_skipped_where_hdf5_skips_it() {
        for (values, chunk, is_skipped) in [
            (vec![2, 2, 4, 0, 5, 1, 1], vec![7; 4000], false),
            (vec![2, 2, 4, 0], vec![7; 4000], false),
            (vec![2, 2, 4, 0, 0, 1, 1], vec![7; 4000], true),
            (vec![2, 2, 4, 0, 5, 1, 5], noise(4000), true),
            (vec![2, 2, 4, 0, 5, 1, 0], vec![7; 100], true),
        ] {
            let filters: Vec<_> = Filter::of_hdf5(32001, &values).into_iter().collect();
            assert_eq!(filters.len(), 1);
            let (stored, mask) = encode(&chunk, &filters).unwrap_or_default();
            assert_eq!((stored == chunk, mask == 1), (is_skipped, is_skipped), "{values:?}");
        }
        // LZ4HC, Snappy, a level and a shuffle that Blosc does not have, and too little said.
        for values in [
            &[2, 2, 4, 0, 5, 1, 2][..],
            &[2, 2, 4, 0, 5, 1, 3],
            &[2, 2, 4, 0, 10],
            &[2, 2, 4, 0, 5, 3],
            &[2, 2],
        ] {
            assert!(Filter::of_hdf5(32001, values).is_none(), "{values:?}");
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
        let of = |steps: &[(&str, &[i64])]| -> Vec<Filter> {
            steps.iter().filter_map(|(step, numbers)| Filter::of(step, numbers)).collect()
        };
        let bytes = noise(4000);
        let (stored, mask) = encode(&bytes, &of(&[("shuffle", &[1]), ("deflate", &[4])])).unwrap_or_default();
        assert!(stored.len() > 4000 && mask == 0);
        assert_eq!(encode(&bytes, &of(&[("shuffle", &[1]), ("lzf", &[])])), Some((bytes.clone(), 2)));
        let filters = of(&[("shuffle", &[4]), ("deflate", &[4]), ("fletcher32", &[])]);
        let (stored, _) = encode(&[3; 1000], &filters).unwrap_or_default();
        assert!((5..100).contains(&stored.len()));
        let (sum, size) = (Checksum::Fletcher32, Size::AtMost(100));
        assert!(checksum::decode(sum, false, &stored, size, &mut Buffer::default()).is_ok());
        assert_eq!(encode(&bytes, &of(&[("deflate", &[99])])), None);
        let numbers =
            of(&[("shuffle", &[4]), ("zstd", &[3]), ("lz4_hdf5", &[0]), ("lz4", &[]), ("gzip", &[1])]);
        let numbers: Vec<_> = numbers.iter().map(Filter::hdf5).collect();
        assert_eq!(numbers, [Some(2), Some(32015), Some(32004), None, None]);
        assert!(Filter::of("deflate", &[-1]).is_none() && Filter::of("zstd", &[]).is_none());
    }
}
