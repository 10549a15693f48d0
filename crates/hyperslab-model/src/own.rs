//! What our own engine does: the requests of its plan. It only reads.

use std::sync::Arc;

use hyperslab_core::{
    Array, CoalescePolicy, Codec, Element, Fill, Manifest, Orthogonal, ReadPlan, Role, Segment, SegmentAxis,
    Selection, StoredChunk, VirtualMappings,
};

use crate::access::Operation;
use crate::device::{Device, PageCacheSize, Unit};
use crate::error::ModelError;
use crate::index::IndexKind;
use crate::request::{Purpose, Request, Watch};
use crate::stored::{Chunks, Places, Stored};
use crate::variables::Variables;

#[derive(Clone, Debug)]
pub(crate) struct OpenOwn {
    stored: Stored,
    array: Array,
    device: Device,
}

impl OpenOwn {
    pub fn new(stored: Stored, pages: PageCacheSize) -> Result<Self, ModelError> {
        let manifest = match &stored.chunks {
            Chunks::Listed(manifest) => Arc::clone(manifest),
            Chunks::Missing => Arc::new(Manifest::empty()),
            Chunks::RowMajor => {
                let mut places = Places::new(&stored, IndexKind::None);
                let mut chunk =
                    |index| Some(StoredChunk { index, file: 0, range: places.of(index)?, filter_mask: 0 });
                Arc::new(Manifest::of_chunks((0..stored.grid.chunk_count()).filter_map(&mut chunk).collect()))
            }
        };
        let shape = stored.grid.shape().to_vec();
        let origin = vec![0; shape.len()];
        // Which codec and which elements makes no difference to the requests.
        let element = Element::Opaque { nbytes: stored.element_nbytes, tag: String::new() };
        let segment = Segment {
            axes: SegmentAxis::of_box(&origin, &shape, &origin)?,
            grid: stored.grid.clone(),
            codecs: if stored.is_encoded() { vec![Codec::Zstd] } else { Vec::new() },
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
            segments: Ok(vec![segment]),
            virtual_mappings: VirtualMappings::NONE,
            dimensions: None,
            attributes: Vec::new(),
            role: Role::Plain,
        };
        Ok(Self { device: Device::new(pages, Unit::Page, 0, u64::MAX), array, stored })
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
        for request in plan.requests(&self.array, CoalescePolicy::LOCAL) {
            variables.n_rrequest += 1;
            variables.s_rrequest += request.range.length;
            self.device.read(0, request.range, &mut variables);
            watch.saw(Request { purpose: Purpose::ReadPart, chunk: 0, range: request.range });
        }
        let totals = plan.totals(&self.array, CoalescePolicy::LOCAL);
        if self.stored.is_encoded() {
            variables.s_decode = totals.decoded_nbytes;
        }
        let copied = self.stored.grid.totals(selection)?;
        variables.n_chunk = totals.chunk_count;
        variables.n_memcpy = copied.run_count;
        variables.s_memcpy = totals.output_nbytes;
        Ok(variables)
    }
}
