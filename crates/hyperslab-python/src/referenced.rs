//! Files that references name: where they are, and how they are opened.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_engine::{
    FileStore, Identity, Location, Opener, OtherFile, ReadError, RemoteOptions, RemoteStore, Store, Stores,
};
use hyperslab_parsers::Allowed;
use pyo3::prelude::*;

use crate::errors;
use crate::hdf5_places::{self, Naming};
use crate::remote::RemoteFile;

/// How whatever a document leads to is reached, and whether it may be: `Allowed` for files of this machine, and for URLs
/// a Python function that gives a `RemoteFile` or refuses; without one, the environment says how.
#[pyclass(frozen, from_py_object, module = "hyperslab._core")]
#[derive(Clone, Default)]
pub(crate) struct Reach {
    document: String,
    function: Option<Arc<Py<PyAny>>>,
    allowed: Allowed,
    /// What was allowed, as people said it.
    listed: Vec<String>,
}

#[pymethods]
#[allow(clippy::needless_pass_by_value)] // PyO3 hands arguments over by value
impl Reach {
    #[new]
    #[pyo3(signature = (document, function=None, places=None, listed=Vec::new()))]
    fn new(
        document: String,
        function: Option<Py<PyAny>>,
        places: Option<Vec<PathBuf>>,
        listed: Vec<String>,
    ) -> Self {
        let allowed = places.map_or_else(Allowed::default, |places| Allowed::only(&places));
        Self { document, function: function.map(Arc::new), allowed, listed }
    }

    /// The file that an external link of a file leads to, where the HDF5 library looks for it; None if there is none.
    fn linked(&self, own: PathBuf, name: &str) -> PyResult<Option<PathBuf>> {
        hdf5_places::find(Naming::Link, &own, name, self).map_err(errors::of_read)
    }

    /// The same of a source of a virtual array.
    fn source(&self, own: PathBuf, name: &str) -> PyResult<Option<PathBuf>> {
        hdf5_places::find(Naming::Virtual, &own, name, self).map_err(errors::of_read)
    }

    /// The external raw file of an array: it is a regular file, and may be led to.
    fn raw(&self, own: PathBuf, name: &str) -> PyResult<PathBuf> {
        let path = hdf5_places::raw(&own, name);
        self.open_file(&path).map_err(errors::of_read)?;
        Ok(path)
    }
}

/// Why a document is not followed to a place.
#[pyfunction]
#[allow(clippy::needless_pass_by_value)] // as above
pub(crate) fn refusal(document: &str, place: &str, allowed: Vec<String>) -> String {
    hyperslab_parsers::refusal(document, place, &allowed)
}

impl Reach {
    pub(crate) fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    pub(crate) fn refused_file(&self, path: &Path) -> ReadError {
        let place = Allowed::place(path);
        let said = hyperslab_parsers::refusal(&self.document, &place.to_string_lossy(), &self.listed);
        ReadError::NotAllowed { said }
    }

    /// A file of this machine: the only way to one that a document names.
    pub(crate) fn open_file(&self, path: &Path) -> Result<FileStore, ReadError> {
        if !self.allowed.permits(path) {
            return Err(self.refused_file(path));
        }
        let store = FileStore::open(path)?;
        if !self.allowed.permits_open(path, store.file()) {
            return Err(self.refused_file(path));
        }
        Ok(store)
    }

    /// Opens files of this machine.
    pub(crate) fn opener(&self) -> Opener {
        let reach = self.clone();
        Arc::new(move |path: &Path| Ok(Arc::new(reach.open_file(path)?) as Arc<dyn Store>))
    }

    /// Fails if a place, a path or a URL, may not be led to. Nothing is opened.
    pub(crate) fn check(&self, place: &Path) -> Result<(), ReadError> {
        match place.to_str().filter(|text| is_url(text)) {
            Some(url) => self.location(url).map(drop),
            None if self.allowed.permits(place) => Ok(()),
            None => Err(self.refused_file(place)),
        }
    }

    pub(crate) fn location(&self, url: &str) -> Result<(Location, RemoteOptions), ReadError> {
        let failed = |problem: String| ReadError::System { file: shown(url), problem };
        let Some(function) = &self.function else {
            let options = RemoteOptions::default();
            return Ok((Location::of_url(url, &options).map_err(failed)?, options));
        };
        Python::attach(|py| {
            let found =
                function.call1(py, (url,)).map_err(|error| match errors::not_allowed(py, &error) {
                    Some(said) => ReadError::NotAllowed { said },
                    None => failed(error.value(py).to_string()),
                })?;
            let found = found.bind(py).cast::<RemoteFile>().map_err(|error| failed(error.to_string()))?;
            Ok((found.get().location.clone(), found.get().options.clone()))
        })
    }
}

pub(crate) fn is_url(path: &str) -> bool {
    path.contains("://")
}

/// A URL without what may be secret: user and password, query.
pub(crate) fn shown(url: &str) -> String {
    let (kind, rest) = match url.split_once("://") {
        Some((kind, rest)) if kind.to_ascii_lowercase().starts_with("http") => (kind, rest),
        _ => return url.to_owned(), // keys of object stores may have any character
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    format!("{kind}://{}/{path}", server.rsplit('@').next().unwrap_or_default())
}

/// The folder of a file, or the URL of the folder of one far away.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Where a file is that references in `folder` name.
pub(crate) fn place(folder: &Path, name: &str) -> PathBuf {
    if is_url(name) { PathBuf::from(name) } else { folder.join(name) }
}

/// References, the files that they name, and what is known of those by their places.
pub(crate) struct Referenced {
    pub(crate) name: String,
    pub(crate) files: Vec<OtherFile>,
    pub(crate) identities: HashMap<PathBuf, Identity>,
}

impl Referenced {
    /// Of which nothing is known but their names.
    pub(crate) fn of_names(name: String, folder: &Path, names: &[String]) -> Self {
        let file = |name: &String| OtherFile { path: place(folder, name), version: None, is_padded: false };
        let files = names.iter().map(file).collect();
        Self { name, files, identities: HashMap::new() }
    }

    /// The files as stores, each opened when it is needed.
    pub(crate) fn stores(self, reach: Reach) -> Stores {
        let is_far = |file: &OtherFile| file.path.to_str().is_some_and(is_url);
        let far_requests = self.files.iter().any(is_far).then_some(RemoteStore::MOST_IN_FLIGHT);
        let Self { name, files, identities } = self;
        let references = name.clone();
        let open: Opener = Arc::new(move |path: &Path| {
            let text = path.to_string_lossy();
            if !is_url(&text) {
                return Ok(Arc::new(reach.open_file(path)?) as Arc<dyn Store>);
            }
            let (location, options) = reach.location(&text)?;
            let identity = identities.get(path).cloned();
            Ok(Arc::new(RemoteStore::referenced(location, options, identity, references.clone())))
        });
        Stores::of_references(name, files, far_requests, open)
    }
}
