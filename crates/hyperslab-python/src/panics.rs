//! The one way from Python into work that may take long, or that other people's crates do: a panic becomes an error of
//! ours. `PyO3` would raise a `PanicException`, which `except Exception` does not catch.

use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};

use pyo3::prelude::*;

use crate::errors;

/// How much of a source file's path is shown: crate, `src`, folder, file.
const MOST_PARTS: usize = 4;

thread_local! {
    /// Where this thread panicked last.
    static PLACE: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Notes where a panic was, and does not print it: whoever catches it says it in one line. `RUST_BACKTRACE` still prints
/// it.
pub(crate) fn note_panics() {
    let print = take_hook();
    set_hook(Box::new(move |info| {
        let place = info.location().map(|at| format!("{}:{}", short(at.file()), at.line()));
        PLACE.with(|last| last.replace(place));
        if std::env::var_os("RUST_BACKTRACE").is_some_and(|asked| asked != "0") {
            print(info);
        }
    }));
}

/// Works without holding the interpreter.
#[allow(clippy::disallowed_methods)] // clippy.toml: everyone else comes here
pub(crate) fn detached<T: Send>(py: Python<'_>, work: impl FnOnce() -> T + Send) -> PyResult<T> {
    py.detach(|| catch_unwind(AssertUnwindSafe(work))).map_err(|panic| fault(&*panic))
}

/// Works while holding the interpreter.
pub(crate) fn caught<T>(work: impl FnOnce() -> T) -> PyResult<T> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| fault(&*panic))
}

fn fault(panic: &(dyn Any + Send)) -> PyErr {
    let said = panic.downcast_ref::<&str>().copied();
    let said =
        said.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no reason given");
    let place = PLACE.with(RefCell::take).unwrap_or_else(|| "an unknown place".to_owned());
    errors::internal(format!(
        "a fault in hyperslab or a library that it uses, at {place}: {said}. Nothing was changed; please report it"
    ))
}

fn short(path: &str) -> &str {
    let start = path.rmatch_indices('/').nth(MOST_PARTS - 1).map_or(0, |(slash, _)| slash + 1);
    path.get(start..).unwrap_or(path)
}
