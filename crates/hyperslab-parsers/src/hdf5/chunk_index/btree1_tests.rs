//! Hand-made B-trees of version 1.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use super::super::testing::{Image, SIZES, UNDEFINED, bytes, layout, rows, walk, words};
use crate::error::Error;
use crate::hdf5::LazyIndex;
use crate::hdf5::layout::{ChunkedLayout, IndexKind};
use crate::pages::{Memory, Pages, Policy};

/// Length, mask, offset on the one axis, and the chunk's or node's address.
type Entry = (u32, u32, u64, u64);
/// Index, offset, length and mask of a chunk.
type Row = (u64, u64, u64, u32);

fn node(level: u8, entries: &[Entry]) -> Vec<u8> {
    let behind = entries.last().map_or(0, |&(_, _, offset, _)| offset + 10);
    node_before(behind, level, entries)
}

/// A node whose last key is at an offset, and behind the first element there.
fn node_before(behind: u64, level: u8, entries: &[Entry]) -> Vec<u8> {
    let count = u16::try_from(entries.len()).unwrap();
    let entries = entries.iter().flat_map(|&(length, mask, offset, address)| {
        bytes(&[&length.to_le_bytes(), &mask.to_le_bytes(), &words([offset, 0, address])])
    });
    let start = bytes(&[b"TREE", &[1, level], &count.to_le_bytes(), &words([UNDEFINED; 2])]);
    start.into_iter().chain(entries).chain(words([0, behind, 1])).collect()
}

fn tree() -> ChunkedLayout {
    layout(IndexKind::BTree1 { address: 64 }, &[10], true)
}

/// Root at 64, leaves at 256 and 512.
fn two_levels(leaves: [&[Entry]; 2]) -> Vec<u8> {
    with_leaves_at([256, 512], leaves)
}

/// Root at 64, leaves at these offsets.
fn with_leaves_at(offsets: [u32; 2], leaves: [&[Entry]; 2]) -> Vec<u8> {
    let [first, second] = offsets.map(u64::from);
    let mut image = Image::new(2 * usize::try_from(second).unwrap());
    image.put(64, &node_before(60, 1, &[(0, 0, 0, first), (0, 0, 20, second)]));
    image.put(usize::try_from(first).unwrap(), &node(0, leaves[0]));
    image.put(usize::try_from(second).unwrap(), &node(0, leaves[1]));
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

/// libhdf5 looks for a chunk between two keys in each node, and does not find a chunk that lies elsewhere.
#[test]
fn chunks_are_where_libraries_look_for_them() {
    let leaves = |first: u64, second: u64| {
        let mut image = Image::new(1024);
        image.put(64, &node_before(60, 1, &[(0, 0, 0, 256), (0, 0, 20, 512)]));
        image.put(256, &node_before(first, 0, &[(5, 0, 0, 800), (6, 0, 10, 810)]));
        image.put(512, &node_before(second, 0, &[(7, 0, 30, 820)]));
        image
    };
    for good in [10, 20, 30, u64::MAX / 10 * 10] {
        assert!(walk(&leaves(good, 40).0, &tree(), &[35], &[None]).is_ok(), "{good}");
    }
    for early in [0, 5, 15] {
        assert!(matches!(refusal(&leaves(early, 40).0), Error::Invalid { .. }), "{early}");
        assert!(matches!(refusal(&leaves(20, early).0), Error::Invalid { .. }), "{early}");
    }
    for (first, second, behind) in
        [(0, 40, 60), (0, 20, 30), (0, 10, 60), (10, 20, 60), (20, 20, 60), (0, 5, 60)]
    {
        let mut image = leaves(20, 40);
        image.put(64, &node_before(behind, 1, &[(0, 0, first, 256), (0, 0, second, 512)]));
        let found = walk(&image.0, &tree(), &[35], &[None]);
        assert_eq!(found.is_ok(), (first, second, behind) == (0, 20, 30), "{first} {second} {behind}");
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
    for (offset, value) in [(64, b'X'), (68, 0), (69, 2), (256 + 5, 1), (256 + 6, 200)] {
        let mut file = good.clone();
        file[offset] = value;
        refusal(&file);
    }
    for length in [63, 70, 90, 258, 290] {
        assert!(matches!(refusal(&good[..length]), Error::Truncated { .. }), "cut to {length}");
    }
}

/// Looks for chunks in a file. Returns what is found, sorted, and how many bytes were fetched.
fn sought(file: &[u8], shape: &[u64], indices: Option<&[u64]>) -> Result<(Vec<Row>, u64), Error> {
    let max_shape = vec![None; shape.len()];
    let index = LazyIndex { layout: tree(), shape: shape.to_vec(), max_shape, sizes: SIZES };
    let source = Memory(file);
    let policy = Policy { page_nbytes: 16, first_nbytes: 0, last_nbytes: 0, gap_pages: 0 };
    let mut pages = Pages::new(&source, policy);
    let found = match indices {
        None => index.chunks(&mut pages),
        Some(indices) => index.some_chunks(&mut pages, indices),
    };
    let mut found = rows(&found?);
    found.sort_unstable();
    Ok((found, pages.statistics().fetched_nbytes))
}

#[test]
fn few_chunks_without_the_others() {
    // Farther apart than the length of a full node, which is fetched at once.
    let file = with_leaves_at([4096, 8192], [&[(5, 0, 0, 800), (6, 2, 10, 810)], &[(7, 0, 30, 820)]]);
    let (all, every_byte) = sought(&file, &[35], None).unwrap();
    assert_eq!(all, rows(&walk(&file, &tree(), &[35], &[None]).unwrap().0));
    for indices in [vec![0], vec![1], vec![2], vec![3], vec![0, 3], vec![0, 1, 2, 3], vec![]] {
        let (found, nbytes) = sought(&file, &[35], Some(&indices)).unwrap();
        let wanted =
            |rows: &[Row]| rows.iter().copied().filter(|row| indices.contains(&row.0)).collect::<Vec<_>>();
        assert_eq!(wanted(&found), wanted(&all), "{indices:?}");
        assert!(indices.len() > 1 || nbytes < every_byte, "a leaf is left out");
    }
}

#[test]
fn damage_on_the_way_to_few_chunks() {
    let good = two_levels([&[(5, 0, 0, 800)], &[(7, 0, 30, 820)]]);
    for (offset, value) in [(64, b'X'), (68, 0), (256 + 5, 1), (256 + 6, 200)] {
        let mut file = good.clone();
        file[offset] = value;
        assert!(sought(&file, &[35], Some(&[0])).is_err());
        assert_eq!(sought(&file, &[35], Some(&[3])).is_ok(), offset > 256, "behind what is damaged");
    }
}
