//! Numbers as others: of another kind, width or byte order, or unpacked; and arrays whose elements are shown so.

pub(crate) mod numbers;
pub(crate) mod other_float;
pub(crate) mod recode;
pub(crate) mod unpack;
