//! Uncompressed chunks are read in parts: every element once, and without lists whose length a file could inflate.

#![allow(missing_docs, clippy::unwrap_used)] // a test's name says what it does; it fails by panicking

use hyperslab_core::{
    Array, AxisIndices, AxisSelection, ChunkGrid, Element, Error, Fill, Manifest, Notes, Orthogonal,
    PlanError, ReadPlan, Role, Segment, SegmentAxis, VirtualMappings,
};

/// Elements so wide that a part has four of them.
const WIDE: u64 = 1 << 20;

/// An array of one axis whose segment starts at `origin`, and at `before` in a grid of `chunk`.
fn array(nbytes: u64, length: u64, origin: u64, before: u64, chunk: u64) -> Array {
    let element = Element::Opaque { nbytes, tag: String::new() };
    let segment = Segment {
        axes: SegmentAxis::of_box(&[origin], &[length], &[before]).unwrap(),
        grid: ChunkGrid::new(vec![before + length], vec![chunk]).unwrap(),
        codecs: Vec::new(),
        element: element.clone(),
        plain_edge_chunks: false,
        manifest: Manifest::empty().into(),
        fill: Fill::Zero,
    };
    Array {
        shape: Some(vec![origin + length]),
        max_shape: vec![None],
        element,
        fill: Fill::Zero,
        segments: Ok(vec![segment]),
        is_chunked: true,
        notes: Notes::default(),
        role: Role::default(),
        virtual_mappings: VirtualMappings::NONE,
        dimensions: None,
        attributes: Vec::new(),
    }
}

fn asked(start: u64, stride: u64, count: u64, block: u64) -> Orthogonal {
    let axis = AxisSelection::new(0, start, stride, count, block).unwrap();
    Orthogonal::new(vec![AxisIndices::Regular(axis)]).unwrap()
}

/// For every position of the output: the position in the source that its element comes from.
fn sources(plan: &ReadPlan, chunk: u64) -> Vec<u64> {
    let mut found: Vec<Option<u64>> = vec![None; usize::try_from(plan.element_count()).unwrap()];
    for read in plan.reads() {
        assert!((1..=4).contains(&read.placement.element_count()));
        let _ = read.placement.rows(|row| {
            for k in 0..row.count {
                let position = &mut found[usize::try_from(row.output_offset + k).unwrap()];
                let source = read.chunk * chunk + row.chunk_offset + k * row.step;
                assert_eq!(position.replace(source), None, "an element is read once");
            }
            Ok::<(), ()>(())
        });
    }
    found.into_iter().map(|source| source.unwrap()).collect()
}

#[test]
fn parts_hold_every_element_once() {
    for (length, chunk) in [(1, 1), (9, 4), (23, 5), (23, 9), (30, 12), (17, 40)] {
        for (origin, before) in [(0, 0), (3, 0), (0, 7), (5, 2)] {
            let array = array(WIDE, length, origin, before, chunk);
            for (start, stride, block) in [(0, 1, 1), (2, 1, 1), (1, 2, 1), (0, 7, 6), (0, 3, 1)] {
                for stop in origin + start + block..=origin + length {
                    let count = (stop - origin - start - block) / stride + 1;
                    let plan = ReadPlan::new(&array, &asked(origin + start, stride, count, block)).unwrap();
                    let index = |position: u64| start + position / block * stride + position % block;
                    let wanted: Vec<u64> =
                        (0..count * block).map(|position| before + index(position)).collect();
                    assert_eq!(sources(&plan, chunk), wanted);
                }
            }
        }
    }
}

#[test]
fn an_array_of_any_size_makes_a_small_plan() {
    for chunk in [1, 1 << 20, (1 << 62) - 1] {
        let length = (1 << 62) - 1;
        let array = array(1, length, 0, 0, chunk);
        let plan = ReadPlan::new(&array, &asked(0, 1, length, 1)).unwrap();
        let last = plan.read(plan.read_count() - 1).unwrap();
        assert_eq!(last.chunk, (length - 1) / chunk);
        assert!(plan.read_count() >= length >> 22);
    }
}

#[test]
fn pieces_that_no_memory_holds_are_refused() {
    let length = (1 << 62) - 1;
    for (chunk, stride, block) in [(1, 2, 1), (length, 2, 1), (length, 3, 2), (8, 3, 2)] {
        let found = ReadPlan::new(&array(1, length, 0, 0, chunk), &asked(0, stride, length / 4, block));
        assert!(matches!(found, Err(PlanError::Selection(Error::TooScattered { .. }))), "{found:?}");
    }
}
