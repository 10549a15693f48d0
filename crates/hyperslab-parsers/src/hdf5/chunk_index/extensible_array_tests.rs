//! Hand-made extensible arrays.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use super::super::testing::{Image, SIZES, UNDEFINED, bytes, layout, rows, walk, words};
use super::{Array, Head, super_block_counts};
use crate::error::Error;
use crate::hdf5::chunk_index::element::ElementFormat;
use crate::hdf5::layout::{ChunkedLayout, ExtensibleArrayParameters, IndexKind};

/// 3 elements in the index block, then blocks of 2, 4, (4, 4), (8, 8): the last two with pages of 4.
const PARAMETERS: [u8; 5] = [8, 3, 2, 2, 2];

fn extensible() -> ChunkedLayout {
    let parameters = ExtensibleArrayParameters {
        max_nbits: 8,
        index_elements: 3,
        min_pointers: 2,
        min_elements: 2,
        page_nbits: 2,
    };
    layout(IndexKind::ExtensibleArray { address: 64, parameters }, &[1], false)
}

fn header([max_nbits, index, min_elements, min_pointers, page_nbits]: [u8; 5]) -> Vec<u8> {
    let parameters = [0, 0, 8, max_nbits, index, min_elements, min_pointers, page_nbits];
    bytes(&[b"EAHD", &parameters, &words([0; 6]), &words([256])])
}

fn start(signature: &[u8]) -> Vec<u8> {
    bytes(&[signature, &[0, 0], &words([64])])
}

/// The chunk of number `n` is at 2000 + n.
fn chunks(first: u64, count: u64) -> Vec<u8> {
    words(first + 2000..first + count + 2000)
}

/// All 33 elements, except for the second page of the first paged block.
fn image() -> Image {
    let mut image = Image::new(3000);
    image.put_checked(64, &header(PARAMETERS));
    // Super blocks 2 to 7 have a pointer each.
    let pointers = words([400, 450, 600, 700, UNDEFINED, UNDEFINED, UNDEFINED, UNDEFINED]);
    image.put_checked(256, &bytes(&[&start(b"EAIB"), &chunks(0, 3), &pointers]));
    let block = |first, count, offset: u8| bytes(&[&start(b"EADB"), &[offset], &chunks(first, count)]);
    image.put_checked(400, &block(3, 2, 0));
    image.put_checked(450, &block(5, 4, 2));
    image.put_checked(600, &bytes(&[&start(b"EASB"), &[6], &words([1000, 1100])]));
    image.put_checked(1000, &block(9, 4, 6));
    image.put_checked(1100, &block(13, 4, 10));
    // Two pages for each block: the bits of the second block follow those of the first one.
    image.put_checked(700, &bytes(&[&start(b"EASB"), &[14], &[0b1011_0000, 0], &words([1200, 1400])]));
    image.put_checked(1200, &block(0, 0, 14));
    image.put_checked(1219, &chunks(17, 4));
    image.put_checked(1400, &block(0, 0, 22));
    image.put_checked(1419, &chunks(25, 4));
    image.put_checked(1419 + 36, &chunks(29, 4));
    image
}

fn refusal(file: &[u8]) -> Error {
    walk(file, &extensible(), &[40], &[None]).unwrap_err()
}

#[test]
fn every_block_is_read() {
    let (found, rounds) = walk(&image().0, &extensible(), &[40], &[None]).unwrap();
    let expected: Vec<_> = (0..33).filter(|n| !(21..25).contains(n)).map(|n| (n, 2000 + n, 1, 0)).collect();
    assert_eq!(rows(&found), expected);
    assert!(rounds <= 5, "{rounds} rounds");
    let (found, _) = walk(&image().0, &extensible(), &[10], &[None]).unwrap();
    assert_eq!(rows(&found), expected[..10], "what a shrunken array left behind");
}

#[test]
fn library_defaults() {
    // 32 bits, 16 elements, 4 pointers: 29 super blocks, 4 of them direct, of 6 blocks of 16 to 64 elements.
    assert_eq!(super_block_counts(32, 16, 4), Some((29, 4)));
    let array = Array {
        head: Head { address: 0, client: 0, format: ElementFormat::new(SIZES, 1, false, 8).unwrap() },
        index_block: 0,
        first_width: 4,
        index_elements: 4,
        min_elements: 16,
        super_count: 29,
        direct_count: 4,
        page_elements: 1024,
    };
    assert_eq!(array.direct_block_count(), 6);
    assert_eq!([0, 1, 2, 3, 4].map(|number| array.block_elements(number)), [16, 32, 32, 64, 64]);
    assert_eq!([0, 1, 2, 3, 4].map(|number| array.super_block_first(number)), [4, 20, 52, 116, 244]);
    assert_eq!((array.page_count(12), array.page_count(13)), (0, 2));
}

#[test]
fn damaged_arrays() {
    for offset in [70, 90, 260, 290, 410, 455, 610, 620, 705, 1010, 1205, 1225, 1430, 1460] {
        let mut file = image().0;
        file[offset] ^= 1;
        let error = refusal(&file);
        assert!(matches!(error, Error::Checksum { .. }), "{offset}: {error}");
    }
    for length in [100, 300, 410, 1005, 1250, 1440] {
        assert!(matches!(refusal(&image().0[..length]), Error::Truncated { .. }), "cut to {length}");
    }
}

#[test]
fn impossible_parameters() {
    let bad = [
        [65, 3, 2, 2, 2],
        [8, 3, 3, 2, 2],
        [8, 3, 2, 3, 2],
        [8, 3, 0, 2, 2],
        [1, 3, 2, 128, 2],
        [0, 0, 2, 2, 2],
    ];
    for parameters in bad {
        let mut image = image();
        image.put_checked(64, &header(parameters));
        assert!(matches!(refusal(&image.0), Error::Invalid { .. }), "{parameters:?}");
    }
    let mut image = image();
    image.put_checked(64, &header([64, 255, 128, 128, 255]));
    refusal(&image.0);
}

#[test]
fn pages_below_the_index_block() {
    let mut image = image();
    image.put_checked(64, &header([8, 3, 2, 2, 1]));
    assert!(matches!(refusal(&image.0), Error::Unsupported { .. }));
}

#[test]
fn blocks_met_twice() {
    let mut image = image();
    image.put_checked(600, &bytes(&[&start(b"EASB"), &[6], &words([1000, 1000])]));
    assert!(matches!(refusal(&image.0), Error::Cycle { offset: 1000, .. }));
}
