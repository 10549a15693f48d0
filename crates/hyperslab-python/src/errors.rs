//! Converts errors of the other crates to Python's. A missing element or chunk is an `IndexError`.

use hyperslab_core::{Error, PlanError, Unreadable};
use hyperslab_engine as engine;
use hyperslab_parsers as parsers;
use pyo3::exceptions::{PyIndexError, PyRuntimeError, PyValueError};
use pyo3::{PyErr, Python};

/// The errors of `hyperslab/errors.py`.
mod python {
    pyo3::import_exception!(hyperslab.errors, DamagedFile);
    pyo3::import_exception!(hyperslab.errors, FileChanged);
    pyo3::import_exception!(hyperslab.errors, InternalError);
    pyo3::import_exception!(hyperslab.errors, NoSuchRemoteFile);
    pyo3::import_exception!(hyperslab.errors, NotAllowed);
    pyo3::import_exception!(hyperslab.errors, ReadError);
    pyo3::import_exception!(hyperslab.errors, RemoteError);
    pyo3::import_exception!(hyperslab.errors, Unsupported);
    pyo3::import_exception!(hyperslab.errors, UsageError);
}

#[allow(clippy::needless_pass_by_value)] // map_err passes the error by value
pub(crate) fn to_python(error: Error) -> PyErr {
    let message = error.to_string();
    match error {
        Error::OutOfBounds { .. } | Error::NoSuchChunk { .. } | Error::NoSuchLinearChunk { .. } => {
            PyIndexError::new_err(message)
        }
        Error::NdimMismatch { .. }
        | Error::Zero { .. }
        | Error::OverlappingBlocks { .. }
        | Error::TooLarge { .. }
        | Error::TooScattered { .. }
        | Error::PointsWithoutAxes
        | Error::RaggedPoints { .. } => PyValueError::new_err(message),
    }
}

/// An archive that could not be opened, or an array that could not be read.
pub(crate) fn of_archive(error: hyperslab_archive::Error) -> PyErr {
    let message = error.to_string();
    match error {
        hyperslab_archive::Error::Parse { problem, .. } => of_parser(&problem, message),
        hyperslab_archive::Error::Read(error) => of_read(error),
        hyperslab_archive::Error::Caller(error) => of_caller(error),
    }
}

/// The exception that Python raised when Rust called it.
pub(crate) fn of_caller(error: hyperslab_archive::CallerError) -> PyErr {
    match error.downcast::<PyErr>() {
        Ok(raised) => *raised,
        Err(error) => PyRuntimeError::new_err(error.to_string()),
    }
}

fn of_parser(problem: &parsers::Error, message: String) -> PyErr {
    match problem {
        parsers::Error::Unsupported { .. } | parsers::Error::UnknownFormat { .. } => unsupported(message),
        parsers::Error::Fetch(_) => python::ReadError::new_err(message),
        _ => python::DamagedFile::new_err(message),
    }
}

/// A read that failed.
pub(crate) fn of_read(error: engine::ReadError) -> PyErr {
    let message = error.to_string();
    match error {
        engine::ReadError::Plan { problem, .. } => of_plan(problem, message),
        engine::ReadError::Chunk { problem, .. } => of_chunk(&problem, message),
        engine::ReadError::Truncated { .. } => python::DamagedFile::new_err(message),
        engine::ReadError::FileChanged { .. }
        | engine::ReadError::Unidentified { .. }
        | engine::ReadError::StaleReferences { .. } => python::FileChanged::new_err(message),
        engine::ReadError::NoSuchObject { .. } => python::NoSuchRemoteFile::new_err(message),
        engine::ReadError::Remote { .. } => python::RemoteError::new_err(message),
        engine::ReadError::NotAllowed { .. } => python::NotAllowed::new_err(message),
        engine::ReadError::System { .. }
        | engine::ReadError::Unfetched { .. }
        | engine::ReadError::Cancelled => python::ReadError::new_err(message),
        engine::ReadError::OutputSize { .. } => PyValueError::new_err(message),
    }
}

fn of_plan(problem: PlanError, message: String) -> PyErr {
    match problem {
        PlanError::Selection(error) => to_python(error),
        PlanError::Unreadable(reason) => unreadable(&reason, message),
    }
}

fn of_chunk(problem: &engine::Error, message: String) -> PyErr {
    match problem {
        engine::Error::UnknownCodec { .. }
        | engine::Error::Unsupported { .. }
        | engine::Error::OutOfMemory { .. } => unsupported(message),
        _ => python::DamagedFile::new_err(message),
    }
}

/// A part of a file that cannot be read.
pub(crate) fn unreadable(reason: &Unreadable, message: String) -> PyErr {
    match reason {
        Unreadable::Unsupported { .. } => unsupported(message),
        Unreadable::Damaged { .. } => python::DamagedFile::new_err(message),
        Unreadable::Unfetched { .. } => python::ReadError::new_err(message),
    }
}

/// A part of a file that contradicts its format.
pub(crate) fn damaged(message: String) -> PyErr {
    python::DamagedFile::new_err(message)
}

/// The same error. If it is damage, its message begins with the location.
pub(crate) fn at(py: Python<'_>, error: PyErr, place: &str) -> PyErr {
    let is_damage = error.is_instance_of::<python::DamagedFile>(py);
    if is_damage { damaged(format!("{place}: {}", error.value(py))) } else { error }
}

/// An unsupported feature.
pub(crate) fn unsupported(message: String) -> PyErr {
    python::Unsupported::new_err(message)
}

/// The message of an error that says that a document may not lead somewhere; `None` for other errors.
pub(crate) fn not_allowed(py: Python<'_>, error: &PyErr) -> Option<String> {
    error.is_instance_of::<python::NotAllowed>(py).then(|| error.value(py).to_string())
}

/// Bytes that could not be read.
pub(crate) fn read(message: String) -> PyErr {
    python::ReadError::new_err(message)
}

/// A fault of our own, or of a crate that we use.
pub(crate) fn internal(message: String) -> PyErr {
    python::InternalError::new_err(message)
}

/// An invalid request.
pub(crate) fn usage(message: String) -> PyErr {
    python::UsageError::new_err(message)
}
