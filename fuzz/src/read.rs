//! A whole file: parsed, planned, read. Threads, the cache and the selection may not change what is read.

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{Array, AxisIndices, AxisSelection, CoalescePolicy, Orthogonal, ReadPlan, Tree};
use hyperslab_engine::{ChunkCache, Execution, Stores, execute};
use hyperslab_parsers::{Memory, Pages, Policy, fits, hdf4, hdf5, netcdf3};

use crate::memory;
use crate::parse::{Parser, allowance};
use crate::store::Bytes;

/// Bytes of all outputs of an input, and decoded bytes of one: inputs stay quick.
const MOST_OUTPUT_NBYTES: u64 = 2 << 20;
const MOST_DECODED_NBYTES: u64 = 8 << 20;
const MOST_READS: u64 = 4096;
const MOST_ARRAYS: usize = 64;
const CACHE_NBYTES: usize = 1 << 20;

/// The target.
pub fn read(data: &[u8]) {
    let parser: Parser = match data {
        [b'C', b'D', b'F', ..] => netcdf3::parse,
        [b'S', b'I', b'M', b'P', ..] => fits::parse,
        [0x0e, 0x03, 0x13, 0x01, ..] => hdf4::parse,
        _ => hdf5::parse,
    };
    let source = Memory(data);
    memory::bounded(allowance(data.len()), || {
        let Ok(tree) = parser(&mut Pages::new(&source, Policy::LOCAL)) else { return };
        // Other files are names that an input made up: none of them is opened.
        let others = tree.other_files.iter().map(|_| "no such file".to_owned()).collect();
        let stores = Stores::new(Some(Arc::new(Bytes(data.to_vec()))), Path::new("/dev/null"), others);
        read_tree(&tree, &stores, data);
    });
}

/// Every array of a tree that is small enough.
pub fn read_tree(tree: &Tree, stores: &Stores, data: &[u8]) {
    let mut left = MOST_OUTPUT_NBYTES;
    for array in tree.arrays.iter().take(MOST_ARRAYS) {
        let Some(shape) = &array.shape else { continue };
        let Ok(all) = Orthogonal::all(shape) else { continue };
        let Ok(plan) = ReadPlan::new(array, &all) else { continue };
        let nbytes = plan.element_count() * plan.element_nbytes();
        if nbytes > left || plan.read_count() > MOST_READS {
            continue;
        }
        left -= nbytes;
        if plan.totals(array, CoalescePolicy::LOCAL).decoded_nbytes <= MOST_DECODED_NBYTES {
            check(array, shape, &plan, stores, data);
        }
    }
}

fn check(array: &Array, shape: &[u64], plan: &ReadPlan, stores: &Stores, data: &[u8]) {
    let (none, cache) = (ChunkCache::new(0), ChunkCache::new(CACHE_NBYTES));
    let whole = output(array, plan, stores, &none, 1, 0xaa);
    assert_eq!(whole, output(array, plan, stores, &cache, 2, 0x55), "with two threads and a cache");
    let Some(whole) = whole else { return };
    let axes: Vec<AxisSelection> = (0..).zip(shape).map(|(axis, &length)| part(axis, length, data)).collect();
    let expected = picked(&whole, shape, &axes, usize::try_from(plan.element_nbytes()).unwrap());
    let selection = Orthogonal::new(axes.into_iter().map(AxisIndices::Regular).collect()).unwrap();
    let plan = ReadPlan::new(array, &selection).expect("a part of what could be read");
    for _ in 0..2 {
        let found = output(array, &plan, stores, &cache, 1, 0x33);
        assert_eq!(found.as_ref(), Some(&expected), "a part, with a cache");
    }
}

/// What was read into memory that was full of `garbage`.
pub fn output(
    array: &Array,
    plan: &ReadPlan,
    stores: &Stores,
    cache: &ChunkCache,
    thread_count: usize,
    garbage: u8,
) -> Option<Vec<u8>> {
    let mut out = vec![garbage; usize::try_from(plan.element_count() * plan.element_nbytes()).unwrap()];
    let execution =
        Execution { plan, array, array_name: "array", array_number: 0, stores, cache, thread_count, is_reused: false };
    execute(&execution, &mut out, &mut || false).ok().map(|()| out)
}

/// Some of an axis, as the input's last bytes say.
fn part(axis: usize, length: u64, data: &[u8]) -> AxisSelection {
    let byte = |back: usize| data.iter().rev().nth(axis * 3 + back).copied().map_or(0, u64::from);
    let start = if length == 0 { 0 } else { byte(0) % length };
    let stride = byte(1) % 5 + 1;
    let most = (length - start).div_ceil(stride);
    let count = if most == 0 { 0 } else { byte(2) % most + 1 };
    AxisSelection::new(axis, start, stride, count, 1).expect("within the axis")
}

/// The same elements, picked one by one.
fn picked(whole: &[u8], shape: &[u64], axes: &[AxisSelection], element_nbytes: usize) -> Vec<u8> {
    let mut places = vec![0_u64];
    for (axis, &length) in axes.iter().zip(shape) {
        let indices = || (0..axis.count()).map(|k| axis.start() + k * axis.stride());
        places = places.iter().flat_map(|place| indices().map(move |index| place * length + index)).collect();
    }
    let element = |place: u64| &whole[usize::try_from(place).unwrap() * element_nbytes..][..element_nbytes];
    places.into_iter().flat_map(element).copied().collect()
}
