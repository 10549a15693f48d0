//! Decodes, with every codec, chunks that other libraries encoded. `tests/engine/make_codec_vectors.py` makes them.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

mod golden;

use golden::{Vector, vectors};
use hyperslab_engine::Error;
use hyperslab_engine::codecs::{Decoded, Scratch, decode};

/// The whole chunk, unshuffled in pieces as scatter does.
fn plain(decoded: Decoded<'_>) -> Vec<u8> {
    match decoded {
        Decoded::Plain(bytes) => bytes.to_vec(),
        Decoded::Shuffled(shuffled) => {
            let (count, width) = (shuffled.planes.len() / shuffled.element_nbytes, shuffled.element_nbytes);
            let mut whole = vec![0; shuffled.planes.len()];
            shuffled.unshuffle(&mut whole);
            let mut pieces = vec![0; count * width];
            let middle = count / 3;
            let (first, second) = pieces.split_at_mut(middle * width);
            shuffled.gather(0, 1, first);
            shuffled.gather(middle, 1, second);
            assert_eq!(whole[..pieces.len()], pieces);
            whole
        }
    }
}

fn decode_vector(vector: &Vector, scratch: &mut Scratch) -> Result<Vec<u8>, Error> {
    decode(&vector.chain, 0, vector.mask, &vector.encoded, vector.decoded_nbytes, scratch).map(plain)
}

#[test]
fn all_vectors() {
    let mut scratch = Scratch::default();
    let mut wrong = Vec::new();
    for vector in vectors() {
        match decode_vector(&vector, &mut scratch) {
            Ok(bytes) if libdeflater::crc32(&bytes) == vector.crc32 => {}
            Ok(_) => wrong.push(format!("{}: other bytes", vector.name)),
            Err(error) => wrong.push(format!("{}: {error}", vector.name)),
        }
    }
    assert!(wrong.is_empty(), "{} wrong:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn other_sizes_are_errors() {
    let mut scratch = Scratch::default();
    // Rice code and line lists do not mark their end: only the metadata tell.
    let says_its_size = |vector: &Vector| !vector.chain.iter().any(|it| matches!(it.name(), "rice" | "plio"));
    for mut vector in vectors().into_iter().filter(says_its_size) {
        let right = vector.decoded_nbytes;
        for other in [right + 1, right.saturating_sub(1), 0, right * 2 + 7] {
            vector.decoded_nbytes = other;
            let result = decode_vector(&vector, &mut scratch);
            assert!(result.is_err() || other == right, "{} as {other} bytes", vector.name);
        }
    }
}

#[test]
fn every_truncation_ends() {
    let mut scratch = Scratch::default();
    for mut vector in vectors() {
        let step = vector.encoded.len().div_ceil(40).max(1);
        while !vector.encoded.is_empty() {
            let left = vector.encoded.len().saturating_sub(step);
            vector.encoded.truncate(left);
            if let Ok(bytes) = decode_vector(&vector, &mut scratch) {
                assert_eq!(bytes.len(), vector.decoded_nbytes, "{}", vector.name);
                assert_eq!(libdeflater::crc32(&bytes), vector.crc32, "{} cut to {left} bytes", vector.name);
            }
        }
    }
}
