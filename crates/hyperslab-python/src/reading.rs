//! What is asked of an array, and carrying it out without the interpreter.

use hyperslab_core::{Array, Orthogonal, PlanError, PointGroup, Points, ReadPlan};
use hyperslab_engine::{
    ChunkCache, Execution, ReadError, Stores, default_thread_count, execute, read_points, tidy,
};
use hyperslab_parsers::zarr::ArrayDocument;
use pyo3::prelude::*;

/// A selection axis by axis, or points.
pub(crate) enum Asked<'a> {
    Axes(Orthogonal),
    Points(&'a Points),
}

/// How to read it: one plan, or for points a plan that is not used and their groups.
pub(crate) struct Planned {
    plan: ReadPlan,
    groups: Option<Vec<PointGroup>>,
}

impl Asked<'_> {
    /// The chunks, or shards, of a Zarr array of this shape that it touches.
    pub(crate) fn touched(&self, document: &ArrayDocument, shape: &[u64]) -> Result<Vec<u64>, PlanError> {
        match self {
            Self::Axes(selection) => document.touched(shape, selection),
            Self::Points(points) => document.touched_by(shape, points),
        }
    }

    pub(crate) fn planned(
        &self,
        array: &Array,
        plan: impl Fn(&Orthogonal) -> Result<ReadPlan, PlanError>,
    ) -> Result<Planned, PlanError> {
        Ok(match self {
            Self::Axes(selection) => Planned { plan: plan(selection)?, groups: None },
            Self::Points(points) => {
                let groups = Some(PointGroup::of(points, array)?);
                Planned { plan: plan(&Orthogonal::all(&vec![0; points.ndim()])?)?, groups }
            }
        })
    }
}

/// An array, and what reading it takes.
pub(crate) struct Reading<'a> {
    pub(crate) array: &'a Array,
    pub(crate) name: &'a str,
    /// Tells arrays apart in the cache.
    pub(crate) number: u64,
    pub(crate) stores: &'a Stores,
    pub(crate) cache: &'a ChunkCache,
    /// The output's memory was written before.
    pub(crate) is_reused: bool,
}

impl Reading<'_> {
    /// Read without the interpreter. The outer error is of a signal whose handler raised.
    pub(crate) fn carry_out(
        &self,
        py: Python<'_>,
        planned: &Planned,
        out: &mut [u8],
        threads: Option<usize>,
    ) -> PyResult<Result<(), ReadError>> {
        let mut raised = None;
        let done = py.detach(|| {
            let mut poll = || {
                #[allow(clippy::redundant_closure_for_method_calls)] // a path is of one lifetime only
                let checked = Python::attach(|py| py.check_signals());
                raised = checked.err();
                raised.is_some()
            };
            let execution = Execution {
                plan: &planned.plan,
                array: self.array,
                array_name: self.name,
                array_number: self.number,
                stores: self.stores,
                cache: self.cache,
                thread_count: threads.unwrap_or_else(default_thread_count),
                is_reused: self.is_reused,
            };
            let read = match &planned.groups {
                None => execute(&execution, out, &mut poll),
                Some(groups) => read_points(&execution, groups, out, &mut poll),
            };
            read.map(|()| tidy(&self.array.element, out))
        });
        raised.map_or(Ok(done), Err)
    }
}
