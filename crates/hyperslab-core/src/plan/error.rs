//! Why a selection of an array cannot be planned.

use thiserror::Error;

use crate::error::Error;
use crate::unreadable::Unreadable;

/// Why there is no plan.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum PlanError {
    /// The selection does not fit the array.
    #[error(transparent)]
    Selection(#[from] Error),
    /// The array cannot be read, or not in this way.
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
}

impl PlanError {
    pub(crate) fn unsupported(feature: impl Into<String>) -> Self {
        Unreadable::unsupported(feature).into()
    }

    pub(crate) fn damaged(problem: impl Into<String>) -> Self {
        Unreadable::damaged(problem).into()
    }
}
