//! Compares the geometry with a brute force that visits every element of the selection.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::collections::{BTreeMap, BTreeSet};

use hyperslab_core::{ChunkGrid, Hyperslab, Overlap, Points, Run, Selection};
use proptest::prelude::*;

/// An array's shape, its chunks' shape, and a selection within the array.
#[derive(Clone, Debug)]
struct Case {
    shape: Vec<u64>,
    chunk_shape: Vec<u64>,
    selection: Selection,
}

/// The elements of a selection in order, from the definitions alone.
fn elements(selection: &Selection) -> Vec<Vec<u64>> {
    match selection {
        Selection::Points(points) => points.iter().map(<[u64]>::to_vec).collect(),
        Selection::Hyperslab(hyperslab) => hyperslab.axes().iter().fold(vec![vec![]], |lines, axis| {
            let along: Vec<u64> = (0..axis.count())
                .flat_map(|i| (0..axis.block()).map(move |j| axis.start() + i * axis.stride() + j))
                .collect();
            lines
                .iter()
                .flat_map(|line| along.iter().map(|&index| [line.as_slice(), &[index]].concat()))
                .collect()
        }),
    }
}

/// For each chunk touched, the (chunk offset, buffer offset) of each of its elements, in order.
fn elements_by_chunk(case: &Case) -> BTreeMap<Vec<u64>, Vec<(u64, u64)>> {
    let mut chunks = BTreeMap::<Vec<u64>, Vec<(u64, u64)>>::new();
    for (element, buffer_offset) in elements(&case.selection).iter().zip(0..) {
        let pairs = || element.iter().zip(&case.chunk_shape);
        let chunk_offset = pairs().fold(0, |offset, (index, chunk)| offset * chunk + index % chunk);
        let chunk_index = pairs().map(|(index, chunk)| index / chunk).collect();
        chunks.entry(chunk_index).or_default().push((chunk_offset, buffer_offset));
    }
    chunks
}

/// Joins neighbours whose offsets both advance by one, one element at a time.
fn runs_of(elements: &[(u64, u64)]) -> Vec<Run> {
    let mut runs = Vec::<Run>::new();
    for &(chunk_offset, buffer_offset) in elements {
        match runs.last_mut() {
            Some(run)
                if run.chunk_offset + run.length == chunk_offset
                    && run.buffer_offset + run.length == buffer_offset =>
            {
                run.length += 1;
            }
            _ => runs.push(Run { chunk_offset, buffer_offset, length: 1 }),
        }
    }
    runs
}

/// An axis: array length, chunk length, and a start, stride, count and block that fit. Short chunks, and strides that
/// start and end with the chunk, are likely, so lines often join.
fn axis() -> impl Strategy<Value = (u64, u64, [u64; 4])> {
    (0_u64..4, 1_u64..4, 0_u64..4, 0_u64..4, 0_u64..4, 1_u64..6).prop_map(
        |(start, block, gap, count, rest, chunk)| {
            let stride = block + gap;
            let stop = if count == 0 { start } else { start + (count - 1) * stride + block };
            (stop + rest, chunk, [start, stride, count, block])
        },
    )
}

fn hyperslab_case() -> impl Strategy<Value = Case> {
    prop::collection::vec(axis(), 0..=4).prop_map(|axes| {
        let parameter = |k: usize| axes.iter().map(|axis| axis.2[k]).collect::<Vec<_>>();
        let hyperslab = Hyperslab::new(&parameter(0), &parameter(1), &parameter(2), &parameter(3)).unwrap();
        Case {
            shape: axes.iter().map(|axis| axis.0).collect(),
            chunk_shape: axes.iter().map(|axis| axis.1).collect(),
            selection: hyperslab.into(),
        }
    })
}

fn points_case() -> impl Strategy<Value = Case> {
    let shapes = prop::collection::vec((1_u64..6, 1_u64..4), 1..=3);
    shapes.prop_flat_map(|axes| {
        let point: Vec<_> = axes.iter().map(|&(length, _)| 0..length).collect();
        prop::collection::vec(point, 0..40).prop_map(move |points| Case {
            shape: axes.iter().map(|axis| axis.0).collect(),
            chunk_shape: axes.iter().map(|axis| axis.1).collect(),
            selection: Points::new(axes.len(), points.concat()).unwrap().into(),
        })
    })
}

/// A touch has the numbers of an overlap. Runs of blocks are runs, sometimes cut.
fn check_touches(grid: &ChunkGrid, case: &Case, overlaps: &[Overlap]) {
    let mut overlaps = overlaps.iter();
    let visited: Result<(), hyperslab_core::Error> = grid.each_touch(&case.selection, |touch| {
        let overlap = overlaps.next().unwrap();
        assert_eq!(touch.chunk_index, overlap.chunk_index());
        assert_eq!(touch.linear, grid.linear_index(overlap.chunk_index())?);
        assert_eq!(touch.element_count, overlap.element_count());
        assert_eq!(touch.valid_element_count, overlap.valid_element_count());
        assert_eq!(touch.run_count, overlap.run_count());
        let blocks: Vec<_> = overlap.block_runs().collect();
        assert_eq!(touch.block_run_count, blocks.len() as u64);
        let elements = |run: &hyperslab_core::Run| {
            let (chunk, buffer) = (run.chunk_offset, run.buffer_offset);
            (0..run.length).map(move |position| (chunk + position, buffer + position)).collect::<Vec<_>>()
        };
        assert!(blocks.iter().flat_map(elements).eq(overlap.runs().flat_map(|run| elements(&run))));
        Ok(())
    });
    visited.unwrap();
    assert!(overlaps.next().is_none());
}

fn check(case: &Case) {
    let grid = ChunkGrid::new(case.shape.clone(), case.chunk_shape.clone()).unwrap();
    let expected = elements_by_chunk(case);
    let overlaps: Vec<_> = grid.overlaps(&case.selection).unwrap().collect();
    let touched: Vec<_> = overlaps.iter().map(|overlap| overlap.chunk_index().to_vec()).collect();
    assert_eq!(touched, expected.keys().cloned().collect::<Vec<_>>());

    for (overlap, elements) in overlaps.iter().zip(expected.values()) {
        let valid: u64 = grid.chunk_box(overlap.chunk_index()).unwrap().valid_shape.iter().product();
        let distinct = elements.iter().map(|element| element.0).collect::<BTreeSet<_>>().len() as u64;
        assert_eq!(overlap.element_count(), elements.len() as u64);
        assert_eq!(overlap.fully_covers(), distinct == valid);
        assert_eq!(overlap.runs().collect::<Vec<_>>(), runs_of(elements));
        assert_eq!(overlap.run_count(), runs_of(elements).len() as u64);
        let alone = grid.overlap(overlap.chunk_index(), &case.selection).unwrap();
        assert_eq!(alone.runs().collect::<Vec<_>>(), runs_of(elements));
    }
    check_untouched(&grid, case, &expected);
    check_touches(&grid, case, &overlaps);

    let totals = grid.totals(&case.selection).unwrap();
    assert_eq!(totals.chunk_count, expected.len() as u64);
    assert_eq!(totals.run_count, overlaps.iter().map(|overlap| overlap.runs().count() as u64).sum::<u64>());
    assert_eq!(totals.element_count, case.selection.len());
    assert_eq!(totals.decoded_element_count, totals.chunk_count * grid.chunk_element_count());
    assert_eq!(totals.valid_element_count, overlaps.iter().map(Overlap::valid_element_count).sum::<u64>());
}

fn check_untouched(grid: &ChunkGrid, case: &Case, touched: &BTreeMap<Vec<u64>, Vec<(u64, u64)>>) {
    for linear in 0..grid.chunk_count() {
        let chunk_index = grid.chunk_index(linear).unwrap();
        assert_eq!(grid.linear_index(&chunk_index).unwrap(), linear);
        if !touched.contains_key(&chunk_index) {
            let overlap = grid.overlap(&chunk_index, &case.selection).unwrap();
            assert_eq!((overlap.element_count(), overlap.run_count(), overlap.runs().count()), (0, 0, 0));
            assert!(!overlap.fully_covers());
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn hyperslabs_match_the_brute_force(case in hyperslab_case()) {
        check(&case);
    }

    #[test]
    fn points_match_the_brute_force(case in points_case()) {
        check(&case);
    }
}

/// Both lines have a gap inside, but the next line begins where one ends, in both buffers.
#[test]
fn lines_join_across_a_gap() {
    let grid = ChunkGrid::new(vec![2, 3], vec![2, 3]).unwrap();
    let ends = Hyperslab::new(&[0, 0], &[1, 2], &[2, 2], &[1, 1]).unwrap().into();
    let overlap = grid.overlap(&[0, 0], &ends).unwrap();
    assert_eq!(
        overlap.runs().collect::<Vec<_>>(),
        [(0, 0, 1), (2, 1, 2), (5, 3, 1)].map(|(chunk_offset, buffer_offset, length)| Run {
            chunk_offset,
            buffer_offset,
            length
        })
    );
    assert_eq!(overlap.run_count(), 3);
}

/// A petabyte in 2^40 chunks: the closed forms answer without visiting them.
#[test]
fn totals_do_not_visit_chunks() {
    let grid = ChunkGrid::new(vec![1 << 30, 1 << 30], vec![1 << 10, 1 << 10]).unwrap();
    let totals = grid.totals(&Hyperslab::all(grid.shape()).unwrap().into()).unwrap();
    assert_eq!((totals.chunk_count, totals.run_count, totals.element_count), (1 << 40, 1 << 50, 1 << 60));
    assert_eq!(totals.read_amplification(), Some(1.0));
}
