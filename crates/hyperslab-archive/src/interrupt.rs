//! Long work that the caller can interrupt.

use std::sync::{Mutex, PoisonError};

use crate::error::{CallerError, Error};

/// Lets the caller interrupt long work: reads, and waiting for remote files.
pub trait InterruptCheck: Send + Sync {
    /// Called several times a second on the caller's thread. An error stops the work and comes back as `Error::Caller`.
    fn check(&self) -> Result<(), CallerError>;
}

/// Never interrupts.
#[derive(Clone, Copy, Debug, Default)]
pub struct NeverInterrupted;

impl InterruptCheck for NeverInterrupted {
    fn check(&self) -> Result<(), CallerError> {
        Ok(())
    }
}

/// One piece of long work, and the error with which the caller stopped it.
pub(crate) struct Interruptible<'a> {
    check: &'a dyn InterruptCheck,
    raised: Mutex<Option<CallerError>>,
}

impl<'a> Interruptible<'a> {
    pub(crate) fn new(check: &'a dyn InterruptCheck) -> Self {
        Self { check, raised: Mutex::default() }
    }

    /// Whether the caller wants to stop.
    pub(crate) fn is_over(&self) -> bool {
        let Err(error) = self.check.check() else { return false };
        *self.raised.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
        true
    }

    /// Why the work failed. The caller's error, if any, came first.
    pub(crate) fn failure(self, error: impl Into<Error>) -> Error {
        self.raised().unwrap_or_else(|| error.into())
    }

    /// The error with which the caller stopped the work.
    pub(crate) fn raised(self) -> Option<Error> {
        self.raised.into_inner().unwrap_or_else(PoisonError::into_inner).map(Error::Caller)
    }
}
