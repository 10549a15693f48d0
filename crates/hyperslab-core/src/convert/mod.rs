//! Converts numbers to another kind, width or byte order, or unpacks them; and converts whole arrays in this way.

pub(crate) mod numbers;
pub(crate) mod other_float;
pub(crate) mod recode;
pub(crate) mod unpack;
