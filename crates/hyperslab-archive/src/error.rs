//! Why an archive cannot be opened, or one of its arrays cannot be read.

use std::path::Path;

use hyperslab_core::{PlanError, Unreadable};
use hyperslab_engine::ReadError;
use hyperslab_parsers as parsers;
use thiserror::Error;

/// An error of the caller's own code, which an archive called. It is handed back unchanged.
pub type CallerError = Box<dyn std::error::Error + Send + Sync>;

/// Why an archive cannot be opened, or one of its arrays cannot be read. Every message names the file.
#[derive(Debug, Error)]
pub enum Error {
    /// The metadata of a file are damaged or of an unsupported kind.
    #[error("{file}: {problem}")]
    Parse {
        /// The file.
        file: String,
        /// What is wrong.
        problem: parsers::Error,
    },
    /// Bytes cannot be read, or a selection cannot be planned.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The caller's own code failed: an interrupt check, a table reader, or what waits between commits.
    #[error("{0}")]
    Caller(CallerError),
}

impl Error {
    /// The metadata of a file are wrong.
    pub fn parse(file: impl Into<String>, problem: parsers::Error) -> Self {
        Self::Parse { file: file.into(), problem }
    }

    /// The same, for a file whose path is known.
    pub(crate) fn parse_of(path: &Path, problem: parsers::Error) -> Self {
        Self::parse(path.display().to_string(), problem)
    }
}

/// Why an array has no segments. Does not name the array yet.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The array is of an unsupported kind, or contradicts itself.
    Plan(PlanError),
    /// The file of a source cannot be read.
    Open(Box<Error>),
}

impl Problem {
    /// Makes it the error of an array, given its path in a file.
    pub(crate) fn of_array(self, file: &str, array: &str) -> Error {
        match self {
            Self::Plan(problem) => plan_error(file, array, problem),
            Self::Open(error) => *error,
        }
    }
}

impl From<Unreadable> for Problem {
    fn from(reason: Unreadable) -> Self {
        Self::Plan(reason.into())
    }
}

impl From<PlanError> for Problem {
    fn from(problem: PlanError) -> Self {
        Self::Plan(problem)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Self::Open(Box::new(error))
    }
}

impl From<ReadError> for Problem {
    fn from(error: ReadError) -> Self {
        Self::from(Error::from(error))
    }
}

/// A selection of an array cannot be planned.
pub(crate) fn plan_error(file: &str, array: &str, problem: PlanError) -> Error {
    Error::Read(ReadError::Plan { file: file.to_owned(), array: array.to_owned(), problem })
}
