//! What a selection reads of an array: chunks, byte ranges, and where elements go.

pub(crate) mod axis_cut;
pub(crate) mod batches;
pub(crate) mod chunk_read;
pub(crate) mod coalesce;
pub(crate) mod defaults;
pub(crate) mod error;
pub(crate) mod placement;
pub(crate) mod point_groups;
pub(crate) mod read_plan;
pub(crate) mod requests;
pub(crate) mod row_groups;
pub(crate) mod segment_index;
pub(crate) mod segment_reads;
