//! Why there are no variables.

use thiserror::Error;

/// What is asked cannot be modelled.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ModelError {
    /// The selection does not fit the array, or a number is too large.
    #[error(transparent)]
    Geometry(#[from] hyperslab_core::Error),
    /// Our own engine has no plan for the array.
    #[error(transparent)]
    Plan(#[from] hyperslab_core::PlanError),
    /// A parameter has no meaning.
    #[error("{what} is {value}: {remedy}")]
    Parameter {
        /// Which.
        what: &'static str,
        /// What was given.
        value: String,
        /// What to give.
        remedy: &'static str,
    },
}

impl ModelError {
    #[allow(clippy::needless_pass_by_value)] // numbers and strings alike, at the end of a path that fails
    pub(crate) fn parameter(what: &'static str, value: impl std::fmt::Display, remedy: &'static str) -> Self {
        Self::Parameter { what, value: value.to_string(), remedy }
    }
}
