//! Hand-made fixed arrays.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use super::super::testing::{Image, UNDEFINED, bytes, layout, rows, walk, words};
use crate::error::Error;
use crate::hdf5::layout::{ChunkedLayout, IndexKind};

fn fixed(filtered: bool) -> ChunkedLayout {
    layout(IndexKind::FixedArray { address: 64, page_nbits: 2 }, &[1, 1], filtered)
}

fn header(client: u8, element_nbytes: u8, page_nbits: u8, count: u64) -> Vec<u8> {
    bytes(&[b"FAHD", &[0, client, element_nbytes, page_nbits], &words([count, 128])])
}

fn block_start(client: u8) -> Vec<u8> {
    bytes(&[b"FADB", &[0, client], &words([64])])
}

/// Six elements over a maximum grid of (2, 3), in one block.
fn plain() -> Image {
    let mut image = Image::new(512);
    image.put_checked(64, &header(0, 8, 10, 6));
    image.put_checked(128, &bytes(&[&block_start(0), &words([300, 301, 302, UNDEFINED, 304, 305])]));
    image
}

/// The same with pages of four elements. Only the second page is written.
fn paged(bitmap: u8) -> Image {
    let mut image = Image::new(512);
    image.put_checked(64, &header(0, 8, 2, 6));
    image.put_checked(128, &bytes(&[&block_start(0), &[bitmap]]));
    image.put_checked(128 + 19 + 36, &words([304, 305]));
    image
}

fn refusal(file: &[u8]) -> Error {
    walk(file, &fixed(false), &[2, 2], &[Some(2), Some(3)]).unwrap_err()
}

#[test]
fn maximum_shape_numbers_the_chunks() {
    let (found, rounds) = walk(&plain().0, &fixed(false), &[2, 2], &[Some(2), Some(3)]).unwrap();
    assert_eq!(rows(&found), [(0, 300, 1, 0), (1, 301, 1, 0), (3, 304, 1, 0)]);
    assert!(rounds <= 3, "{rounds} rounds");
}

#[test]
fn filtered_elements() {
    let mut image = Image::new(512);
    image.put_checked(64, &header(1, 15, 10, 2));
    let element =
        |address: u64, length: u8, mask: u8| bytes(&[&words([address]), &[length, 0, 0, mask, 0, 0, 0]]);
    let elements = bytes(&[&block_start(1), &element(400, 7, 1), &element(UNDEFINED, 0, 0)]);
    image.put_checked(128, &elements);
    let (found, _) = walk(&image.0, &fixed(true), &[1, 2], &[Some(1), Some(2)]).unwrap();
    assert_eq!(rows(&found), [(0, 400, 7, 1)]);
}

#[test]
fn only_written_pages_are_read() {
    let max = [Some(2), Some(3)];
    let (found, _) = walk(&paged(0b0100_0000).0, &fixed(false), &[2, 3], &max).unwrap();
    assert_eq!(rows(&found), [(4, 304, 1, 0), (5, 305, 1, 0)]);
    let (found, _) = walk(&paged(0).0, &fixed(false), &[2, 3], &max).unwrap();
    assert!(found.is_empty());
    assert!(matches!(refusal(&paged(0b1100_0000).0), Error::Checksum { .. }), "a page that was not written");
}

#[test]
fn damaged_arrays() {
    for (image, offsets) in [(plain(), [70, 90, 130, 160]), (paged(0b0100_0000), [70, 90, 143, 190])] {
        for offset in offsets {
            let mut file = image.0.clone();
            file[offset] ^= 1;
            let error = refusal(&file);
            assert!(matches!(error, Error::Checksum { .. }), "{offset}: {error}");
        }
    }
    for length in [60, 90, 140, 190] {
        assert!(matches!(refusal(&plain().0[..length]), Error::Truncated { .. }), "cut to {length}");
    }
}

#[test]
fn counts_that_lie() {
    for (page_nbits, count) in
        [(10, 1 << 20), (10, u64::MAX), (2, u64::MAX), (0, 1 << 40), (63, u64::MAX), (200, 99)]
    {
        let mut image = plain();
        image.put_checked(64, &header(0, 8, page_nbits, count));
        let error = refusal(&image.0);
        let refused = matches!(error, Error::Truncated { .. } | Error::Checksum { .. });
        assert!(refused, "{count} in pages of 2^{page_nbits}: {error}");
    }
    for (client, element_nbytes) in [(0, 0), (0, 7), (1, 12), (1, 21), (2, 8)] {
        let mut image = plain();
        image.put_checked(64, &header(client, element_nbytes, 10, 6));
        assert!(matches!(refusal(&image.0), Error::Invalid { .. }), "{element_nbytes} bytes");
    }
}

#[test]
fn blocks_belong_to_their_array() {
    let mut image = plain();
    image.put_checked(128, &bytes(&[b"FADB", &[0, 0], &words([65]), &words([0; 6])]));
    assert!(matches!(refusal(&image.0), Error::Invalid { .. }));
}
