//! Why a file cannot be opened, before it is an exception.

use std::path::Path;

use hyperslab_engine::ReadError;
use hyperslab_parsers as parsers;
use pyo3::PyErr;

use crate::errors;
use crate::sources::Interrupts;

/// Why a file could not be opened.
pub(crate) enum Failure {
    Parse(parsers::Error),
    Read(ReadError),
    /// The handler of a signal raised.
    Raised(PyErr),
}

impl From<parsers::Error> for Failure {
    fn from(error: parsers::Error) -> Self {
        Self::Parse(error)
    }
}

impl From<ReadError> for Failure {
    fn from(error: ReadError) -> Self {
        Self::Read(error)
    }
}

impl Failure {
    pub(crate) fn into_python(self, path: &Path) -> PyErr {
        match self {
            Self::Parse(error) => errors::of_parser(&path.display().to_string(), error),
            Self::Read(error) => errors::of_read(error),
            Self::Raised(error) => error,
        }
    }

    /// The exception of a file far away, unless the handler of a signal raised another meanwhile.
    pub(crate) fn raised(self, interrupts: Interrupts, name: &str) -> PyErr {
        interrupts.raised().unwrap_or_else(|| self.into_python(Path::new(name)))
    }
}
