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
//! | [`SelectionTotals`] | chunks, runs and elements over the whole selection, in closed form |

mod array;
mod axis;
mod byte_range;
mod codec;
mod element;
mod error;
mod grid;
mod hyperslab;
mod manifest;
mod overlap;
mod points;
mod row_major;
mod runs;
mod selection;
mod totals;

pub use array::{Array, Attribute, Fill, Group, Link, Segment, Tree, Value};
pub use axis::AxisSelection;
pub use byte_range::ByteRange;
pub use codec::{BitshuffleInner, Codec};
pub use element::{ByteOrder, Charset, Element, Field, FloatLayout, Member, StringPadding};
pub use error::{Error, MAX_ELEMENT_COUNT};
pub use grid::{ChunkBox, ChunkGrid};
pub use hyperslab::Hyperslab;
pub use manifest::{ChunkState, FileIndex, Manifest, StoredChunk};
pub use overlap::{Overlap, Overlaps};
pub use points::Points;
pub use runs::{Run, Runs};
pub use selection::Selection;
pub use totals::SelectionTotals;
