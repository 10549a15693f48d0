//! The input of a codec target: a line with the codec chain, the filter mask and the decoded size, then the encoded
//! bytes. The chain has the format of `crates/hyperslab-engine/tests/golden/vectors.txt`, which supplies the seeds.

use hyperslab_core::{BitshuffleInner, ByteOrder, Codec, Element};

const MOST_DECODED_NBYTES: usize = 1 << 18;
const MOST_CODECS: usize = 4;
const MOST_LINE_NBYTES: usize = 1000;

/// A chunk to decode.
pub struct Case<'d> {
    pub chain: Vec<Codec>,
    pub mask: u32,
    pub decoded_nbytes: usize,
    pub encoded: &'d [u8],
}

impl<'d> Case<'d> {
    /// `None` if the line is incomplete.
    pub fn of(data: &'d [u8]) -> Option<Self> {
        let end = data.iter().take(MOST_LINE_NBYTES).position(|&byte| byte == b'\n')?;
        let mut words = std::str::from_utf8(&data[..end]).ok()?.split(' ');
        let chain: Vec<Codec> = words.next()?.split(';').map(codec).collect::<Option<_>>()?;
        let mask = words.next()?.parse().ok()?;
        let decoded_nbytes = words.next()?.parse().ok()?;
        let is_small = chain.len() <= MOST_CODECS && decoded_nbytes <= MOST_DECODED_NBYTES;
        is_small.then_some(Self { chain, mask, decoded_nbytes, encoded: &data[end + 1..] })
    }
}

fn codec(text: &str) -> Option<Codec> {
    let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
    let words: Vec<&str> = parameters.split(',').collect();
    let number = |index: usize| words.get(index)?.parse::<u32>().ok();
    let numbers = || words.iter().map(|word| word.parse().ok()).collect::<Option<Vec<u32>>>();
    Some(match name {
        "shuffle" => Codec::Shuffle { element_nbytes: words.first()?.parse().ok()? },
        "zlib" => Codec::Zlib,
        "gzip" => Codec::Gzip,
        "fletcher32" => Codec::Fletcher32,
        "szip" => Codec::Szip {
            options: number(0)?,
            pixel_nbits: number(1)?,
            pixels_per_block: number(2)?,
            pixels_per_scanline: number(3)?,
        },
        "nbit" => Codec::Nbit { parameters: numbers()? },
        "scaleoffset" => Codec::ScaleOffset { parameters: numbers()? },
        "lzf" => Codec::Lzf,
        "zstd" => Codec::Zstd,
        "blosc" => Codec::Blosc,
        "blosc2" => Codec::Blosc2,
        "lz4hdf5" => Codec::Lz4Hdf5,
        "lz4numcodecs" => Codec::Lz4Numcodecs,
        "bzip2" => Codec::Bzip2,
        "bitshuffle" => Codec::Bitshuffle {
            element_nbytes: words.first()?.parse().ok()?,
            block_elements: words.get(1)?.parse().ok()?,
            inner: inner(words.get(2)?)?,
        },
        "crc32c" => Codec::Crc32c,
        "delta" => Codec::Delta { stored: element(words.first()?)?, decoded: element(words.get(1)?)? },
        "fixedscaleoffset" => Codec::FixedScaleOffset {
            scale: words.first()?.parse().ok()?,
            offset: words.get(1)?.parse().ok()?,
            stored: element(words.get(2)?)?,
            decoded: element(words.get(3)?)?,
        },
        _ => return None,
    })
}

fn inner(name: &str) -> Option<BitshuffleInner> {
    match name {
        "none" => Some(BitshuffleInner::None),
        "lz4" => Some(BitshuffleInner::Lz4),
        "zstd" => Some(BitshuffleInner::Zstd),
        _ => None,
    }
}

/// An element in NumPy's notation.
fn element(dtype: &str) -> Option<Element> {
    let order = if dtype.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little };
    let (kind, width) = dtype.trim_start_matches(['<', '>', '|']).split_at_checked(1)?;
    let nbytes = width.parse().ok()?;
    match kind {
        "i" => Some(Element::integer(nbytes, true, order)),
        "u" => Some(Element::integer(nbytes, false, order)),
        "f" => Element::float(nbytes, order),
        _ => None,
    }
}
