//! Hand-made B-trees of version 2 over chunks.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use super::super::testing::{Image, UNDEFINED, bytes, layout, rows, walk, words};
use crate::error::Error;
use crate::hdf5::layout::{ChunkedLayout, IndexKind};

fn tree(filtered: bool) -> ChunkedLayout {
    layout(IndexKind::BTree2 { address: 64 }, &[2, 2], filtered)
}

/// One leaf at 256, of records of this type.
fn image(kind: u8, record_nbytes: u16, records: &[Vec<u8>]) -> Vec<u8> {
    let mut image = Image::new(1024);
    let count = u16::try_from(records.len()).unwrap();
    let sizes = [&2048_u32.to_le_bytes()[..], &record_nbytes.to_le_bytes(), &[0, 0, 100, 40]].concat();
    let root = [&words([256])[..], &count.to_le_bytes(), &words([u64::from(count)])].concat();
    image.put_checked(64, &bytes(&[b"BTHD", &[0, kind], &sizes, &root]));
    image.put_checked(256, &bytes(&[b"BTLF", &[0, kind], &records.concat()]));
    image.0
}

#[test]
fn plain_records() {
    let records = [words([500, 0, 1]), words([UNDEFINED, 1, 0]), words([510, 1, 2]), words([520, 2, 0])];
    let (found, _) = walk(&image(10, 24, &records), &tree(false), &[4, 5], &[None, None]).unwrap();
    assert_eq!(rows(&found), [(1, 500, 4, 0), (5, 510, 4, 0)]);
}

#[test]
fn filtered_records() {
    let record = |address: u64, length: u64, mask: u32, position: [u64; 2]| {
        bytes(&[&words([address, length]), &mask.to_le_bytes(), &words(position)])
    };
    let records = [record(500, 300, 1, [0, 0]), record(510, 7, 0, [1, 1])];
    let (found, _) = walk(&image(11, 36, &records), &tree(true), &[4, 4], &[None, None]).unwrap();
    assert_eq!(rows(&found), [(0, 500, 300, 1), (3, 510, 7, 0)]);
    let records = [record(500, u64::MAX, 1, [0, 0])];
    let error = walk(&image(11, 36, &records), &tree(true), &[4, 4], &[None, None]).unwrap_err();
    assert!(matches!(error, Error::Invalid { .. } | Error::Truncated { .. }), "{error}");
}

#[test]
fn records_of_something_else() {
    for (kind, nbytes) in [(5, 24), (10, 23), (10, 8), (11, 28), (11, 37)] {
        let error = walk(&image(kind, nbytes, &[]), &tree(false), &[4, 4], &[None, None]).unwrap_err();
        assert!(matches!(error, Error::Invalid { .. }), "type {kind}, {nbytes} bytes: {error}");
    }
}
