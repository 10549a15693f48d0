//! Long work that the caller may end.

use std::sync::{Mutex, PoisonError};

use crate::error::{CallerError, Error};

/// Lets the caller end long work: reads, and whatever waits for files far away.
pub trait InterruptCheck: Send + Sync {
    /// Called several times a second by the thread that the caller waits with. An error ends the work, and is handed
    /// back as `Error::Caller`.
    fn check(&self) -> Result<(), CallerError>;
}

/// Work goes on until it is done.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverInterrupted;

impl InterruptCheck for NeverInterrupted {
    fn check(&self) -> Result<(), CallerError> {
        Ok(())
    }
}

/// One piece of long work, and the error with which the caller ended it.
pub(crate) struct Interruptible<'a> {
    check: &'a dyn InterruptCheck,
    raised: Mutex<Option<CallerError>>,
}

impl<'a> Interruptible<'a> {
    pub(crate) fn new(check: &'a dyn InterruptCheck) -> Self {
        Self { check, raised: Mutex::default() }
    }

    /// Whether the caller wants the work to end.
    pub(crate) fn is_over(&self) -> bool {
        let Err(error) = self.check.check() else { return false };
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        true
    }

    /// Why the work failed: the caller's error, if there is one, came first.
    pub(crate) fn failure(self, error: impl Into<Error>) -> Error {
        self.raised().unwrap_or_else(|| error.into())
    }

    /// The error with which the caller ended the work.
    pub(crate) fn raised(self) -> Option<Error> {
        self.raised.into_inner().unwrap_or_else(PoisonError::into_inner).map(Error::Caller)
    }
}
