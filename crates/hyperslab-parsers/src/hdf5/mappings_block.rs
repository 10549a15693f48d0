//! The mappings of a virtual array made of chunks, in libhdf5's encoding: version 0, hyperslabs of version 1.

use hyperslab_core::ChunkGrid;

use super::lookup3::lookup3;

/// `H5S_SEL_HYPERSLABS`, version 1, reserved.
const HYPERSLAB: [u32; 3] = [2, 1, 0];

/// One mapping for each stored chunk of a grid. `slots` has the slot of each chunk in a stack of chunks along axis 0,
/// which is the array at `path` in the same file; -1 means that the chunk is not stored.
///
/// `None` if libhdf5 would use another encoding, because a number needs more than 32 bits, or if the slots do not fit
/// the grid.
pub fn mappings_block(path: &str, grid: &ChunkGrid, slots: &[i64]) -> Option<Vec<u8>> {
    let (ndim, chunk_shape) = (grid.shape().len(), grid.chunk_shape());
    let highest = u64::try_from(slots.iter().max().copied().unwrap_or(0).max(0)).ok()?;
    let end = highest.checked_add(1)?.checked_mul(*chunk_shape.first()?)?;
    let fits = grid.shape().iter().chain([&end]).all(|&length| length < u64::from(u32::MAX));
    if !fits || u64::try_from(slots.len()).ok()? != grid.chunk_count() || path.contains('\0') {
        return None;
    }
    let count = slots.iter().filter(|&&slot| slot >= 0).count();
    let entry_nbytes = path.len().checked_add(3)?.checked_add(ndim.checked_mul(16)?.checked_add(48)?)?;
    let mut block = Vec::with_capacity(count.checked_mul(entry_nbytes)?.checked_add(13)?);
    block.push(0);
    block.extend(u64::try_from(count).ok()?.to_le_bytes());
    let grid_shape = grid.grid_shape();
    let (mut index, mut first, mut last) = (vec![0; ndim], vec![0; ndim], vec![0; ndim]);
    let (mut source_first, mut source_last) = (vec![0; ndim], vec![0; ndim]);
    for &slot in slots {
        if let Ok(slot) = u64::try_from(slot) {
            let axes = index.iter().zip(grid.shape()).zip(chunk_shape).enumerate();
            for (axis, ((&at, &length), &chunk)) in axes {
                let start = u64::saturating_mul(at, chunk);
                let valid = chunk.min(length.checked_sub(start)?).checked_sub(1)?;
                let source = if axis == 0 { slot.saturating_mul(chunk) } else { 0 };
                put(&mut first, axis, start)?;
                put(&mut last, axis, start.saturating_add(valid))?;
                put(&mut source_first, axis, source)?;
                put(&mut source_last, axis, source.saturating_add(valid))?;
            }
            block.extend(b".\0");
            block.extend(path.as_bytes());
            block.push(0);
            push_box(&mut block, &source_first, &source_last)?;
            push_box(&mut block, &first, &last)?;
        }
        for (at, &length) in index.iter_mut().zip(&grid_shape).rev() {
            *at = u64::saturating_add(*at, 1);
            if *at < length {
                break;
            }
            *at = 0;
        }
    }
    block.extend(lookup3(&block).to_le_bytes());
    Some(block)
}

fn put(numbers: &mut [u32], axis: usize, value: u64) -> Option<()> {
    *numbers.get_mut(axis)? = u32::try_from(value).ok()?;
    Some(())
}

fn push_box(block: &mut Vec<u8>, first: &[u32], last: &[u32]) -> Option<()> {
    let ndim = u32::try_from(first.len()).ok()?;
    let head = [ndim.checked_mul(8)?.checked_add(8)?, ndim, 1];
    let words = HYPERSLAB.iter().chain(&head).chain(first).chain(last);
    block.extend(words.flat_map(|word| word.to_le_bytes()));
    Some(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

    use hyperslab_core::{ChunkGrid, VirtualMappings, chunk_slots};

    use super::mappings_block;
    use crate::hdf5::sizes::Sizes;
    use crate::hdf5::virtual_layout::read_mappings;

    #[test]
    fn what_is_written_is_read() {
        let grid = ChunkGrid::new(vec![7, 5], vec![2, 3]).unwrap();
        let slots = [4, -1, 0, 2, -1, 7, 1, 3];
        let block = mappings_block("/x/raw", &grid, &slots).unwrap();
        let sizes = Sizes { offset: 8, length: 8, base: 0 };
        let mappings = read_mappings(&block, 0, sizes).unwrap();
        let read = chunk_slots(&mappings, &grid).unwrap();
        assert_eq!(read, [(0, 4), (2, 0), (3, 2), (5, 7), (6, 1), (7, 3)]);
        assert!(matches!(mappings, VirtualMappings::Boxes(_)), "the quick way");
        assert_eq!(mappings.one_source(), Some((&".".into(), &"/x/raw".into())));
    }

    #[test]
    fn what_libhdf5_writes_otherwise_is_refused() {
        let grid = |shape: u64, chunk: u64| ChunkGrid::new(vec![shape], vec![chunk]).unwrap();
        assert!(mappings_block("/x", &grid(4, 2), &[0]).is_none());
        assert!(mappings_block("/x", &grid(1 << 33, 1 << 32), &[0, 1]).is_none());
        assert!(mappings_block("/x", &grid(4, 2), &[0, i64::MAX]).is_none());
        assert!(mappings_block("/x", &grid(4, 2), &[-1, -1]).is_some());
    }
}
