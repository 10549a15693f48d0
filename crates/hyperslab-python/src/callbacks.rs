//! Python code that Rust calls back, behind the small traits of `hyperslab-archive`.

use std::sync::Arc;

use hyperslab_archive::{BetweenCommits, CallerError, InterruptCheck};
use pyo3::prelude::*;

/// Runs Python's signal handlers, which may raise.
pub(crate) struct Signals;

impl InterruptCheck for Signals {
    fn check(&self) -> Result<(), CallerError> {
        #[allow(clippy::redundant_closure_for_method_calls)] // a path is of one lifetime only
        Python::attach(|py| py.check_signals()).map_err(CallerError::from)
    }
}

/// A function that returns a context manager. No commit overwrites the file inside that context.
pub(crate) struct Context(Py<PyAny>);

impl Context {
    pub(crate) fn of(function: Py<PyAny>) -> Arc<dyn BetweenCommits> {
        Arc::new(Self(function))
    }
}

impl BetweenCommits for Context {
    fn run(&self, read: &mut dyn FnMut()) -> Result<(), CallerError> {
        let context = Python::attach(|py| {
            let context = self.0.call0(py)?;
            context.call_method0(py, "__enter__").map(|_| context)
        });
        let context: Py<PyAny> = context.map_err(CallerError::from)?;
        read();
        let nothing = |py: Python<'_>| (py.None(), py.None(), py.None());
        let left = Python::attach(|py| context.call_method1(py, "__exit__", nothing(py)).map(drop));
        left.map_err(CallerError::from)
    }
}
