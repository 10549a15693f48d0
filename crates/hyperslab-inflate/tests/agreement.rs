//! Streams decode as by libdeflate: the same bytes, or an error in both.

#![allow(clippy::unwrap_used, clippy::cast_possible_truncation)]

use hyperslab_inflate::{Inflate, Job};
use libdeflater::{CompressionLvl, Compressor, Decompressor};

/// Numbers that are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize
    }

    /// Below one of the limits.
    fn one(&mut self, limits: &[usize]) -> usize {
        let limit = limits[self.below(limits.len())];
        self.below(limit)
    }

    fn below(&mut self, limit: usize) -> usize {
        self.next() % limit.max(1)
    }
}

/// Bytes that compress in many ways: noise of some bits, runs, and copies from near and far.
fn bytes(numbers: &mut Numbers, nbytes: usize) -> Vec<u8> {
    let mut made = Vec::with_capacity(nbytes + 600);
    while made.len() < nbytes {
        let count = 1 + numbers.one(&[8, 40, 600]);
        match numbers.below(4) {
            0 => made.extend((0..count).map(|_| (numbers.next() & 15) as u8)),
            1 => made.extend((0..count).map(|_| numbers.next() as u8)),
            2 => made.extend(std::iter::repeat_n(numbers.next() as u8, count)),
            _ => {
                let back = 1 + numbers.one(&[16, 300, 32768].map(|most| made.len().min(most)));
                if let Some(start) = made.len().checked_sub(back) {
                    (0..count).for_each(|index| made.push(made[start + index]));
                }
            }
        }
    }
    made.truncate(nbytes);
    made
}

fn by_libdeflate(bytes: &[u8], level: i32) -> Vec<u8> {
    let mut compressor = Compressor::new(CompressionLvl::new(level).unwrap());
    let mut coded = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let nbytes = compressor.zlib_compress(bytes, &mut coded).unwrap();
    coded.truncate(nbytes);
    coded
}

fn by_zlib(bytes: &[u8], level: u32) -> Vec<u8> {
    use std::io::Write;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(level));
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

const CANARY: u8 = 0xc5;
const AROUND: usize = 64;

/// Decodes all by both decoders, and compares.
fn compare(inflates: &mut [Inflate], coded: &[(Vec<u8>, usize)]) {
    let mut libdeflate = Decompressor::new();
    let expected: Vec<Option<Vec<u8>>> = coded
        .iter()
        .map(|(input, space)| {
            let mut output = vec![0; *space];
            let nbytes = libdeflate.zlib_decompress(input, &mut output).ok()?;
            output.truncate(nbytes);
            Some(output)
        })
        .collect();
    for inflate in inflates {
        let mut outputs: Vec<Vec<u8>> =
            coded.iter().map(|(_, space)| vec![CANARY; space + 2 * AROUND]).collect();
        let mut jobs: Vec<Job<'_>> = coded
            .iter()
            .zip(&mut outputs)
            .map(|((input, space), output)| Job::new(input, &mut output[AROUND..AROUND + space]))
            .collect();
        inflate.zlib(&mut jobs);
        let found: Vec<Option<usize>> = jobs.iter().map(|job| job.outcome.ok()).collect();
        for (index, (found, expected)) in found.iter().zip(&expected).enumerate() {
            let (output, space) = (&outputs[index], coded[index].1);
            let decoded = found.map(|nbytes| &output[AROUND..AROUND + nbytes]);
            assert!(decoded == expected.as_deref(), "stream {index}: {found:?}");
            let around = output[..AROUND].iter().chain(&output[AROUND + space..]);
            assert!(around.copied().all(|byte| byte == CANARY), "stream {index} wrote outside its output");
        }
    }
}

fn inflates() -> [Inflate; 2] {
    [Inflate::new(), Inflate::portable()]
}

/// How often each test repeats: more to fuzz.
fn rounds() -> usize {
    std::env::var("HYPERSLAB_INFLATE_ROUNDS").ok().and_then(|rounds| rounds.parse().ok()).unwrap_or(1)
}

const SIZES: [usize; 8] = [0, 1, 7, 300, 400, 3000, 40_000, 200_000];

#[test]
fn streams_of_every_level_decode_as_by_libdeflate() {
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15);
    let mut inflates = inflates();
    for level in (0..rounds()).flat_map(|_| 0..=12) {
        let mut coded = Vec::new();
        for nbytes in SIZES {
            let bytes = bytes(&mut numbers, nbytes);
            let stream = if level > 9 || numbers.below(2) == 0 {
                by_libdeflate(&bytes, level)
            } else {
                by_zlib(&bytes, level.cast_unsigned())
            };
            coded.push((stream, nbytes));
        }
        compare(&mut inflates, &coded);
    }
}

#[test]
fn broken_streams_fail_or_decode_as_by_libdeflate() {
    let mut numbers = Numbers(0xd1b5_4a32_d192_ed03);
    let mut inflates = inflates();
    let whole: Vec<Vec<u8>> = (0..24)
        .map(|index| {
            let nbytes = SIZES[index % 7] + numbers.below(500);
            by_libdeflate(&bytes(&mut numbers, nbytes), [1, 6, 12][index % 3])
        })
        .collect();
    for _ in 0..400 * rounds() {
        let coded: Vec<(Vec<u8>, usize)> = (0..=numbers.below(6))
            .map(|_| {
                let mut stream = whole[numbers.below(whole.len())].clone();
                let space = numbers.below(50_000);
                for _ in 0..numbers.below(3) {
                    let place = numbers.one(&[stream.len(), stream.len().min(100)]);
                    stream[place] ^= 1 << numbers.below(8);
                }
                if numbers.below(4) == 0 {
                    stream.truncate(numbers.below(stream.len()));
                }
                (stream, space)
            })
            .collect();
        compare(&mut inflates, &coded);
    }
}
