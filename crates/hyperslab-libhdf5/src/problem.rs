//! Why a call was not made, or failed.

use std::ffi::c_int;
use std::fmt;

use crate::Id;
use crate::kinds::Kind;

/// Why a call was not made, or failed.
#[derive(Debug)]
pub enum Problem {
    /// libhdf5 knows no such thing by this identifier.
    NotA(Kind, Id),
    /// The arguments do not fit each other, or what the identifiers stand for.
    Misfit(String),
    /// libhdf5 reported an error.
    Refused(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotA(kind, id) => write!(out, "the identifier {id} is not {} of this libhdf5", kind.name()),
            Self::Misfit(said) => write!(out, "{said}"),
            Self::Refused(what) => write!(out, "libhdf5 refused {what}"),
        }
    }
}

impl std::error::Error for Problem {}

pub(crate) fn refused(what: &str) -> Problem {
    Problem::Refused(what.to_owned())
}

pub(crate) fn succeeded(done: c_int, what: &str) -> Result<(), Problem> {
    if done < 0 { Err(refused(what)) } else { Ok(()) }
}
