//! Files with versions. Patterns of names select parts; chunks are found with the tree and later; virtual arrays of
//! chunks are resolved as one grid and mapping by mapping; mappings are read as numbers and one by one, and written
//! again.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    Array, ChunkGrid, Link, Manifest, Orthogonal, PlanError, ReadPlan, Tree, VirtualMapping, VirtualMappings,
    chunk_slots, resolve,
};
use hyperslab_engine::{ChunkCache, Stores};
use hyperslab_parsers::{Memory, Pages, Policy, hdf5};

use crate::memory;
use crate::parse::allowance;
use crate::read;
use crate::store::Bytes;

/// What readers ask for: the table of versions, one version with all its chunks, everything.
const PATTERNS: [&[&str]; 3] = [
    &["_version_data/versions/*"],
    &["_version_data/versions/v1/**", "_version_data/**/raw_data"],
    &["_version_data/**"],
];
const MOST_CHUNKS: u64 = 1 << 16;
const MOST_MAPPINGS: usize = 1 << 10;
const MOST_OUTPUT_NBYTES: u64 = 1 << 20;

/// A file.
pub fn versions(data: &[u8]) {
    let source = Memory(data);
    memory::bounded(allowance(data.len()), || {
        drop(hdf5::filters(&mut Pages::new(&source, Policy::LOCAL), "_version_data/x/raw_data"));
        let trees = PATTERNS.map(|patterns| {
            let patterns: Vec<String> = patterns.iter().map(|&pattern| pattern.to_owned()).collect();
            hdf5::parse_part(&mut Pages::new(&source, Policy::LOCAL), &patterns).ok()
        });
        let [_, _, Some(tree)] = trees else { return };
        found_later(&tree, &source);
        let others = tree.other_files.iter().map(|_| "no such file".to_owned()).collect();
        let stores = Stores::new(Some(Arc::new(Bytes(data.to_vec()))), Path::new("/dev/null"), others);
        let mut known = HashMap::new();
        let mut find = |file: &str, path: &str| {
            let found =
                known.entry(path.to_owned()).or_insert_with(|| plain_array(&tree, path).map(Arc::new));
            Ok::<_, PlanError>(if file == "." { found.clone() } else { None })
        };
        let small = |array: &&Array| (1..=MOST_MAPPINGS).contains(&array.virtual_mappings.len());
        for array in tree.arrays.iter().filter(small) {
            let Ok(resolved) = resolve(array, &mut find) else { continue };
            if resolved.is_chunked && !array.is_chunked {
                // With its first chunk shown twice, it is no longer a grid: every mapping is a part of its own.
                let mut mappings = each(&array.virtual_mappings);
                mappings.push(mappings[0].clone());
                let parts = Array { virtual_mappings: VirtualMappings::Each(mappings), ..array.clone() };
                compare(
                    &resolved,
                    &resolve(&parts, &mut find).expect("what is one grid is also parts"),
                    &stores,
                );
                written_again(array, &resolved);
            }
            read::read_arrays(&[resolved], &stores, data);
        }
    });
}

/// Each array's index, read separately, leads to the same chunks as the tree.
fn found_later(tree: &Tree, source: &Memory<'_>) {
    let patterns: Vec<String> = PATTERNS[2].iter().map(|&pattern| pattern.to_owned()).collect();
    let mut pages = Pages::new(source, Policy::LOCAL);
    let (again, indexes) = hdf5::parse_without_chunks(&mut pages, &patterns).expect("what was parsed before");
    assert_eq!(tree.arrays.len(), again.arrays.len());
    for (array, index) in tree.arrays.iter().zip(&indexes) {
        let Some(index) = index else { continue };
        let _ = index.some_chunks(&mut pages, &[0, 1, 5]);
        let (Ok([segment]), Ok(found)) = (array.segments.as_deref(), index.chunks(&mut pages)) else {
            continue;
        };
        let found = Manifest::of_chunks(found);
        assert!(segment.manifest.stored().eq(found.stored()), "chunks with the tree, and later");
    }
}

fn each(mappings: &VirtualMappings) -> Vec<VirtualMapping> {
    mappings.iter().map(std::borrow::Cow::into_owned).collect()
}

/// The array at a path, unless it is virtual itself.
fn plain_array(tree: &Tree, path: &str) -> Option<Array> {
    let (mut group, mut array) = (Some(0), None);
    for name in path.split('/').filter(|name| !matches!(*name, "" | ".")) {
        let links = &tree.groups.get(group?)?.links;
        (group, array) = match links.iter().find(|(link, _)| link == name)?.1 {
            Link::Group(number) => (Some(number), None),
            Link::Array(number) => (None, Some(number)),
            _ => return None,
        };
    }
    tree.arrays.get(array?).filter(|array| array.virtual_mappings.is_empty()).cloned()
}

/// Both ways give the same elements, or neither does.
fn compare(grid: &Array, parts: &Array, stores: &Stores) {
    assert_eq!(grid.shape, parts.shape);
    let Some(shape) = &grid.shape else { return };
    let Ok(all) = Orthogonal::all(shape) else { return };
    let plans = [ReadPlan::new(grid, &all), ReadPlan::new(parts, &all)];
    let [Ok(one), Ok(other)] = plans else { return };
    if one.element_count().saturating_mul(one.element_nbytes()) <= MOST_OUTPUT_NBYTES {
        let cache = ChunkCache::new(0);
        let whole = read::output(grid, &one, stores, &cache, 1, 0xaa);
        assert!(whole == read::output(parts, &other, stores, &cache, 1, 0x55), "in one grid, and in parts");
    }
}

fn written_again(array: &Array, resolved: &Array) {
    let (Some(shape), Ok(segments)) = (&array.shape, &resolved.segments) else { return };
    let grid = ChunkGrid::new(shape.clone(), segments[0].grid.chunk_shape().to_vec()).expect("its grid");
    let slots = chunk_slots(&array.virtual_mappings, &grid).expect("its chunks");
    same_mappings(array.virtual_mappings.one_source().expect("one stack").1, &grid, &slots);
}

/// Mappings written for slots lead back to these slots.
fn same_mappings(path: &str, grid: &ChunkGrid, slots: &[(u64, u64)]) {
    assert!(slots.is_sorted_by(|one, other| one.0 < other.0));
    assert!(slots.last().is_none_or(|last| last.0 < grid.chunk_count()));
    if grid.chunk_count() > MOST_CHUNKS {
        return;
    }
    let mut all = vec![-1; usize::try_from(grid.chunk_count()).unwrap()];
    for &(index, slot) in slots {
        let Ok(slot) = i64::try_from(slot) else { return };
        all[usize::try_from(index).unwrap()] = slot;
    }
    if let Some(block) = hdf5::mappings_block(path, grid, &all) {
        let read = hdf5::read_mappings_block(&block).expect("what was just written");
        read.iter().for_each(|read| assert_eq!(chunk_slots(read, grid).as_deref(), Some(slots)));
    }
}

/// A block of mappings, after a line with the shape and the chunk shape of their grid.
pub fn mappings(data: &[u8]) {
    let Some(end) = data.iter().position(|&byte| byte == b'\n') else { return };
    let Ok(line) = std::str::from_utf8(&data[..end]) else { return };
    let lengths = |word: &str| word.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>();
    let Some((Ok(shape), Ok(chunk_shape))) =
        line.split_once(' ').map(|(one, other)| (lengths(one), lengths(other)))
    else {
        return;
    };
    let Ok(grid) = ChunkGrid::new(shape, chunk_shape) else { return };
    memory::bounded(allowance(data.len()), || {
        let Ok([mappings, one_by_one]) = hdf5::read_mappings_block(&data[end + 1..]) else { return };
        assert_eq!(each(&mappings), each(&one_by_one));
        let slots = chunk_slots(&mappings, &grid);
        assert_eq!(slots, chunk_slots(&one_by_one, &grid));
        if let (Some(slots), Some((_, path))) = (slots, mappings.one_source()) {
            same_mappings(path, &grid, &slots);
        }
    });
}
