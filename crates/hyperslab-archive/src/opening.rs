//! What opening a far file takes.

use hyperslab_parsers::{Noted, Source, Statistics};

use crate::sources::RemoteSource;

/// What opening a far file takes.
#[derive(Clone, Debug)]
pub struct Opening {
    /// The length of the file.
    pub nbytes: u64,
    /// Rounds, requests and bytes, with the request that brings the first bytes.
    pub asked: Statistics,
    /// The structures that were read, if they were noted.
    pub metadata: Noted,
}

impl Opening {
    pub(crate) fn new(source: &RemoteSource<'_>, metadata: Noted) -> Self {
        Self { nbytes: source.length(), asked: source.asked(), metadata }
    }
}
