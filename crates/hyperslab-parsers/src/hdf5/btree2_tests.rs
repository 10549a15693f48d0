//! Hand-made B-trees of version 2.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use super::super::lookup3::lookup3;
use super::*;
use crate::pages::{Memory, Policy};

const SIZES: Sizes = Sizes { offset: 8, length: 8, base: 0 };

fn checked(parts: &[&[u8]]) -> Vec<u8> {
    let mut bytes = parts.concat();
    bytes.extend(lookup3(&bytes).to_le_bytes());
    bytes
}

/// Records of four bytes in nodes of 64.
fn header(depth: u16, root: u64, root_count: u16, total: u64) -> Vec<u8> {
    let sizes = [&64_u32.to_le_bytes()[..], &4_u16.to_le_bytes(), &depth.to_le_bytes(), &[100, 40]].concat();
    let root = [&root.to_le_bytes()[..], &root_count.to_le_bytes(), &total.to_le_bytes()].concat();
    checked(&[b"BTHD", &[0, 5], &sizes, &root])
}

fn pointer(address: u64, count: u8, total: Option<u8>) -> Vec<u8> {
    address.to_le_bytes().into_iter().chain([count]).chain(total).collect()
}

fn file(nodes: &[(usize, Vec<u8>)]) -> Vec<u8> {
    let mut file = vec![0; 1024];
    for (offset, bytes) in nodes {
        file[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    file
}

/// Three levels: root at 100, one record and two children (of which one has a child only).
fn three_levels() -> Vec<u8> {
    let inner =
        |records: &[u8], pointers: &[Vec<u8>]| checked(&[b"BTIN", &[0, 5], records, &pointers.concat()]);
    let leaf = |records: &[u8]| checked(&[b"BTLF", &[0, 5], records]);
    file(&[
        (32, header(2, 100, 1, 6)),
        (100, inner(b"ffff", &[pointer(200, 1, Some(3)), pointer(300, 0, Some(2))])),
        (200, inner(b"bbbb", &[pointer(400, 1, None), pointer(500, 1, None)])),
        (300, inner(b"", &[pointer(600, 2, None)])),
        (400, leaf(b"aaaa")),
        (500, leaf(b"cccc")),
        (600, leaf(b"ddddeeee")),
    ])
}

fn records(file: &[u8]) -> Result<(Vec<u8>, u64), Error> {
    let source = Memory(file);
    let mut pages =
        Pages::new(&source, Policy { page_nbytes: 8, first_nbytes: 8, last_nbytes: 0, gap_pages: 0 });
    let mut walk = Walk::new(32, SIZES, &[5]);
    let mut found = Vec::new();
    loop {
        let mut each = |record: &[u8]| {
            assert_eq!(record.len(), 4);
            found.push(record[0]);
            Ok(())
        };
        match walk.resume(&pages, &mut each) {
            Err(Error::NotHeld { .. }) => assert!(pages.fetch()?, "nothing was asked for"),
            Err(error) => return Err(error),
            Ok(()) => break,
        }
    }
    found.sort_unstable();
    Ok((found, pages.statistics().round_count))
}

#[test]
fn widths() {
    assert_eq!([0, 1, 255, 256, 65_535, 65_536].map(width_of), [1, 1, 1, 2, 2, 3]);
    let levels = Level::all(2048, 24, 2, SIZES).unwrap();
    assert_eq!(levels.iter().map(|level| level.max_records).collect::<Vec<_>>(), [84, 61, 57]);
    assert_eq!(levels.iter().map(|level| level.total_width).collect::<Vec<_>>(), [0, 2, 3]);
}

#[test]
fn every_record_once_in_one_round_a_level() {
    assert_eq!(records(&three_levels()), Ok((b"abcdef".to_vec(), 4)));
}

#[test]
fn empty_tree() {
    assert_eq!(records(&file(&[(32, header(0, u64::MAX, 0, 0))])), Ok((Vec::new(), 1)));
}

#[test]
fn damaged_trees() {
    for offset in [40, 50, 105, 210, 310, 405, 505, 610] {
        let mut file = three_levels();
        file[offset] ^= 1;
        assert!(matches!(records(&file), Err(Error::Checksum { .. })), "{offset}");
    }
    for length in [60, 110, 205, 305, 402, 602] {
        assert!(
            matches!(records(&three_levels()[..length]), Err(Error::Truncated { .. })),
            "cut to {length}"
        );
    }
}

#[test]
fn counts_and_depths_that_lie() {
    for (depth, count) in [(0, 14), (1, u16::MAX), (65, 1), (u16::MAX, 1)] {
        let result = records(&file(&[(32, header(depth, 100, count, 1))]));
        assert!(matches!(result, Err(Error::Invalid { .. })), "{depth} deep, {count} records: {result:?}");
    }
}

#[test]
fn nodes_met_twice() {
    let mut file = three_levels();
    let inner = checked(&[b"BTIN", &[0, 5], b"bbbb", &pointer(400, 1, None), &pointer(400, 1, None)]);
    file[200..200 + inner.len()].copy_from_slice(&inner);
    assert!(matches!(records(&file), Err(Error::Cycle { offset: 400, .. })));
}

#[test]
fn unexpected_record_type() {
    let source = Memory(&three_levels()).0.to_vec();
    let source = Memory(&source);
    let mut pages = Pages::new(&source, Policy::LOCAL);
    pages.fetch().unwrap();
    let mut walk = Walk::new(32, SIZES, &[6, 8]);
    assert!(matches!(walk.resume(&pages, &mut |_| Ok(())), Err(Error::Invalid { .. })));
}
