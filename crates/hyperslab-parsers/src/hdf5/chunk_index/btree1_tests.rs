//! Hand-made B-trees of version 1.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use super::super::testing::{Image, UNDEFINED, bytes, layout, rows, walk, words};
use crate::error::Error;
use crate::hdf5::layout::{ChunkedLayout, IndexKind};

/// Length, mask, offset on the one axis, and the chunk's or node's address.
type Entry = (u32, u32, u64, u64);

fn node(level: u8, entries: &[Entry]) -> Vec<u8> {
    let count = u16::try_from(entries.len()).unwrap();
    let entries = entries.iter().flat_map(|&(length, mask, offset, address)| {
        bytes(&[&length.to_le_bytes(), &mask.to_le_bytes(), &words([offset, 0, address])])
    });
    let start = bytes(&[b"TREE", &[1, level], &count.to_le_bytes(), &words([UNDEFINED; 2])]);
    start.into_iter().chain(entries).collect()
}

fn tree() -> ChunkedLayout {
    layout(IndexKind::BTree1 { address: 64 }, &[10], true)
}

/// Root at 64, leaves at 256 and 512.
fn two_levels(leaves: [&[Entry]; 2]) -> Vec<u8> {
    let mut image = Image::new(1024);
    image.put(64, &node(1, &[(0, 0, 0, 256), (0, 0, 20, 512)]));
    image.put(256, &node(0, leaves[0]));
    image.put(512, &node(0, leaves[1]));
    image.0
}

fn refusal(file: &[u8]) -> Error {
    walk(file, &tree(), &[35], &[None]).unwrap_err()
}

#[test]
fn two_levels_in_few_rounds() {
    let file = two_levels([&[(5, 0, 0, 800), (6, 2, 10, 810)], &[(7, 0, 30, 820)]]);
    let (found, rounds) = walk(&file, &tree(), &[35], &[None]).unwrap();
    assert_eq!(rows(&found), [(0, 800, 5, 0), (1, 810, 6, 2), (3, 820, 7, 0)]);
    assert!(rounds <= 3, "{rounds} rounds");
}

#[test]
fn left_over_and_unwritten_chunks_are_passed_over() {
    let file = two_levels([&[(5, 0, 0, 800), (6, 0, 10, UNDEFINED)], &[(7, 0, 40, 820), (7, 0, 50, 9999)]]);
    let (found, _) = walk(&file, &tree(), &[35], &[None]).unwrap();
    assert_eq!(rows(&found), [(0, 800, 5, 0)]);
}

#[test]
fn chunks_lie_where_chunks_can() {
    assert!(matches!(refusal(&two_levels([&[(5, 0, 5, 800)], &[]])), Error::Invalid { .. }));
    for past_the_end in [1020, u64::MAX - 2] {
        let (found, _) =
            walk(&two_levels([&[(5, 0, 0, past_the_end)], &[]]), &tree(), &[35], &[None]).unwrap();
        assert_eq!(rows(&found), [(0, past_the_end, 5, 0)], "damaged by itself");
    }
}

#[test]
fn nodes_met_twice() {
    let mut image = Image::new(1024);
    image.put(64, &node(1, &[(0, 0, 0, 256), (0, 0, 20, 256)]));
    image.put(256, &node(0, &[]));
    assert_eq!(refusal(&image.0), Error::Cycle { what: "a B-tree (version 1) node of chunks", offset: 256 });
    image.put(64, &node(1, &[(0, 0, 0, 64)]));
    assert!(matches!(refusal(&image.0), Error::Invalid { .. }), "a child of its own level");
}

#[test]
fn damaged_nodes() {
    let good = two_levels([&[(5, 0, 0, 800)], &[]]);
    for (place, value) in [(64, b'X'), (68, 0), (69, 2), (256 + 5, 1), (256 + 6, 200)] {
        let mut file = good.clone();
        file[place] = value;
        refusal(&file);
    }
    for length in [63, 70, 90, 258, 290] {
        assert!(matches!(refusal(&good[..length]), Error::Truncated { .. }), "cut to {length}");
    }
}
