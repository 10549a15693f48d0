//! Why a file at a URL cannot be opened.

use hyperslab_engine::ReadError;

/// Why a file cannot be opened.
#[derive(Clone, Debug)]
pub(crate) struct Failure {
    /// The number of the system's error that is most like it.
    pub number: i32,
    /// What is wrong, for people.
    pub text: String,
}

impl Failure {
    /// A URL or an option that makes no sense, or a place that may not be reached.
    pub fn refused(text: String) -> Self {
        Self { number: libc::EINVAL, text }
    }

    pub fn of(error: &ReadError) -> Self {
        let number = match error {
            ReadError::NoSuchObject { .. } => libc::ENOENT,
            ReadError::Remote { problem, .. } if problem.contains("401") || problem.contains("403") => {
                libc::EACCES
            }
            ReadError::Cancelled => libc::EINTR,
            _ => libc::EIO,
        };
        Self { number, text: error.to_string() }
    }
}
