//! Arrays of several files as one.

pub(crate) mod concatenate;
pub(crate) mod counterparts;
