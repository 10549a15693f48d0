//! `WholeArray`: an array whose segments are known, so selections of it can be planned.

use std::collections::HashSet;
use std::sync::Arc;

use hyperslab_core::{Array, ChunkGrid, Manifest, Orthogonal, PlanError, ReadPlan, Unreadable};
use hyperslab_engine::Stores;

use crate::archive::{Archive, ArchiveKind};
use crate::error::Problem;
use crate::resolved::Resolved;
use crate::sought::Sought;

/// Up to this many segments are scanned without an index.
const FEW_SEGMENTS: usize = 64;

/// An array whose segments are known: as its file has it, resolved, or with the chunks that a read looked up.
#[derive(Clone)]
pub struct WholeArray(Whole);

#[derive(Clone)]
enum Whole {
    Stored(Arc<Archive>, usize),
    Resolved(Arc<Resolved>),
    Sought(Arc<Sought>),
}

impl WholeArray {
    /// An array of an archive. Its number has been checked.
    pub(crate) fn of(archive: &Arc<Archive>, number: usize) -> Result<Self, Problem> {
        let described = &archive.tree.arrays[number];
        let segment_count = described.segments.as_ref().map_or(0, Vec::len);
        let is_indexed = segment_count > FEW_SEGMENTS && matches!(archive.kind, ArchiveKind::Collection(_));
        if described.virtual_mappings.is_empty() && !archive.is_lazy(number) && !is_indexed {
            return Ok(Self(Whole::Stored(Arc::clone(archive), number)));
        }
        archive.resolved(number).map(|resolved| Self(Whole::Resolved(resolved)))
    }

    /// The same, for other archives that show its chunks. The chunks must be listed.
    pub(crate) fn listed(archive: &Arc<Archive>, number: usize) -> Result<Self, Problem> {
        if matches!(archive.kind, ArchiveKind::Keys(_)) {
            let feature = "combining or indexing remote Zarr hierarchies, whose chunks are not listed,";
            return Err(Problem::from(Unreadable::unsupported(feature)));
        }
        Self::of(archive, number)
    }

    pub(crate) fn resolved(resolved: Resolved) -> Self {
        Self(Whole::Resolved(Arc::new(resolved)))
    }

    pub(crate) fn sought(sought: Sought) -> Self {
        Self(Whole::Sought(Arc::new(sought)))
    }

    /// The array.
    pub fn array(&self) -> &Array {
        match &self.0 {
            Whole::Stored(archive, number) => &archive.tree.arrays[*number],
            Whole::Resolved(resolved) => &resolved.array,
            Whole::Sought(sought) => &sought.array,
        }
    }

    /// The plan for a selection.
    pub(crate) fn plan(&self, selection: &Orthogonal) -> Result<ReadPlan, PlanError> {
        let index = match &self.0 {
            Whole::Stored(..) | Whole::Sought(_) => None,
            Whole::Resolved(resolved) => resolved.index.as_ref(),
        };
        match index {
            None => ReadPlan::new(self.array(), selection),
            Some(index) => ReadPlan::indexed(self.array(), index, selection),
        }
    }

    /// The files that hold its chunks.
    pub fn stores(&self) -> &Stores {
        match &self.0 {
            Whole::Stored(archive, _) => &archive.stores,
            Whole::Resolved(resolved) => &resolved.stores,
            Whole::Sought(sought) => &sought.stores,
        }
    }

    /// Tells arrays apart in the chunk cache.
    pub(crate) fn number(&self) -> u64 {
        match &self.0 {
            Whole::Stored(archive, number) => archive.first_number + *number as u64,
            Whole::Resolved(resolved) => resolved.number,
            Whole::Sought(sought) => sought.number,
        }
    }

    /// Each manifest with its grid, once, however many segments use it.
    pub(crate) fn manifests(&self) -> Vec<(&Manifest, &ChunkGrid)> {
        let mut seen = HashSet::new();
        let segments = self.array().segments.as_deref().unwrap_or_default().iter();
        let new = segments.filter(|segment| seen.insert(Arc::as_ptr(&segment.manifest)));
        new.map(|segment| (&*segment.manifest, &segment.grid)).collect()
    }
}
