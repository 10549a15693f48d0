//! What our own engine does: the requests of its plan. It only reads.

use std::sync::Arc;

use hyperslab_core::{
    Array, CoalescePolicy, Codec, Element, FIRST_IN_FLIGHT, Fill, Manifest, Notes, Orthogonal, ReadPlan,
    Role, Segment, SegmentAxis, Selection, StoredChunk, VirtualMappings, known,
};

use crate::chunk_locations::ChunkLocations;
use crate::device::{Device, PageCacheSize, Unit};
use crate::error::ModelError;
use crate::index::kind::IndexKind;
use crate::lru::Lru;
use crate::operation::Operation;
use crate::request::{Purpose, Request, Watch};
use crate::stored::{Chunks, Stored};
use crate::variables::Variables;

/// How our own engine is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HyperslabEngine {
    /// The size of its cache of decoded chunks that were read only in part.
    pub chunk_cache_nbytes: u64,
    /// Whether the file is on a server: requests are larger then, and there is no page cache.
    pub is_far: bool,
}

impl HyperslabEngine {
    /// The default of `open`.
    pub const CHUNK_CACHE_NBYTES: u64 = hyperslab_core::CHUNK_CACHE_NBYTES;
}

#[derive(Clone, Debug)]
pub(crate) struct OpenHyperslabEngine {
    engine: HyperslabEngine,
    stored: Stored,
    array: Array,
    device: Device,
    kept: Lru,
}

impl OpenHyperslabEngine {
    pub fn new(stored: Stored, engine: HyperslabEngine, pages: PageCacheSize) -> Result<Self, ModelError> {
        let manifest = match &stored.chunks {
            Chunks::Listed(manifest) => Arc::clone(manifest),
            Chunks::Missing => Arc::new(Manifest::empty()),
            Chunks::RowMajor => {
                let mut locations = ChunkLocations::new(&stored, IndexKind::None);
                let mut chunk =
                    |index| Some(StoredChunk { index, file: 0, range: locations.of(index)?, filter_mask: 0 });
                Arc::new(Manifest::of_chunks((0..stored.grid.chunk_count()).filter_map(&mut chunk).collect()))
            }
        };
        let shape = stored.grid.shape().to_vec();
        let origin = vec![0; shape.len()];
        // The requests do not depend on the codec and the element type.
        let element = Element::Opaque { nbytes: stored.element_nbytes, tag: String::new() };
        let segment = Segment {
            axes: SegmentAxis::of_box(&origin, &shape, &origin)?,
            grid: stored.grid.clone(),
            codecs: if stored.is_encoded() { vec![Codec::known(&known::zstd)] } else { Vec::new() },
            element: element.clone(),
            plain_edge_chunks: false,
            manifest,
            fill: Fill::Zero,
        };
        let array = Array {
            max_shape: shape.iter().copied().map(Some).collect(),
            shape: Some(shape),
            element,
            fill: Fill::Zero,
            is_chunked: true,
            notes: Notes::default(),
            segments: Ok(vec![segment]),
            virtual_mappings: VirtualMappings::NONE,
            dimensions: None,
            attributes: Vec::new(),
            role: Role::Plain,
        };
        let key_stop = stored.is_encoded().then(|| stored.grid.chunk_count());
        let kept = Lru::new(engine.chunk_cache_nbytes, key_stop);
        Ok(Self { engine, device: Device::new(pages, Unit::Page, 0, u64::MAX), array, stored, kept })
    }

    pub fn access(
        &mut self,
        operation: Operation,
        selection: &Selection,
        watch: &mut impl Watch,
    ) -> Result<Variables, ModelError> {
        let Selection::Hyperslab(hyperslab) = selection else {
            return Err(ModelError::parameter(
                "selection",
                "a list of points",
                "our engine is modelled for hyperslabs",
            ));
        };
        if operation == Operation::Write {
            return Err(ModelError::parameter("operation", "write", "our engine only reads"));
        }
        let mut variables = Variables::default();
        let plan = ReadPlan::new(&self.array, &Orthogonal::from(hyperslab))?;
        let policy = if self.engine.is_far { CoalescePolicy::REMOTE } else { CoalescePolicy::LOCAL };
        let (kept, most, width) =
            (&mut self.kept, self.engine.chunk_cache_nbytes, self.stored.element_nbytes);
        let (mut missing, mut s_decode) = (Vec::new(), 0);
        let requests = plan.requests_unless(&self.array, policy, |read, decoded_nbytes| {
            let nbytes = read.chunk_element_count.saturating_mul(width);
            let is_part = !read.is_plain && read.placement.element_count() < read.chunk_element_count;
            let may_be_kept = is_part && decoded_nbytes <= most;
            if may_be_kept && kept.has(read.chunk) {
                return kept.uses(read.chunk, nbytes);
            }
            s_decode += if read.is_plain { 0 } else { nbytes };
            missing.extend(may_be_kept.then_some((read.chunk, nbytes)));
            false
        });
        for (chunk, nbytes) in missing {
            kept.uses(chunk, nbytes); // cached chunks are found before anything is fetched
        }
        for request in &requests {
            variables.n_rrequest += 1;
            variables.s_rrequest += request.range.length;
            if self.engine.is_far {
                variables.n_rdisk += 1;
                variables.s_rdisk += request.range.length;
                variables.s_rneed += request.range.length;
            } else {
                self.device.read(0, request.range, &mut variables);
            }
            watch.saw(Request { purpose: Purpose::ReadPart, chunk: 0, range: request.range });
        }
        if self.engine.is_far {
            variables.n_rseek = variables.n_rdisk.div_ceil(FIRST_IN_FLIGHT as u64);
        }
        let copied = self.stored.grid.totals(selection)?;
        variables.s_decode = s_decode;
        variables.n_chunk = plan.chunk_count();
        variables.n_memcpy = copied.run_count;
        variables.s_memcpy = plan.element_count() * plan.element_nbytes();
        Ok(variables)
    }

    /// Closes the file and opens it again: we forget what we have cached, the system does not.
    pub fn reopen(&mut self) {
        self.kept.clear();
        self.device.reopen();
    }
}
