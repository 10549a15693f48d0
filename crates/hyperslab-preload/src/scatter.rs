//! Elements into memory with gaps: memory that is a hyperslab of a larger array.

#![allow(unsafe_code)]

use hyperslab_core::AxisIndices;
use hyperslab_libhdf5::{Dataspace, Selected};

/// The most indices and intervals that are listed.
const MOST_LISTED: u64 = 1 << 20;

/// Where elements go that are not simply one after the other.
pub(crate) struct Gaps {
    /// For each axis, the distances in bytes of the selected indices from the first.
    outer: Vec<Vec<usize>>,
    /// Runs of the last axes: where each begins, and how long it is.
    runs: Vec<(usize, usize)>,
}

/// Where a call wants its elements.
pub(crate) enum Target {
    /// In one piece, so many bytes behind the pointer.
    Piece(usize),
    /// In many.
    Gaps(Gaps),
}

impl Target {
    /// `None` for memory that we do not fill: points, and selections that no memory can hold.
    pub fn of(memory: Option<&Dataspace>, width: usize) -> Option<Self> {
        let Some(memory) = memory else { return Some(Self::Piece(0)) };
        let axes = match &memory.selected {
            Selected::All => return Some(Self::Piece(0)),
            Selected::Points(_) => return None,
            Selected::Axes(axes) => axes,
        };
        // The bytes from one index to the next, by axis.
        let mut strides = vec![width; memory.shape.len()];
        for axis in (1..memory.shape.len()).rev() {
            strides[axis - 1] = strides[axis].checked_mul(usize::try_from(memory.shape[axis]).ok()?)?;
        }
        strides[0].checked_mul(usize::try_from(memory.shape[0]).ok()?)?; // no distance below overflows
        let intervals = axes.iter().map(intervals).collect::<Option<Vec<_>>>()?;
        // From the last axis on, as long as everything is selected; one axis more, whose intervals are the runs.
        let is_whole = |axis: usize| intervals[axis] == [(0, memory.shape[axis])];
        let inner = (1..axes.len()).rev().take_while(|&axis| is_whole(axis)).count();
        let split = axes.len() - 1 - inner;
        let bytes = |(start, length): &(u64, u64)| {
            Some((
                usize::try_from(*start).ok()? * strides[split],
                usize::try_from(*length).ok()? * strides[split],
            ))
        };
        let runs = intervals[split].iter().map(bytes).collect::<Option<Vec<_>>>()?;
        let listed = axes[..split].iter().map(AxisIndices::len).try_fold(0_u64, u64::checked_add)?;
        if listed > MOST_LISTED {
            return None;
        }
        let distances = |axis: usize| {
            let all = intervals[axis].iter().flat_map(|&(start, length)| start..start + length);
            all.map(|index| Some(usize::try_from(index).ok()? * strides[axis])).collect::<Option<Vec<_>>>()
        };
        let outer = (0..split).map(distances).collect::<Option<Vec<_>>>()?;
        let starts = outer.iter().map(|axis| match axis.as_slice() {
            [only] => Some(*only),
            _ => None,
        });
        match (starts.sum::<Option<usize>>(), runs.as_slice()) {
            (Some(start), [(within, _)]) => Some(Self::Piece(start + within)),
            _ => Some(Self::Gaps(Gaps { outer, runs })),
        }
    }
}

/// The intervals of the indices: start and length. `None` if there are very many.
fn intervals(axis: &AxisIndices) -> Option<Vec<(u64, u64)>> {
    match axis {
        AxisIndices::Regular(along) if along.is_contiguous() => Some(vec![(along.start(), along.len())]),
        AxisIndices::Regular(along) if along.count() <= MOST_LISTED => {
            let start = |number| along.start() + number * along.stride();
            Some((0..along.count()).map(|number| (start(number), along.block())).collect())
        }
        _ => None,
    }
}

impl Gaps {
    /// Copies elements to where they belong.
    ///
    /// # Safety
    /// `out` must point to memory of the dataspace's shape.
    pub unsafe fn fill(&self, elements: &[u8], out: *mut u8) {
        let mut positions = vec![0_usize; self.outer.len()];
        let mut rest = elements;
        while !rest.is_empty() {
            let start: usize =
                self.outer.iter().zip(&positions).map(|(axis, &position)| axis[position]).sum();
            for &(within, nbytes) in &self.runs {
                let Some((run, behind)) = rest.split_at_checked(nbytes) else { return };
                // SAFETY: the program says that its memory has this shape, and the indices are within it.
                unsafe { std::ptr::copy_nonoverlapping(run.as_ptr(), out.add(start + within), nbytes) };
                rest = behind;
            }
            for (position, axis) in positions.iter_mut().zip(&self.outer).rev() {
                *position += 1;
                if *position < axis.len() {
                    break;
                }
                *position = 0;
            }
        }
    }
}
