//! The nouns of hyperslab: the selection of an array, how the array is cut into chunks, and what must be copied. Pure.
//!
//! A [`Selection`] over a [`ChunkGrid`], together with a manifest (where each chunk's bytes are), becomes a read plan: an
//! ordered list of byte requests. Everything else works on a plan:
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
//! This crate has the left and the middle of the picture, as far as they exist:
//!
//! | noun | meaning |
//! |---|---|
//! | [`Selection`] | the elements asked for: a [`Hyperslab`] (regular, one [`AxisSelection`] per axis) or [`Points`] |
//! | [`ChunkGrid`] | the array's shape and its chunks'; a [`ChunkBox`] is where one chunk lies |
//! | [`Overlap`] | what a selection shares with one chunk |
//! | [`Run`] | elements that are contiguous in the chunk's buffer and in the output: one copy |
//! | [`Touch`] | one chunk that a selection touches, in numbers: what a cost model visits |
//! | [`SelectionTotals`] | chunks, runs and elements over the whole selection, in closed form |
//! | [`ReadPlan`] | what an [`Orthogonal`] selection of an [`Array`] reads: a [`ChunkRead`] for each chunk |
//! | [`PointGroup`] | points that share a chunk, and are read together by their own plan |
//! | [`Unreadable`] | why a part of a file cannot be read: unsupported, damaged, or unfetched |
//! | [`VirtualMapping`] | a part of a virtual array, and the part of another array that it shows |
//! | [`FileIdentity`] | tells a local file from every other one, and from itself before a change |
//! | [`Placement`] | where the elements of one chunk read go in the output, as [`Row`]s |

mod array;
mod byte_range;
mod collection;
mod convert;
mod error;
mod file_identity;
mod fletcher32;
mod grid;
mod plan;
mod row_major;
mod selection;
mod unreadable;
mod virtual_array;

pub use array::codec::{Checksum, Codec, Dither, Framing, Quantum, VALUE_POINTER_NBYTES};
pub use array::codec_table::{KnownCodec, known};
pub use array::element::{
    ByteOrder, Charset, Element, Field, FloatLayout, Member, StringPadding, same_bytes,
};
pub use array::fill::Fill;
pub use array::manifest::{ChunkState, FileIndex, Lengths, Manifest, PerChunk, StoredChunk};
pub use array::object_names::ObjectNames;
pub use array::packing::Packing;
pub use array::segment::{Segment, SegmentAxis};
pub use array::virtual_mapping::{VirtualAxis, VirtualBox, VirtualMapping, VirtualSelection};
pub use array::virtual_mappings::{MappedAxis, MappedBoxes, VirtualMappings};
pub use array::{Array, Attribute, Group, Link, ListedFile, Notes, Role, Tree, Value};
pub use byte_range::ByteRange;
pub use collection::concatenate::{ChunkLengths, chunk_lengths, concatenate, with_new_axis};
pub use collection::counterparts::{Along, Counterparts, counterparts};
pub use convert::numbers::{convert, is_convertible};
pub use convert::recode::{recoded, value_with_ieee_floats, with_ieee_floats};
pub use convert::unpack::unpack;
pub use error::{Error, MAX_ELEMENT_COUNT};
pub use file_identity::FileIdentity;
pub use fletcher32::{fletcher32, fletcher32_is_right};
pub use grid::axis_overlap::Run;
pub use grid::chunk_grid::{ChunkBox, ChunkGrid};
pub use grid::overlap::{Overlap, Overlaps};
pub use grid::runs::Runs;
pub use grid::totals::SelectionTotals;
pub use grid::touches::Touch;
pub use plan::batches::Batches;
pub use plan::chunk_read::ChunkRead;
pub use plan::coalesce::{BatchLimits, CoalescePolicy, Merged, coalesce, parts};
pub use plan::defaults::{CHUNK_CACHE_NBYTES, FIRST_IN_FLIGHT};
pub use plan::error::PlanError;
pub use plan::placement::{AxisPart, Piece, Pieces, Placement, Row};
pub use plan::point_groups::PointGroup;
pub use plan::read_plan::ReadPlan;
pub use plan::requests::{PlanTotals, Request};
pub use plan::segment_index::SegmentIndex;
pub use selection::Selection;
pub use selection::axis::AxisSelection;
pub use selection::hyperslab::Hyperslab;
pub use selection::orthogonal::{AxisIndices, Orthogonal};
pub use selection::points::Points;
pub use unreadable::Unreadable;
pub use virtual_array::one_grid::{chunk_slots, shared_grid, shown_segment, some_chunk_slots};
pub use virtual_array::resolve::{Find, resolve};
