//! `DocumentResolver`: finds and opens the files that one document names, and refuses those it may not name.

use std::path::PathBuf;
use std::sync::Arc;

use hyperslab_archive::{SourceResolver, UrlResolver, shown};
use hyperslab_engine::{Location, ReadError, RemoteOptions};
use hyperslab_parsers::Allowed;
use pyo3::prelude::*;

use crate::errors;
use crate::remote::RemoteFile;

/// A `SourceResolver`: `Allowed` decides for local files, and a function returns a `RemoteFile` for a URL or refuses.
/// Without a function, the environment tells how to reach URLs.
#[pyclass(frozen, from_py_object, module = "hyperslab._core")]
#[derive(Clone, Default)]
pub(crate) struct DocumentResolver(pub(crate) SourceResolver);

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl DocumentResolver {
    #[new]
    #[pyo3(signature = (document, function=None, paths=None, listed=Vec::new()))]
    fn new(
        document: String,
        function: Option<Py<PyAny>>,
        paths: Option<Vec<PathBuf>>,
        listed: Vec<String>,
    ) -> Self {
        let allowed = paths.map_or_else(Allowed::default, |paths| Allowed::only(&paths));
        let urls = function.map(|function| Arc::new(Function(function)) as Arc<dyn UrlResolver>);
        Self(SourceResolver::new(document, urls, allowed, listed))
    }

    /// The file that an external link leads to, searched for as the HDF5 library does; None if there is none.
    fn linked(&self, own: PathBuf, name: &str) -> PyResult<Option<PathBuf>> {
        self.0.linked_file(&own, name).map_err(errors::of_read)
    }

    /// The same for a source of a virtual array.
    fn source(&self, own: PathBuf, name: &str) -> PyResult<Option<PathBuf>> {
        self.0.virtual_source(&own, name).map_err(errors::of_read)
    }

    /// The external raw file of an array. Fails unless it is a regular file that may be opened.
    fn raw(&self, own: PathBuf, name: &str) -> PyResult<PathBuf> {
        self.0.raw_file(&own, name).map_err(errors::of_read)
    }
}

/// Why a document is not followed to a location.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // as above
pub(crate) fn refusal(document: &str, location: &str, allowed: Vec<String>) -> String {
    hyperslab_parsers::refusal(document, location, &allowed)
}

/// Returns a `RemoteFile` for a URL, or raises `NotAllowed`.
struct Function(Py<PyAny>);

impl UrlResolver for Function {
    fn location(&self, url: &str) -> Result<(Location, RemoteOptions), ReadError> {
        let failed = |problem: String| ReadError::System { file: shown(url), problem };
        Python::attach(|py| {
            let found = self.0.call1(py, (url,)).map_err(|error| match errors::not_allowed(py, &error) {
                Some(said) => ReadError::NotAllowed { said },
                None => failed(error.value(py).to_string()),
            })?;
            let found = found.bind(py).cast::<RemoteFile>().map_err(|error| failed(error.to_string()))?;
            let file = &found.get().0;
            Ok((file.location.clone(), file.options.clone()))
        })
    }
}
