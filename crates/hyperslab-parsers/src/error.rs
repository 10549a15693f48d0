//! Why a file, or a part of it, could not be read.

use hyperslab_core::Unreadable;
use thiserror::Error;

/// Bytes could not be fetched. The message names the file and what to do.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{0}")]
pub struct FetchError(pub String);

/// What is wrong with a file, and where.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Not an error of the file: the bytes are not held yet. The step that met it is made again after the next round.
    #[error("bytes at offset {offset} are not held yet")]
    NotHeld {
        /// The first byte that is missing.
        offset: u64,
    },
    /// A structure reaches past the end of the file.
    #[error(
        "{what} at offset {offset} needs {length} bytes, the file ends at {file_length}: it is truncated or damaged"
    )]
    Truncated {
        /// The structure.
        what: &'static str,
        /// Where it starts.
        offset: u64,
        /// What it needs.
        length: u64,
        /// What there is.
        file_length: u64,
    },
    /// A structure does not hold what its format says.
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
        "{what} at offset {offset}: checksum {found:#010x} is stored, {computed:#010x} computed; the file is damaged"
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
    #[error("{what}: more than {limit}; no sensible file has so many")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// The limit.
        limit: u64,
    },
    /// A feature that we cannot read; other parts of the file are not concerned.
    #[error("{feature} is not supported")]
    Unsupported {
        /// The feature.
        feature: String,
    },
    /// No format's signature was found.
    #[error("no known format: {reason}")]
    UnknownFormat {
        /// What was looked for.
        reason: String,
    },
    /// The bytes could not be fetched.
    #[error("{0}")]
    Fetch(#[from] FetchError),
}

impl Error {
    /// A structure that does not hold what its format says.
    pub(crate) fn invalid(what: &'static str, offset: u64, problem: impl Into<String>) -> Self {
        Self::Invalid { what, offset, problem: problem.into() }
    }

    /// A feature that we cannot read.
    pub(crate) fn unsupported(feature: impl Into<String>) -> Self {
        Self::Unsupported { feature: feature.into() }
    }

    /// Whether the step should simply be made again after the next round.
    pub fn is_not_held(&self) -> bool {
        matches!(self, Self::NotHeld { .. })
    }
}

/// What an error means for the part of the file that it is about. An unknown format is one that we cannot read.
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
