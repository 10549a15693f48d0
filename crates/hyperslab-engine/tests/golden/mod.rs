//! Reads the golden vectors: `vectors.txt` says what is in `encoded.bin`.

use hyperslab_core::{ByteOrder, Checksum, Codec, Dither, Element, KnownCodec, Quantum, known};

/// A chunk that another library encoded.
#[derive(Clone, Debug)]
#[allow(dead_code)] // each test uses what it needs
pub struct Vector {
    pub name: String,
    pub chain: Vec<Codec>,
    pub mask: u32,
    pub decoded_nbytes: usize,
    pub crc32: u32,
    pub encoded: Vec<u8>,
}

/// All of them.
pub fn vectors() -> Vec<Vector> {
    let chunks = include_bytes!("encoded.bin");
    include_str!("vectors.txt").lines().map(|line| vector(line, chunks)).collect()
}

fn vector(line: &str, chunks: &[u8]) -> Vector {
    let fields: Vec<&str> = line.split('\t').collect();
    let number = |index: usize| fields[index].parse::<usize>().unwrap();
    Vector {
        name: fields[0].to_owned(),
        chain: fields[1].split(';').map(codec).collect(),
        mask: u32::try_from(number(2)).unwrap(),
        decoded_nbytes: number(3),
        crc32: u32::from_str_radix(fields[4], 16).unwrap(),
        encoded: chunks[number(5)..][..number(6)].to_vec(),
    }
}

fn codec(spec: &str) -> Codec {
    let (name, parameters) = spec.split_once(':').unwrap_or((spec, ""));
    let words: Vec<&str> = parameters.split(',').collect();
    let number = |index: usize| words[index].parse::<u32>().unwrap();
    let numbers = || -> Vec<u32> { words.iter().filter_map(|word| word.parse().ok()).collect() };
    match name {
        "shuffle" => Codec::Shuffle { element_nbytes: u64::from(number(0)) },
        "fletcher32" => Codec::checksum(Checksum::Fletcher32),
        "lz4hdf5" => Codec::known(&known::lz4),
        "lz4numcodecs" => Codec::known(&known::lz4_numcodecs),
        "bitshuffle" => Codec::with(&known::bitshuffle, [number(0), number(1), inner(words[2])]),
        "crc32c" => Codec::checksum(Checksum::Crc32c),
        "delta" => Codec::Delta { stored: element(words[0]), decoded: element(words[1]) },
        "fixedscaleoffset" => Codec::FixedScaleOffset {
            scale: words[0].parse().unwrap(),
            offset: words[1].parse().unwrap(),
            stored: element(words[2]),
            decoded: element(words[3]),
        },
        "quantize" => Codec::Quantize {
            chunks: vec![Quantum {
                scale: words[0].parse().unwrap(),
                zero: words[1].parse().unwrap(),
                null: words[2].parse().ok(),
                dither_start: number(3),
            }],
            dither: [Dither::None, Dither::Subtractive, Dither::KeepingZeros][number(4) as usize],
            decoded: element(words[5]),
        },
        other => Codec::with(KnownCodec::of_file(other).unwrap(), numbers()),
    }
}

fn inner(name: &str) -> u32 {
    match name {
        "none" => 0,
        "lz4" => 1,
        "zstd" => 2,
        other => unreachable!("no codec {other} in bitshuffle"),
    }
}

/// An element as NumPy spells it.
fn element(dtype: &str) -> Element {
    let order = if dtype.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little };
    let (kind, width) = dtype.trim_start_matches(['<', '>', '|']).split_at(1);
    let nbytes = width.parse().unwrap();
    match kind {
        "i" => Element::integer(nbytes, true, order),
        "u" => Element::integer(nbytes, false, order),
        "f" => Element::float(nbytes, order).unwrap(),
        other => unreachable!("no elements of kind {other}"),
    }
}
