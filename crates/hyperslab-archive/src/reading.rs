//! What is asked of an array, and how it is read.

use hyperslab_core::{Array, Orthogonal, PlanError, PointGroup, Points, ReadPlan};
use hyperslab_engine::{
    ChunkCache, Execution, Stores, ValueHeap, default_thread_count, execute, read_points, tidy,
};
use hyperslab_parsers::zarr::ArrayDocument;

use crate::error::Error;
use crate::interrupt::{InterruptCheck, Interruptible};

/// What is asked of an array: a selection by axis, or points.
#[derive(Clone, Debug)]
pub enum ArraySelection<'a> {
    /// Indices along each axis.
    Axes(Orthogonal),
    /// Single elements.
    Points(&'a Points),
}

/// Options of a read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadOptions {
    /// The maximum number of threads, including the calling one; by default one for each processor.
    pub thread_count: Option<usize>,
    /// Whether the output's memory has been written to before.
    pub is_reused: bool,
    /// Whether elements keep all bytes that are stored: otherwise those after the end of a text become zeros, and all bits
    /// of a narrow integer mean something.
    pub keeps_bytes: bool,
}

/// How to read it: one plan; or, for points, an unused plan and the groups of points.
pub(crate) struct Planned {
    plan: ReadPlan,
    groups: Option<Vec<PointGroup>>,
}

impl ArraySelection<'_> {
    /// The chunks, or shards, that it touches in a Zarr array of this shape.
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

/// An array, and how to read it.
pub(crate) struct Reading<'a> {
    pub(crate) array: &'a Array,
    pub(crate) name: &'a str,
    /// Tells arrays apart in the chunk cache.
    pub(crate) number: u64,
    pub(crate) stores: &'a Stores,
    pub(crate) cache: &'a ChunkCache,
    pub(crate) interrupts: &'a dyn InterruptCheck,
    pub(crate) options: ReadOptions,
    /// Where to put the values that elements point to, unless the file has a heap for them.
    pub(crate) values: Option<&'a ValueHeap>,
}

impl Reading<'_> {
    /// Reads into the bytes of the output.
    pub(crate) fn carry_out(&self, planned: &Planned, out: &mut [u8]) -> Result<(), Error> {
        let work = Interruptible::new(self.interrupts);
        let mut poll = || work.is_over();
        let execution = Execution {
            plan: &planned.plan,
            array: self.array,
            array_name: self.name,
            array_number: self.number,
            stores: self.stores,
            cache: self.cache,
            thread_count: self.options.thread_count.unwrap_or_else(default_thread_count),
            is_reused: self.options.is_reused,
            values: self.values,
        };
        let read = match &planned.groups {
            None => execute(&execution, out, &mut poll),
            Some(groups) => read_points(&execution, groups, out, &mut poll),
        };
        if let Some(raised) = work.raised() {
            return Err(raised);
        }
        read?;
        if !self.options.keeps_bytes {
            tidy(&self.array.element, out);
        }
        Ok(())
    }
}
