//! Why there are no variables.

use thiserror::Error;

/// A question that cannot be modelled.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    /// The selection does not fit the array, or a number is too large.
    #[error(transparent)]
    Geometry(#[from] hyperslab_core::Error),
    /// Our own engine cannot plan the read.
    #[error(transparent)]
    Plan(#[from] hyperslab_core::PlanError),
    /// A parameter is invalid.
    #[error("{what} is {value}: {remedy}")]
    Parameter {
        /// The parameter.
        what: &'static str,
        /// Its value.
        value: String,
        /// What to give instead.
        remedy: &'static str,
    },
    /// Requests to servers that cannot be simulated.
    #[error("{0}")]
    Requests(String),
}

impl ModelError {
    #[allow(clippy::needless_pass_by_value)] // numbers and strings alike, on a failing path
    pub(crate) fn parameter(what: &'static str, value: impl std::fmt::Display, remedy: &'static str) -> Self {
        Self::Parameter { what, value: value.to_string(), remedy }
    }
}
