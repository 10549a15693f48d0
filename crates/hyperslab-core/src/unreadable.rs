//! Why a part of a file cannot be read: unsupported, damaged, or unfetched. Parsers, plans and Python share this.

use thiserror::Error;

/// Why an array's chunks, an attribute's value or a link's target cannot be read.
///
/// Do not confuse the three: another program may read what is unsupported, none reads what is damaged, and unfetched
/// bytes may still turn out good.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Unreadable {
    /// The file is good, but uses something that we do not support.
    #[error("{feature} is not supported")]
    Unsupported {
        /// The feature, as a noun.
        feature: String,
    },
    /// The file contradicts its format, or ends too early.
    #[error("{problem}")]
    Damaged {
        /// What is wrong, and where, as a sentence.
        problem: String,
    },
    /// Its bytes could not be fetched. The file may be good.
    #[error("{problem}")]
    Unfetched {
        /// The system's message, and what it is about.
        problem: String,
    },
}

impl Unreadable {
    /// An unsupported feature.
    pub fn unsupported(feature: impl Into<String>) -> Self {
        Self::Unsupported { feature: feature.into() }
    }

    /// A file that contradicts its format.
    pub fn damaged(problem: impl Into<String>) -> Self {
        Self::Damaged { problem: problem.into() }
    }
}

/// A damaged file described a grid or a range that no array can have.
impl From<crate::error::Error> for Unreadable {
    fn from(error: crate::error::Error) -> Self {
        Self::damaged(error.to_string())
    }
}
