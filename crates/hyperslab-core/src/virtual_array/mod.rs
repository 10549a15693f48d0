//! Turns the mappings of a virtual array into segments.

pub(crate) mod correspondence;
pub(crate) mod one_grid;
pub(crate) mod pairing;
pub(crate) mod parts;
pub(crate) mod resolve;
pub(crate) mod selection_rows;
