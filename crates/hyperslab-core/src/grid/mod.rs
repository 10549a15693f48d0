//! How an array is cut into chunks, and what a selection shares with them.

pub(crate) mod axis_overlap;
pub(crate) mod chunk_grid;
pub(crate) mod overlap;
pub(crate) mod runs;
pub(crate) mod totals;
pub(crate) mod touches;
