//! The parts of a virtual array, once its sources are known. Nothing unlimited or numbered is left.

use std::sync::Arc;

use crate::array::Array;
use crate::array::virtual_mapping::{VirtualAxis, VirtualMapping, VirtualSelection};
use crate::error::MAX_ELEMENT_COUNT;
use crate::plan::error::PlanError;
use crate::selection::axis::AxisSelection;
use crate::virtual_array::correspondence::{aligned, parts};

/// What a virtual array shows of one source.
#[derive(Debug)]
pub(crate) struct Part {
    /// The source.
    pub source: Arc<Array>,
    /// The selection of the source.
    pub selection: VirtualSelection,
    /// The selection of the virtual array.
    pub shown: VirtualSelection,
}

impl Part {
    /// From a mapping that is limited already.
    pub fn limited(mapping: &VirtualMapping, source: Arc<Array>) -> Self {
        Self { source, selection: mapping.source.clone(), shown: mapping.target.clone() }
    }

    /// From a mapping that extends as far as its source.
    pub fn unlimited(
        mapping: &VirtualMapping,
        source: &Arc<Array>,
        axis: usize,
        source_axis: usize,
        growing: &mut Growing,
    ) -> Result<Vec<Self>, PlanError> {
        let length = source.shape.as_ref().and_then(|shape| shape.get(source_axis).copied());
        let length = length
            .ok_or_else(|| PlanError::damaged("a mapping and its source differ in the number of axes"))?;
        let selected = |selection: &VirtualSelection, axis| match selection {
            VirtualSelection::Regular(axes) => axes.get(axis).copied(),
            _ => None,
        };
        let sides = selected(&mapping.source, source_axis).zip(selected(&mapping.target, axis));
        let Some((from, to)) = sides else { return Ok(Vec::new()) };
        let count = reaching(from, length)?.position_of(length);
        let Some(last) = count.checked_sub(1) else { return Ok(Vec::new()) };
        let stop = reaching(to, u64::MAX)?.nth(last) + 1;
        growing.reach(axis, stop);
        let (from, to) = (cut(from, count)?, cut(to, count)?);
        let part = |(from, to): (VirtualAxis, VirtualAxis)| Self {
            source: Arc::clone(source),
            selection: with_axis(&mapping.source, source_axis, from),
            shown: with_axis(&mapping.target, axis, to),
        };
        Ok(aligned(from, to)
            .into_iter()
            .map(|found| part((limited(found.shown), limited(found.source))))
            .collect())
    }

    /// Block `number` of a row of numbered sources.
    pub fn numbered(
        mapping: &VirtualMapping,
        source: Arc<Array>,
        axis: usize,
        number: u64,
        growing: &mut Growing,
    ) -> Result<Self, PlanError> {
        let row = match &mapping.target {
            VirtualSelection::Regular(axes) => axes.get(axis).copied(),
            _ => None,
        };
        let block = row.and_then(|row| Some((row, row.block?)));
        let (row, block) = block.ok_or_else(|| PlanError::damaged("a row of sources without blocks"))?;
        let start = row.stride.checked_mul(number).and_then(|distance| distance.checked_add(row.start));
        let start = start.ok_or_else(|| PlanError::damaged("a row of sources beyond 2^64"))?;
        growing.reach(axis, start.saturating_add(block));
        let one = VirtualAxis { start, stride: block.max(1), count: Some(1), block: Some(block) };
        let shown = with_axis(&mapping.target, axis, one);
        Ok(Self { source, selection: mapping.source.clone(), shown })
    }
}

fn with_axis(selection: &VirtualSelection, axis: usize, changed: VirtualAxis) -> VirtualSelection {
    let mut selection = selection.clone();
    if let VirtualSelection::Regular(axes) = &mut selection
        && let Some(target) = axes.get_mut(axis)
    {
        *target = changed;
    }
    selection
}

fn limited(selected: AxisSelection) -> VirtualAxis {
    let (start, stride) = (selected.start(), selected.stride());
    VirtualAxis { start, stride, count: Some(selected.count()), block: Some(selected.block()) }
}

/// An unlimited axis, cut to an array of some length.
fn reaching(axis: VirtualAxis, length: u64) -> Result<AxisSelection, PlanError> {
    let beyond = axis.start.saturating_add(axis.stride).saturating_add(axis.block.unwrap_or(0));
    let length = length.saturating_sub(axis.start).min(MAX_ELEMENT_COUNT.saturating_sub(beyond));
    let selected = match axis.block {
        Some(block) if block != axis.stride => {
            let count = length.div_ceil(axis.stride.max(1)); // the last block may be partly beyond
            AxisSelection::new(0, axis.start, axis.stride, count, block)
        }
        _ => AxisSelection::interval(0, axis.start, length),
    };
    Ok(selected?.merged())
}

/// The first `count` indices of an unlimited axis.
fn cut(axis: VirtualAxis, count: u64) -> Result<Vec<AxisSelection>, PlanError> {
    let stop = reaching(axis, u64::MAX)?.nth(count.saturating_sub(1)) + 1;
    let whole = reaching(axis, stop)?;
    Ok(parts(whole, 0, count).collect())
}

/// The shape of a virtual array. Unlimited mappings determine it.
#[derive(Debug)]
pub(crate) struct Growing {
    /// The stored shape.
    shape: Vec<u64>,
    /// Where limited selections end, on each axis.
    least: Vec<u64>,
    /// Where unlimited ones end; `None` on an axis without any.
    reached: Vec<Option<u64>>,
}

impl Growing {
    /// Starts with the stored shape.
    pub fn new(stored_shape: &[u64]) -> Self {
        let ndim = stored_shape.len();
        Self { shape: stored_shape.to_vec(), least: vec![0; ndim], reached: vec![None; ndim] }
    }

    /// Extends the shape to the limited axes of a mapping's target.
    pub fn meet(&mut self, target: &VirtualSelection) -> Result<(), PlanError> {
        let stops: Vec<Option<u64>> = match target {
            VirtualSelection::All | VirtualSelection::Nothing => return Ok(()),
            VirtualSelection::Regular(axes) => axes.iter().map(stop).collect(),
            VirtualSelection::Boxes(boxes) => (0..self.shape.len())
                .map(|axis| boxes.iter().filter_map(|one| one.stop.get(axis).copied()).max())
                .collect(),
            VirtualSelection::Points(points) => (0..self.shape.len())
                .map(|axis| points.iter().filter_map(|point| point.get(axis).copied()).max())
                .map(|last| last.map(|last| last.saturating_add(1)))
                .collect(),
        };
        if stops.len() != self.shape.len() {
            return Err(PlanError::damaged("a mapping and its virtual array differ in the number of axes"));
        }
        for (least, stop) in self.least.iter_mut().zip(stops) {
            *least = (*least).max(stop.unwrap_or(0));
        }
        Ok(())
    }

    /// Records where an unlimited mapping ends.
    pub fn reach(&mut self, axis: usize, stop: u64) {
        if let Some(reached) = self.reached.get_mut(axis) {
            *reached = Some(reached.unwrap_or(0).max(stop));
        }
    }

    /// The resulting shape.
    pub fn shape(self) -> Vec<u64> {
        let axes = self.shape.into_iter().zip(self.least).zip(self.reached);
        axes.map(|((stored, least), reached)| reached.map_or(stored, |reached| reached.max(least))).collect()
    }
}

/// Where a limited axis ends.
fn stop(axis: &VirtualAxis) -> Option<u64> {
    let (count, block) = (axis.count?, axis.block?);
    if count == 0 || block == 0 {
        return Some(0);
    }
    Some((count - 1).saturating_mul(axis.stride).saturating_add(axis.start).saturating_add(block))
}
