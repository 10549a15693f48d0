//! Refusals and their messages.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use hyperslab_core::{ChunkGrid, Error, Hyperslab, MAX_ELEMENT_COUNT, Points};

fn message<T: std::fmt::Debug>(refused: Result<T, Error>) -> String {
    refused.unwrap_err().to_string()
}

#[test]
fn hyperslabs_must_be_consistent() {
    let one_axis = |stride, count, block| Hyperslab::new(&[0], &[stride], &[count], &[block]);
    assert!(one_axis(2, 1, 3).is_ok());
    assert!(one_axis(2, 0, 3).is_ok());
    assert_eq!(
        message(one_axis(2, 2, 3)),
        "blocks overlap on axis 0: stride 2 is less than block 3; use at least 3"
    );
    assert_eq!(message(one_axis(1, 1, 0)), "block is 0 on axis 0: it must be at least 1");
    assert_eq!(message(one_axis(0, 1, 1)), "stride is 0 on axis 0: it must be at least 1");
    assert_eq!(
        message(Hyperslab::new(&[0], &[1], &[1, 1], &[1])),
        "count has 2 axes but start has 1: give one entry per axis in both"
    );
}

#[test]
fn sizes_must_fit() {
    for (start, stride, count, block) in
        [(u64::MAX, 1, 1, 1), (0, u64::MAX, 3, 1), (0, 1, u64::MAX, 1), (0, 1, 1, u64::MAX)]
    {
        let refused = Hyperslab::new(&[start], &[stride], &[count], &[block]);
        assert_eq!(refused, Err(Error::TooLarge { what: "the last index of the hyperslab" }));
    }
    assert!(Hyperslab::all(&[MAX_ELEMENT_COUNT]).is_ok());
    // The empty axis must not hide the overflow of the other two.
    assert!(Hyperslab::all(&[1 << 40, 1 << 40, 0]).is_err());
    assert!(ChunkGrid::new(vec![1 << 40, 1 << 40, 0], vec![1, 1, 1]).is_err());
    assert!(ChunkGrid::new(vec![MAX_ELEMENT_COUNT], vec![2]).is_err());
    assert!(ChunkGrid::new(vec![1], vec![u64::MAX]).is_err());
}

#[test]
fn selections_must_lie_within_the_array() {
    let box_of_3 = Hyperslab::new(&[0, 8], &[1, 1], &[3, 3], &[1, 1]).unwrap();
    assert!(box_of_3.check_within(&[3, 11]).is_ok());
    assert_eq!(
        message(box_of_3.check_within(&[3, 10])),
        "axis 1: index 10 is outside an array of length 10; use one below 10"
    );
    let points = Points::new(2, vec![0, 0, 3, 1]).unwrap();
    assert_eq!(points.check_within(&[3, 2]), Err(Error::OutOfBounds { axis: 0, index: 3, length: 3 }));
    assert!(points.check_within(&[4]).is_err());
}

#[test]
fn an_empty_selection_may_stand_at_the_end_but_not_beyond() {
    let empty = Hyperslab::new(&[5], &[1], &[0], &[1]).unwrap();
    assert!(empty.check_within(&[5]).is_ok());
    assert_eq!(empty.check_within(&[4]), Err(Error::OutOfBounds { axis: 0, index: 5, length: 4 }));
    let first = Hyperslab::new(&[0], &[1], &[0], &[1]).unwrap();
    assert!(first.check_within(&[0]).is_ok());
}

#[test]
fn grids_have_no_other_chunks() {
    let grid = ChunkGrid::new(vec![10, 10], vec![4, 5]).unwrap();
    assert_eq!(
        message(grid.linear_index(&[2, 2])),
        "axis 1: chunk index 2 is outside a grid of 2 chunks; use an index below 2"
    );
    assert_eq!(
        message(grid.chunk_index(6)),
        "linear chunk index 6 is outside a grid of 6 chunks; use an index below 6"
    );
    assert_eq!(
        message(ChunkGrid::new(vec![1, 1], vec![1, 0])),
        "chunk shape is 0 on axis 1: it must be at least 1"
    );
    assert_eq!(grid.chunk_box(&[2, 1]).unwrap().valid_shape, [2, 5]);
}

#[test]
fn points_must_be_whole() {
    assert_eq!(Points::new(2, vec![0, 1, 2]), Err(Error::RaggedPoints { length: 3, ndim: 2 }));
    assert_eq!(Points::new(0, vec![]), Err(Error::PointsWithoutAxes));
    assert_eq!(Points::new(1, vec![u64::MAX]), Err(Error::TooLarge { what: "a coordinate" }));
}
