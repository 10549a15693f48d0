//! Why a file or a part of it could not be read.

use hyperslab_core::Unreadable;
use thiserror::Error;

/// Bytes could not be fetched. The message names the file and what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct FetchError(pub String);

/// What is wrong with a file, and where.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// The bytes have not been fetched yet. This is not an error of the file: the step runs again after the next round.
    #[error("bytes at offset {offset} are not held yet")]
    NotHeld {
        /// The first byte that is missing.
        offset: u64,
    },
    /// A structure reaches past the end of the file.
    #[error(
        "{what} at offset {offset} needs {length} bytes, but the file ends at {file_length}: it is truncated or damaged"
    )]
    Truncated {
        /// The structure.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// The length that it needs.
        length: u64,
        /// The length of the file.
        file_length: u64,
    },
    /// A structure contradicts its format.
    #[error("{what} at offset {offset}: {problem}; the file is damaged, or written by something unknown")]
    Invalid {
        /// The structure.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// What is wrong.
        problem: String,
    },
    /// A checksum does not match.
    #[error(
        "{what} at offset {offset}: the stored checksum is {found:#010x}, the computed one {computed:#010x}; the file is damaged"
    )]
    Checksum {
        /// The structure.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// As stored.
        found: u32,
        /// As computed.
        computed: u32,
    },
    /// A structure leads back to itself.
    #[error("{what} at offset {offset} leads back to itself")]
    Cycle {
        /// The structure.
        what: &'static str,
        /// Where it starts.
        offset: u64,
    },
    /// More of something than we are willing to hold for one file.
    #[error("{what}: more than {limit}; no sensible file has that many")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// A feature that we do not support. Other parts of the file are not affected.
    #[error("{feature} is not supported")]
    Unsupported {
        /// The feature.
        feature: String,
    },
    /// No format's signature was found.
    #[error("no known format: {reason}")]
    UnknownFormat {
        /// What we looked for.
        reason: String,
    },
    /// The bytes could not be fetched.
    #[error("{0}")]
    Fetch(#[from] FetchError),
}

impl Error {
    /// The error of a structure that contradicts its format.
    pub(crate) fn invalid(what: &'static str, offset: u64, problem: impl Into<String>) -> Self {
        Self::Invalid { what, offset, problem: problem.into() }
    }

    /// The error of an unsupported feature.
    pub(crate) fn unsupported(feature: impl Into<String>) -> Self {
        Self::Unsupported { feature: feature.into() }
    }

    /// Whether the step should just run again after the next round.
    pub fn is_not_held(&self) -> bool {
        matches!(self, Self::NotHeld { .. })
    }
}

/// What the error means for its part of the file. An unknown format is unsupported.
impl From<Error> for Unreadable {
    fn from(error: Error) -> Self {
        match error {
            Error::Unsupported { feature } => Self::Unsupported { feature },
            Error::UnknownFormat { reason } => Self::Unsupported { feature: reason },
            Error::Fetch(error) => Self::Unfetched { problem: error.0 },
            other => Self::damaged(other.to_string()),
        }
    }
}
