//! Damaged and invented chunks: decoding ends in an error or in a chunk of the right size, never in a panic.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod golden;

use golden::{Vector, vectors};
use hyperslab_core::{ByteOrder, Checksum, Codec, Dither, Element, KnownCodec, Quantum, known};
use hyperslab_engine::Error;
use hyperslab_engine::codecs::{Decoded, Scratch, Shuffled, decode};
use proptest::prelude::*;

/// Decodes. The output has the right size, or there is an error.
fn survives(chain: &[Codec], mask: u32, encoded: &[u8], decoded_nbytes: usize) -> Result<(), Error> {
    match decode(chain, 0, mask, encoded, decoded_nbytes, &mut Scratch::default())? {
        Decoded::Plain(bytes) | Decoded::Shuffled(Shuffled { planes: bytes, .. }) => {
            assert_eq!(bytes.len(), decoded_nbytes);
        }
    }
    Ok(())
}

fn decoded_codecs() -> Vec<&'static KnownCodec> {
    KnownCodec::all().filter(|codec| codec.is_decoded()).collect()
}

/// Any codec, with parameters that a file could claim.
fn any_codec() -> impl Strategy<Value = Codec> {
    let small = prop_oneof![0..20_u32, any::<u32>()];
    let element = (prop_oneof![Just(1_u64), Just(2), Just(4), Just(8), Just(3)], any::<bool>())
        .prop_map(|(nbytes, signed)| Element::integer(nbytes, signed, ByteOrder::Big));
    let float = prop_oneof![Just(4_u64), Just(8), Just(2)]
        .prop_map(|nbytes| Element::float(nbytes, ByteOrder::Little).unwrap());
    let number = prop_oneof![element, float];
    let sums = vec![Checksum::Crc32, Checksum::Adler32, Checksum::Crc32c, Checksum::Fletcher32];
    let any_sum = (prop::sample::select(sums), any::<bool>());
    prop_oneof![
        prop_oneof![0..20_u64, any::<u64>()].prop_map(|element_nbytes| Codec::Shuffle { element_nbytes }),
        (prop::sample::select(decoded_codecs()), prop::collection::vec(small.clone(), 0..30))
            .prop_map(|(codec, parameters)| Codec::with(codec, parameters)),
        prop::sample::select(decoded_codecs()).prop_map(Codec::known),
        (small.clone(), 0..70_u32, 0..70_u32, small.clone())
            .prop_map(|(options, bits, block, line)| Codec::with(&known::szip, [options, bits, block, line])),
        prop::collection::vec(0..9_u32, 0..12)
            .prop_map(|parameters| Codec::with(&known::scaleoffset, parameters)),
        (0..20_u32, prop_oneof![0..99_u32, any::<u32>()], 0..4_u32)
            .prop_map(|(width, block, inner)| Codec::with(&known::bitshuffle, [width, block, inner])),
        any_sum.prop_map(|(sum, at_start)| Codec::Checksum { sum, at_start }),
        Just(Codec::Transpose { order: vec![1, 0] }),
        (number.clone(), number.clone()).prop_map(|(stored, decoded)| Codec::Delta { stored, decoded }),
        (number.clone(), number.clone()).prop_map(|(stored, decoded)| {
            Codec::FixedScaleOffset { scale: 10.0, offset: 3.5, stored, decoded }
        }),
        (prop_oneof![Just(1_u32), Just(2), Just(4), Just(3)], prop_oneof![0..70_u32, any::<u32>()])
            .prop_map(|(width, block)| Codec::with(&known::rice, [width, block])),
        prop_oneof![0..20_u32, any::<u32>()].prop_map(|width| Codec::with(&known::skipping_huffman, [width])),
        (0..10_u32, 0..70_u32, 0..70_u32, 0..2_u32, 0..2_u32).prop_map(
            |(width, first, nbits, sign, ones)| Codec::with(
                &known::nbit_hdf4,
                [width, first, nbits, sign, ones]
            )
        ),
        (0..70_u32, 0..70_u32, 0..70_u32, 0..2_u32).prop_map(|(options, bits, block, has_header)| {
            Codec::with(&known::szip_hdf4, [options, bits, block, 2 * block, has_header])
        }),
        (number, any::<u32>(), any::<f64>(), 0..3_usize, 0..2_usize).prop_map(
            |(decoded, dither_start, scale, dither, count)| Codec::Quantize {
                chunks: vec![Quantum { scale, zero: 1.0, null: Some(-7), dither_start }; count],
                dither: [Dither::None, Dither::Subtractive, Dither::KeepingZeros][dither],
                decoded,
            }
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 1000, failure_persistence: None, ..ProptestConfig::default()
    })]

    /// Golden chunks with a few bytes changed, and some cut or added.
    #[test]
    fn changed_bytes(
        which in any::<prop::sample::Index>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        near_start in any::<bool>(),
        cut in 0..20_usize,
        added in prop::collection::vec(any::<u8>(), 0..9),
    ) {
        let all = golden_vectors();
        let mut vector = which.get(all).clone();
        for (position, byte) in changes {
            let length = if near_start { vector.encoded.len().min(40) } else { vector.encoded.len() };
            let position = position.index(length);
            vector.encoded[position] = byte;
        }
        vector.encoded.truncate(vector.encoded.len().saturating_sub(cut));
        vector.encoded.extend(added);
        let _ = survives(&vector.chain, vector.mask, &vector.encoded, vector.decoded_nbytes);
    }

    /// Random bytes, through codecs in any order.
    #[test]
    fn made_up_bytes(
        chain in prop::collection::vec(any_codec(), 1..4),
        mask in prop_oneof![Just(0), 0..8_u32],
        encoded in prop::collection::vec(any::<u8>(), 0..200),
        decoded_nbytes in prop_oneof![0..300_usize, 0..100_000_usize],
    ) {
        let _ = survives(&chain, mask, &encoded, decoded_nbytes);
    }

    /// Golden chunks with the wrong parameters.
    #[test]
    fn made_up_parameters(
        which in any::<prop::sample::Index>(),
        other in any_codec(),
        position in any::<prop::sample::Index>(),
        parameter in (any::<prop::sample::Index>(), prop_oneof![0..70_u32, any::<u32>()]),
    ) {
        let vector = which.get(golden_vectors());
        let mut chain = vector.chain.clone();
        let index = position.index(chain.len());
        match &mut chain[index] {
            Codec::Known { parameters, .. } if !parameters.is_empty() => {
                let at = parameter.0.index(parameters.len());
                parameters[at] = parameter.1;
            }
            codec => *codec = other,
        }
        let _ = survives(&chain, vector.mask, &vector.encoded, vector.decoded_nbytes);
    }
}

fn golden_vectors() -> &'static [Vector] {
    static ALL: std::sync::OnceLock<Vec<Vector>> = std::sync::OnceLock::new();
    ALL.get_or_init(vectors)
}

/// Zeros that DEFLATE shrinks a thousandfold.
fn bomb(nbytes: usize) -> Vec<u8> {
    compressed(&vec![0; nbytes])
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut out = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let nbytes = compressor.zlib_compress(bytes, &mut out).unwrap();
    out.truncate(nbytes);
    out
}

#[test]
fn bombs_end_in_a_named_error() {
    let bomb = bomb(50_000_000);
    let one = survives(&[Codec::known(&known::zlib)], 0, &bomb, 1000);
    assert_eq!(one, Err(Error::DecodedBeyond { codec: "deflate", limit: 1000 }));
    let two = survives(&[Codec::known(&known::zlib), Codec::known(&known::zlib)], 0, &bomb, 1000);
    assert_eq!(two, Err(Error::DecodedBeyond { codec: "deflate", limit: 2000 + 64 * 1024 }));
}

/// Zeros from every encoder that shrinks them strongly.
fn bombs() -> Vec<(Codec, Vec<u8>)> {
    use std::io::Write;
    let zeros = vec![0_u8; 1 << 20];
    let mut gzip = libdeflater::Compressor::new(libdeflater::CompressionLvl::default());
    let mut gzipped = vec![0; gzip.gzip_compress_bound(zeros.len())];
    let nbytes = gzip.gzip_compress(&zeros, &mut gzipped).unwrap();
    gzipped.truncate(nbytes);
    let mut bzip2 = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::best());
    bzip2.write_all(&zeros).unwrap();
    let mut zstd = vec![0; zstd_safe::compress_bound(zeros.len())];
    let nbytes = zstd_safe::compress(&mut zstd[..], &zeros, 3).unwrap();
    zstd.truncate(nbytes);
    let lz4 = lz4_flex::block::compress(&zeros);
    let numcodecs = [&(1_u32 << 20).to_le_bytes()[..], &lz4].concat();
    let block_nbytes = (1_u32 << 20).to_be_bytes();
    let lz4_nbytes = u32::try_from(lz4.len()).unwrap().to_be_bytes();
    let hdf5 = [&(1_u64 << 20).to_be_bytes()[..], &block_nbytes, &lz4_nbytes, &lz4].concat();
    // A literal zero, then copies of 264 bytes from one byte before.
    let lzf = [[0, 0].to_vec(), [0xe0, 255, 0].repeat(4000)].concat();
    // Blosc's header: version 2, memcpyed is off, one byte per value, sizes; a single split that repeats a byte.
    let sizes = [1_u32 << 20, 1 << 20, 16 + 4 + 4 + u32::try_from(lz4.len()).unwrap()];
    let sizes = sizes.iter().flat_map(|size| size.to_le_bytes());
    let blosc = [2, 1, 0x30, 1].into_iter().chain(sizes).chain(20_u32.to_le_bytes());
    let blosc = blosc.chain(u32::try_from(lz4.len()).unwrap().to_le_bytes()).chain(lz4).collect();
    vec![
        (Codec::known(&known::zlib), compressed(&zeros)),
        (Codec::known(&known::gzip), gzipped),
        (Codec::known(&known::bzip2), bzip2.finish().unwrap()),
        (Codec::known(&known::zstd), zstd),
        (Codec::known(&known::lz4_numcodecs), numcodecs),
        (Codec::known(&known::lz4), hdf5),
        (Codec::known(&known::lzf), lzf),
        (Codec::known(&known::blosc), blosc),
    ]
}

#[test]
fn every_codec_refuses_its_bomb() {
    for (codec, encoded) in bombs() {
        let name = codec.name().to_owned();
        assert!(encoded.len() < 20_000, "{name}");
        let whole = if codec == Codec::known(&known::lzf) { 1 + 264 * 4000 } else { 1 << 20 };
        assert_eq!(survives(std::slice::from_ref(&codec), 0, &encoded, whole), Ok(()), "{name}");
        for asked in [0, 1, 1000, 100_000] {
            let found = survives(std::slice::from_ref(&codec), 0, &encoded, asked);
            let is_size = matches!(
                found,
                Err(Error::DecodedBeyond { .. } | Error::DecodedSize { .. } | Error::Damaged { .. })
            );
            assert!(is_size, "{name} as {asked} bytes: {found:?}");
        }
    }
}

#[test]
fn sizes_that_differ_are_named() {
    let encoded = compressed(&[1; 100]);
    let found = |expected| survives(&[Codec::known(&known::zlib)], 0, &encoded, expected);
    assert_eq!(found(100), Ok(()));
    assert_eq!(found(101), Err(Error::DecodedSize { codec: "deflate", expected: 101, found: 100 }));
    assert_eq!(found(99), Err(Error::DecodedBeyond { codec: "deflate", limit: 99 }));
    let stored = survives(&[], 0, &[1, 2, 3], 4);
    assert_eq!(stored, Err(Error::DecodedSize { codec: "stored bytes", expected: 4, found: 3 }));
}

#[test]
fn unknown_codecs_are_named() {
    let unknown = Codec::Unknown { number: Some(32013), name: "zfp".to_owned() };
    let error = survives(&[Codec::known(&known::zlib), unknown.clone()], 0, &[], 4).unwrap_err();
    assert_eq!(error, Error::UnknownCodec { number: Some(32013), name: "zfp".to_owned() });
    assert_eq!(error.to_string(), "codec zfp (HDF5 filter 32013) is unknown, so this array cannot be read");
    assert_eq!(survives(&[unknown], 1, &[1, 2, 3, 4], 4), Ok(()), "a skipped codec need not be known");
}

#[test]
fn checksums_are_verified() {
    for (codec, name) in
        [(Codec::checksum(Checksum::Fletcher32), "fletcher32"), (Codec::checksum(Checksum::Crc32c), "crc32c")]
    {
        let error = survives(&[codec], 0, &[1, 2, 3, 4, 5, 6, 7, 8], 4).unwrap_err();
        assert!(matches!(error, Error::Checksum { codec, .. } if codec == name), "{error}");
    }
}

#[test]
fn transpositions_are_left_to_the_caller() {
    let transpose = || Codec::Transpose { order: vec![1, 0] };
    let shuffle = Codec::Shuffle { element_nbytes: 2 };
    let mut scratch = Scratch::default();
    let decoded = decode(&[transpose(), shuffle], 0, 0, &[1, 3, 2, 4], 4, &mut scratch);
    assert_eq!(
        decoded,
        Ok(Decoded::Shuffled(Shuffled { planes: &[1, 3, 2, 4], element_nbytes: 2, block_nbytes: 4 }))
    );
    let byte = Element::integer(1, false, ByteOrder::Little);
    let delta = Codec::Delta { stored: byte.clone(), decoded: byte };
    let error = survives(&[delta, transpose()], 0, &[1, 2], 2).unwrap_err();
    assert!(matches!(error, Error::Unsupported { codec: "transpose", .. }), "{error}");
}

#[test]
fn memory_that_cannot_be_had_is_an_error() {
    let claim = usize::MAX / 4;
    assert_eq!(
        survives(&[Codec::known(&known::zlib)], 0, &bomb(10), claim),
        Err(Error::OutOfMemory { nbytes: claim })
    );
}
