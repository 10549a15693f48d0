//! Why a part of a file cannot be read: beyond us, damaged, or not to be fetched. Parsers, plans and Python share it.

use thiserror::Error;

/// Why an array's chunks, an attribute's value or a link's target cannot be had.
///
/// These are never to be mixed: another program reads what is unsupported, none what is damaged, and nobody knows
/// before the bytes come.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Unreadable {
    /// The file is good, but uses something that we cannot read.
    #[error("{feature} is not supported")]
    Unsupported {
        /// What it is, as a noun.
        feature: String,
    },
    /// The file contradicts its format, or ends too early.
    #[error("{problem}")]
    Damaged {
        /// What is wrong, and where: a sentence.
        problem: String,
    },
    /// Its bytes could not be fetched; the file may be whole.
    #[error("{problem}")]
    Unfetched {
        /// What the system says, and of what.
        problem: String,
    },
}

impl Unreadable {
    /// A feature that we cannot read.
    pub fn unsupported(feature: impl Into<String>) -> Self {
        Self::Unsupported { feature: feature.into() }
    }

    /// A file that contradicts its format.
    pub fn damaged(problem: impl Into<String>) -> Self {
        Self::Damaged { problem: problem.into() }
    }
}

/// A grid or a range that no array can have was described by a damaged file.
impl From<crate::error::Error> for Unreadable {
    fn from(error: crate::error::Error) -> Self {
        Self::damaged(error.to_string())
    }
}
