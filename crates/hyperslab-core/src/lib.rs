//! The nouns of hyperslab: what is asked of an array, how the array is cut, and what must be copied. Pure.
//!
//! A [`Selection`] of an array, over a [`ChunkGrid`], with a manifest (where each chunk's bytes are), gives a
//! read plan: an ordered list of byte requests. Everything else is something done with a plan:
//!
//! ```text
//!  Workload (named Selections) ──┐
//!                                ▼
//!  Manifest / Layout ────────► plan() ──► ReadPlan ──► execute() ──► array + Trace
//!    ▲                           pure        │            the only I/O
//!    │ parser (HDF5, NetCDF, …)              └──► price(plan, caches, profile) ──► Cost
//!    │ or snapshot (versions)                           pure              ▲
//!    └─ or a Layout that does not exist yet (advise)                      │ fitted by calibrate()
//! ```
//!
//! This crate has the left and the middle of the picture, as far as it is built:
//!
//! | noun | meaning |
//! |---|---|
//! | [`Selection`] | what is asked: a [`Hyperslab`] (regular, one [`AxisSelection`] per axis) or [`Points`] |
//! | [`ChunkGrid`] | the array's shape and its chunks'; a [`ChunkBox`] is where one chunk lies |
//! | [`Overlap`] | what a selection shares with one chunk |
//! | [`Run`] | elements that are consecutive in the chunk's buffer and in the output: one copy |
//! | [`Touch`] | one chunk that a selection touches, in numbers: what a cost model visits |
//! | [`SelectionTotals`] | chunks, runs and elements over the whole selection, in closed form |
//! | [`ReadPlan`] | what an [`Orthogonal`] selection of an [`Array`] reads, chunk by chunk: a [`ChunkRead`] each |
//! | [`PointGroup`] | points that share a chunk: read together, by a plan of their own |
//! | [`Unreadable`] | why a part of a file cannot be read: beyond us, or damaged |
//! | [`VirtualMapping`] | a part of a virtual array, and the part of another array that it shows |
//! | [`Placement`] | where the elements of one chunk read go in the output, as [`Row`]s |

mod array;
mod axis;
mod axis_cut;
mod axis_overlap;
mod batches;
mod byte_range;
mod chunk_read;
mod coalesce;
mod codec;
mod concatenate;
mod convert;
mod correspondence;
mod counterparts;
mod element;
mod error;
mod fill;
mod fletcher32;
mod grid;
mod hyperslab;
mod manifest;
mod object_names;
mod one_grid;
mod orthogonal;
mod other_float;
mod overlap;
mod packing;
mod pairing;
mod placement;
mod plan;
mod plan_error;
mod point_groups;
mod points;
mod recode;
mod requests;
mod resolve;
mod row_groups;
mod row_major;
mod runs;
mod segment;
mod segment_index;
mod segment_reads;
mod selection;
mod selection_rows;
mod totals;
mod touches;
mod unpack;
mod unreadable;
mod virtual_array;
mod virtual_mappings;
mod virtual_parts;

pub use array::{Array, Attribute, Group, Link, Role, Tree, Value};
pub use axis::AxisSelection;
pub use axis_overlap::Run;
pub use batches::Batches;
pub use byte_range::ByteRange;
pub use chunk_read::ChunkRead;
pub use coalesce::{BatchLimits, CoalescePolicy, Merged, coalesce, parts};
pub use codec::{BitshuffleInner, Checksum, Codec, Dither, Quantum};
pub use concatenate::{ChunkLengths, chunk_lengths, concatenate, with_new_axis};
pub use convert::{convert, is_convertible};
pub use counterparts::{Along, Counterparts, counterparts};
pub use element::{ByteOrder, Charset, Element, Field, FloatLayout, Member, StringPadding, same_bytes};
pub use error::{Error, MAX_ELEMENT_COUNT};
pub use fill::Fill;
pub use fletcher32::{fletcher32, fletcher32_is_right};
pub use grid::{ChunkBox, ChunkGrid};
pub use hyperslab::Hyperslab;
pub use manifest::{ChunkState, FileIndex, Lengths, Manifest, PerChunk, StoredChunk};
pub use object_names::ObjectNames;
pub use one_grid::{chunk_places, shared_grid, shown_segment, some_chunk_places};
pub use orthogonal::{AxisIndices, Orthogonal};
pub use overlap::{Overlap, Overlaps};
pub use packing::Packing;
pub use placement::{AxisPart, Piece, Pieces, Placement, Row};
pub use plan::ReadPlan;
pub use plan_error::PlanError;
pub use point_groups::PointGroup;
pub use points::Points;
pub use recode::{recoded, with_ieee_floats};
pub use requests::{PlanTotals, Request};
pub use resolve::{Find, resolve};
pub use runs::Runs;
pub use segment::{Segment, SegmentAxis};
pub use segment_index::SegmentIndex;
pub use selection::Selection;
pub use totals::SelectionTotals;
pub use touches::Touch;
pub use unpack::unpack;
pub use unreadable::Unreadable;
pub use virtual_array::{VirtualAxis, VirtualBox, VirtualMapping, VirtualSelection};
pub use virtual_mappings::{MappedAxis, MappedBoxes, VirtualMappings};
