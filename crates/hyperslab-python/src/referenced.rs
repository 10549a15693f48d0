//! Files that references name: where they are, and how they are opened.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_engine::{
    FileStore, Identity, Location, Opener, OtherFile, ReadError, RemoteOptions, RemoteStore, Store, Stores,
};
use pyo3::prelude::*;

use crate::remote::RemoteFile;

/// What says how a URL is reached: a Python function that gives a `RemoteFile`; without one, the environment does.
#[derive(Clone, Default)]
pub(crate) struct Reach(Option<Arc<Py<PyAny>>>);

impl Reach {
    pub(crate) fn new(function: Option<Py<PyAny>>) -> Self {
        Self(function.map(Arc::new))
    }

    fn location(&self, url: &str) -> Result<(Location, RemoteOptions), ReadError> {
        let refused = |problem: String| ReadError::System { file: shown(url), problem };
        let Some(function) = &self.0 else {
            let options = RemoteOptions::default();
            return Ok((Location::of_url(url, &options).map_err(refused)?, options));
        };
        Python::attach(|py| {
            let found = function.call1(py, (url,)).map_err(|error| refused(error.value(py).to_string()))?;
            let found = found.bind(py).cast::<RemoteFile>().map_err(|error| refused(error.to_string()))?;
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
    pub(crate) folder: PathBuf,
    pub(crate) files: Vec<OtherFile>,
    pub(crate) identities: HashMap<PathBuf, Identity>,
}

impl Referenced {
    /// Of which nothing is known but their names.
    pub(crate) fn of_names(name: String, folder: PathBuf, names: &[String]) -> Self {
        let file = |name: &String| OtherFile { path: place(&folder, name), version: None, is_padded: false };
        let files = names.iter().map(file).collect();
        Self { name, folder, files, identities: HashMap::new() }
    }

    /// The files as stores, each opened when it is needed.
    pub(crate) fn stores(self, reach: Reach) -> Stores {
        let is_far = |file: &OtherFile| file.path.to_str().is_some_and(is_url);
        let far_requests = self.files.iter().any(is_far).then_some(RemoteStore::MOST_IN_FLIGHT);
        let Self { name, folder, files, identities } = self;
        let (references, is_far) = (name.clone(), folder.to_str().is_some_and(is_url));
        let open: Opener = Arc::new(move |path: &Path| {
            let text = path.to_string_lossy();
            let refused = |said: &str| {
                let problem = format!("references far away lead to it, {said}: that is not followed");
                Err(ReadError::System { file: shown(&text), problem })
            };
            if !is_url(&text) {
                return if is_far {
                    refused("a file of this machine")
                } else {
                    Ok(Arc::new(FileStore::open(path)?) as Arc<dyn Store>)
                };
            }
            if is_far && text.split('/').any(|part| part == "..") {
                return refused("over the folders above them");
            }
            let (location, options) = reach.location(&text)?;
            let identity = identities.get(path).cloned();
            Ok(Arc::new(RemoteStore::referenced(location, options, identity, references.clone())))
        });
        Stores::of_references(name, files, far_requests, open)
    }
}
