//! Why an archive cannot be opened, or an array of it not be read.

use std::path::Path;

use hyperslab_core::{PlanError, Unreadable};
use hyperslab_engine::ReadError;
use hyperslab_parsers as parsers;
use thiserror::Error;

/// An error of the caller's own code, which an archive called: it is handed back as it is.
pub type CallerError = Box<dyn std::error::Error + Send + Sync>;

/// Why an archive cannot be opened, or an array of it not be read. Every message names the file.
#[derive(Debug, Error)]
pub enum Error {
    /// The metadata of a file are damaged, or of a kind that we cannot read.
    #[error("{file}: {problem}")]
    Parse {
        /// The file.
        file: String,
        /// What is wrong.
        problem: parsers::Error,
    },
    /// Bytes cannot be read, or there is no plan for a selection.
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

    /// The same of a file whose path is known.
    pub(crate) fn parse_of(path: &Path, problem: parsers::Error) -> Self {
        Self::parse(path.display().to_string(), problem)
    }
}

/// Why an array has no segments, before the array's name is known.
#[derive(Debug)]
pub(crate) enum Problem {
    /// It is of a kind that we cannot read, or contradicts itself.
    Plan(PlanError),
    /// The file of a source cannot be read.
    Open(Box<Error>),
}

impl Problem {
    /// The error of an array, by its path in a file.
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

/// There is no plan for a selection of an array.
pub(crate) fn plan_error(file: &str, array: &str, problem: PlanError) -> Error {
    Error::Read(ReadError::Plan { file: file.to_owned(), array: array.to_owned(), problem })
}
