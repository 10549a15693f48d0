//! The only chunk, and chunks in a row.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use super::super::testing::{Image, layout, rows, walk};
use crate::error::Error;
use crate::hdf5::layout::IndexKind;

#[test]
fn the_only_chunk() {
    let file = Image::new(100).0;
    let single =
        |address, filtered| layout(IndexKind::Single { address, filtered }, &[4], filtered.is_some());
    let found = |address, filtered, shape| walk(&file, &single(address, filtered), &[shape], &[Some(4)]);
    assert_eq!(rows(&found(50, None, 4).unwrap().0), [(0, 50, 4, 0)]);
    assert_eq!(rows(&found(50, Some((7, 1)), 4).unwrap().0), [(0, 50, 7, 1)]);
    assert!(found(50, None, 0).unwrap().0.is_empty());
    assert_eq!(rows(&found(97, None, 4).unwrap().0), [(0, 97, 4, 0)], "past the end: reading it says so");
}

#[test]
fn chunks_in_a_row_follow_the_maximum_shape() {
    let implicit = layout(IndexKind::Implicit { address: 40 }, &[1, 2], false);
    let (found, _) = walk(&Image::new(54).0, &implicit, &[2, 3], &[Some(3), Some(6)]).unwrap();
    assert_eq!(rows(&found), [(0, 40, 2, 0), (1, 42, 2, 0), (2, 46, 2, 0), (3, 48, 2, 0)]);
    assert!(matches!(
        walk(&Image::new(49).0, &implicit, &[2, 3], &[Some(3), Some(6)]),
        Err(Error::Truncated { .. })
    ));
    let huge = [1 << 30, 1 << 31];
    let error = walk(&Image::new(999).0, &implicit, &huge, &huge.map(Some)).unwrap_err();
    assert!(matches!(error, Error::Truncated { .. }), "a grid that only the file's length bounds");
}

#[test]
fn nothing_written() {
    let unallocated = layout(IndexKind::Unallocated, &[4], false);
    assert_eq!(walk(&[0; 20], &unallocated, &[1 << 40], &[None]), Ok((Vec::new(), 1)));
}
