//! Measures how fast accesses are counted: chunk accesses per second on one core, and a workload of a thousand boxes in
//! a hundred candidate layouts. Run it with `cargo run --release -p hyperslab-model --example speed`.

use std::time::Instant;

use hyperslab_core::{ChunkGrid, Hyperslab, Selection};
use hyperslab_model::{
    CacheState, ChunkCacheSize, Chunks, Hdf5, IndexKind, Library, ModelError, Operation, PageCacheSize,
    Stored, Variables, Zarr,
};

const PAGES: PageCacheSize = PageCacheSize { nbytes: 4 << 30, read_ahead_nbytes: 0 };
const SHAPE: [u64; 2] = [35_660_170, 64];

fn hdf5() -> Library {
    let cache = ChunkCacheSize::FROM_2;
    let index = IndexKind::BtreeV1;
    Library::Hdf5(Hdf5 {
        cache,
        index,
        max_shape: None,
        fills: true,
        lengths_vary: true,
        allocates_late: false,
        wide_lengths: false,
        mpi_writing: false,
    })
}

fn opened(chunk_shape: [u64; 2], library: &Library) -> Result<CacheState, ModelError> {
    let grid = ChunkGrid::new(SHAPE.to_vec(), chunk_shape.to_vec())?;
    CacheState::new(Stored::new(grid, 4, None, Chunks::RowMajor)?, library, PAGES)
}

/// Chunk accesses per second, when all chunks are read twice.
#[allow(clippy::cast_precision_loss)]
fn accesses_per_second(library: &Library) -> Result<f64, ModelError> {
    let all = Selection::from(Hyperslab::all(&SHAPE)?);
    let mut state = opened([1000, 2], library)?;
    let (begin, mut chunks) = (Instant::now(), 0);
    for _ in 0..2 {
        chunks += state.access(Operation::Read, &all, &mut ())?.n_chunk;
    }
    Ok(chunks as f64 / begin.elapsed().as_secs_f64())
}

/// A thousand boxes of 1000 × 8 in the leftmost 8 columns, at positions derived from their numbers.
fn boxes() -> Result<Vec<Selection>, ModelError> {
    let start = |number: u64| number.wrapping_mul(6_364_136_223_846_793_005) % (SHAPE[0] - 1000);
    (0..1000)
        .map(|number| Ok(Hyperslab::new(&[start(number), 0], &[1, 1], &[1000, 8], &[1, 1])?.into()))
        .collect()
}

fn main() -> Result<(), ModelError> {
    for (name, library) in [("hdf5", hdf5()), ("zarr", Library::Zarr(Zarr::default()))] {
        println!("{name}: {:.1} million chunk accesses a second", accesses_per_second(&library)? / 1e6);
    }
    let (boxes, begin) = (boxes()?, Instant::now());
    let mut sum = Variables::default();
    for candidate in 0..100_u64 {
        let mut state = opened([1000 << (candidate % 10), 1 << (candidate % 7)], &hdf5())?;
        for selection in &boxes {
            sum += state.access(Operation::Read, selection, &mut ())?;
        }
    }
    println!("1000 boxes in 100 layouts: {:.2} s ({} chunks)", begin.elapsed().as_secs_f64(), sum.n_chunk);
    Ok(())
}
