//! Files of versions: the parts that patterns of names lead to; virtual arrays of chunks, resolved in one grid and mapping
//! by mapping; mappings read, and written again.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{Array, ChunkGrid, Link, Orthogonal, PlanError, ReadPlan, Tree, chunk_places, resolve};
use hyperslab_engine::{ChunkCache, Stores};
use hyperslab_parsers::{Memory, Pages, Policy, hdf5};

use crate::memory;
use crate::parse::allowance;
use crate::read;
use crate::store::Bytes;

/// What readers ask for: the table of versions, one version with all chunks, everything.
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
        let others = tree.other_files.iter().map(|_| "no such file".to_owned()).collect();
        let stores = Stores::new(Some(Arc::new(Bytes(data.to_vec()))), Path::new("/dev/null"), others);
        let mut known = HashMap::new();
        let mut find = |file: &str, path: &str| {
            let found = known.entry(path.to_owned()).or_insert_with(|| plain_array(&tree, path).map(Arc::new));
            Ok::<_, PlanError>(if file == "." { found.clone() } else { None })
        };
        let small = |array: &&Array| (1..=MOST_MAPPINGS).contains(&array.virtual_mappings.len());
        for array in tree.arrays.iter().filter(small) {
            let Ok(resolved) = resolve(array, &mut find) else { continue };
            if resolved.is_chunked && !array.is_chunked {
                // Shown once more, the first chunk makes it no grid any more: every mapping is a part of its own.
                let mut parts = array.clone();
                parts.virtual_mappings.push(array.virtual_mappings[0].clone());
                compare(&resolved, &resolve(&parts, &mut find).expect("what is one grid is also parts"), &stores);
                written_again(array, &resolved);
            }
            read::read_tree(&Tree { arrays: vec![resolved], ..Tree::default() }, &stores, data);
        }
    });
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

/// Both ways give the same elements, or none.
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
    let places = chunk_places(&array.virtual_mappings, &grid).expect("its chunks");
    same_mappings(&array.virtual_mappings[0].path, &grid, &places);
}

/// What is written for places leads to them.
fn same_mappings(path: &str, grid: &ChunkGrid, places: &[(u64, u64)]) {
    assert!(places.is_sorted_by(|one, other| one.0 < other.0));
    assert!(places.last().is_none_or(|last| last.0 < grid.chunk_count()));
    if grid.chunk_count() > MOST_CHUNKS {
        return;
    }
    let mut all = vec![-1; usize::try_from(grid.chunk_count()).unwrap()];
    for &(index, place) in places {
        let Ok(place) = i64::try_from(place) else { return };
        all[usize::try_from(index).unwrap()] = place;
    }
    if let Some(block) = hdf5::mappings_block(path, grid, &all) {
        let mappings = hdf5::read_mappings_block(&block).expect("what was just written");
        assert_eq!(chunk_places(&mappings, grid).as_deref(), Some(places));
    }
}

/// A block of mappings, behind a line with the shape and the chunk shape of their grid.
pub fn mappings(data: &[u8]) {
    let Some(end) = data.iter().position(|&byte| byte == b'\n') else { return };
    let Ok(line) = std::str::from_utf8(&data[..end]) else { return };
    let lengths = |word: &str| word.split(',').map(str::parse).collect::<Result<Vec<u64>, _>>();
    let Some((Ok(shape), Ok(chunk_shape))) = line.split_once(' ').map(|(one, other)| (lengths(one), lengths(other)))
    else {
        return;
    };
    let Ok(grid) = ChunkGrid::new(shape, chunk_shape) else { return };
    memory::bounded(allowance(data.len()), || {
        let Ok(mappings) = hdf5::read_mappings_block(&data[end + 1..]) else { return };
        let Some(places) = chunk_places(&mappings, &grid) else { return };
        if let Some(first) = mappings.first() {
            same_mappings(&first.path, &grid, &places);
        }
    });
}
