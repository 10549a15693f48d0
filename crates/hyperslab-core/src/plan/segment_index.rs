//! Finds the few of many segments that a selection may touch, without checking all of them.

use std::collections::HashSet;

use crate::array::segment::Segment;
use crate::selection::axis::AxisSelection;
use crate::selection::orthogonal::Orthogonal;

/// The segments of one array by their starts, on the axis that has the most different starts.
#[derive(Clone, Debug)]
pub struct SegmentIndex {
    axis: usize,
    /// Start and number, sorted.
    starts: Vec<(u64, usize)>,
    /// For each entry, the highest stop among the segments up to it.
    stops: Vec<u64>,
}

impl SegmentIndex {
    /// The index of these segments; `None` if they have no axis.
    pub fn new(segments: &[Segment]) -> Option<Self> {
        let ndim = segments.first()?.shown().count();
        let start = |segment: &Segment, axis: usize| segment.shown().nth(axis).map(AxisSelection::start);
        let distinct =
            |axis: usize| segments.iter().map(|segment| start(segment, axis)).collect::<HashSet<_>>().len();
        let axis = (0..ndim).max_by_key(|&axis| distinct(axis))?;
        let numbered = segments.iter().zip(0..);
        let mut starts: Vec<(u64, usize)> =
            numbered.map(|(segment, number)| (start(segment, axis).unwrap_or(0), number)).collect();
        starts.sort_unstable();
        let stop = |number: usize| segments[number].shown().nth(axis).map_or(u64::MAX, AxisSelection::stop);
        let stops = starts.iter().scan(0, |most, &(_, number)| {
            *most = stop(number).max(*most);
            Some(*most)
        });
        Some(Self { axis, stops: stops.collect(), starts })
    }

    /// The numbers, in increasing order, of the segments that a selection touches, and possibly some more.
    pub(crate) fn near(&self, selection: &Orthogonal) -> Vec<usize> {
        let Some(asked) = selection.axes().get(self.axis).filter(|asked| !asked.is_empty()) else {
            return Vec::new();
        };
        let first = self.stops.partition_point(|&stop| stop <= asked.start());
        let after = self.starts.partition_point(|&(start, _)| start < asked.stop());
        let near = self.starts.get(first..after).unwrap_or_default();
        let mut numbers: Vec<usize> = near.iter().map(|&(_, number)| number).collect();
        numbers.sort_unstable();
        numbers
    }
}
