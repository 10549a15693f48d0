//! Prints how fast chunks decode on one thread: `cargo run --release --example decode_speed`.
//!
//! The data are one MiB of float32, a smooth field with noise, through shuffle and DEFLATE: what most HDF5 files
//! contain.

#![allow(clippy::unwrap_used, clippy::cast_precision_loss)] // an example may panic

use std::hint::black_box;
use std::time::Instant;

use hyperslab_core::{Checksum, Codec, known};
use hyperslab_engine::codecs::{Decoded, Scratch, decode};

const NBYTES: usize = 1 << 20;
const ROUNDS: u32 = 60;

fn main() {
    let field = field();
    let planes = shuffled(&field, 4);
    let zlib = compressed(&planes);
    println!("{} bytes of float32, {} after shuffle and deflate", field.len(), zlib.len());
    let shuffle = Codec::Shuffle { element_nbytes: 4 };
    report("deflate", &[Codec::known(&known::zlib)], &zlib);
    report("deflate, unshuffle", &[shuffle.clone(), Codec::known(&known::zlib)], &zlib);
    for element_nbytes in [2, 3, 4, 8, 12, 16] {
        let name = format!("unshuffle elements of {element_nbytes}");
        report(&name, &[Codec::Shuffle { element_nbytes }], &field);
    }
    report("bitshuffle", &[Codec::with(&known::bitshuffle, [4, 0, 0])], &field);
    report("fletcher32", &[Codec::checksum(Checksum::Fletcher32)], &summed(&field));
    let mut copy = vec![0; NBYTES];
    print("memcpy", || copy.copy_from_slice(black_box(&field)));
}

/// The best of many rounds, in decoded bytes per second.
fn print(name: &str, mut round: impl FnMut()) {
    let best = (0..ROUNDS)
        .map(|_| {
            let start = Instant::now();
            round();
            start.elapsed()
        })
        .min()
        .unwrap();
    println!("{name:>28}: {:6.2} GB/s", 1e-9 * NBYTES as f64 / best.as_secs_f64());
}

fn report(name: &str, chain: &[Codec], encoded: &[u8]) {
    let mut scratch = Scratch::default();
    let mut out = vec![0; NBYTES];
    print(name, || match decode(chain, 0, 0, black_box(encoded), NBYTES, &mut scratch).unwrap() {
        Decoded::Plain(bytes) => {
            black_box(bytes);
        }
        Decoded::Shuffled(shuffled) => {
            shuffled.unshuffle(&mut out);
            black_box(&out);
        }
    });
}

/// A smooth field with noise, rounded so that every byte can be compressed a little.
fn field() -> Vec<u8> {
    let mut state = 1_u64;
    (0..NBYTES / 4)
        .flat_map(|index| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            let noise = (state >> 40) as f32 / 16_777_216.0;
            let value = 280.0 + 20.0 * (index as f32 / 900.0).sin() + noise;
            ((value * 512.0).round() / 512.0).to_le_bytes()
        })
        .collect()
}

fn shuffled(bytes: &[u8], element_nbytes: usize) -> Vec<u8> {
    let count = bytes.len() / element_nbytes;
    (0..bytes.len()).map(|at| bytes[at % count * element_nbytes + at / count]).collect()
}

fn compressed(bytes: &[u8]) -> Vec<u8> {
    let mut compressor = libdeflater::Compressor::new(libdeflater::CompressionLvl::new(4).unwrap());
    let mut out = vec![0; compressor.zlib_compress_bound(bytes.len())];
    let nbytes = compressor.zlib_compress(bytes, &mut out).unwrap();
    out.truncate(nbytes);
    out
}

/// The data and their checksum, which decoding's own error reveals.
fn summed(bytes: &[u8]) -> Vec<u8> {
    let mut summed = bytes.to_vec();
    summed.extend([0; 4]);
    let mut scratch = Scratch::default();
    let result = decode(&[Codec::checksum(Checksum::Fletcher32)], 0, 0, &summed, NBYTES, &mut scratch);
    if let Err(hyperslab_engine::Error::Checksum { computed, .. }) = result {
        summed[NBYTES..].copy_from_slice(&computed.to_le_bytes());
    }
    summed
}
