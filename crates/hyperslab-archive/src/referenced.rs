//! The files that references name, as stores that are opened on demand.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hyperslab_engine::{Identity, Opener, OtherFile, RemoteStore, Store, Stores};
use hyperslab_parsers::zarr::place_of;

use crate::source_resolver::SourceResolver;
use crate::url::{is_url, location_in};

/// References, the files that they name, and what is known of each file, by position.
pub(crate) struct Referenced {
    pub(crate) name: String,
    pub(crate) files: Vec<OtherFile>,
    pub(crate) identities: HashMap<PathBuf, Identity>,
}

impl Referenced {
    /// For references of which only the names are known.
    pub(crate) fn of_names(name: String, folder: &Path, names: &[String]) -> Self {
        let is_here = folder.to_str().is_none_or(|folder| !is_url(folder));
        let place = |name: &String| {
            if is_here && !is_url(name) { place_of(folder, name) } else { location_in(folder, name) }
        };
        let file = |name| OtherFile { path: place(name), version: None, is_padded: false };
        let files = names.iter().map(file).collect();
        Self { name, files, identities: HashMap::new() }
    }

    /// The files as stores, each opened on demand.
    pub(crate) fn stores(self, resolver: SourceResolver) -> Stores {
        let is_far = |file: &OtherFile| file.path.to_str().is_some_and(is_url);
        let far_requests = self.files.iter().any(is_far).then_some(RemoteStore::MOST_IN_FLIGHT);
        let Self { name, files, identities } = self;
        let references = name.clone();
        let open: Opener = Arc::new(move |path: &Path| {
            let text = path.to_string_lossy();
            if !is_url(&text) {
                return Ok(Arc::new(resolver.open_file(path)?) as Arc<dyn Store>);
            }
            let (location, options) = resolver.location(&text)?;
            let identity = identities.get(path).cloned();
            Ok(Arc::new(RemoteStore::referenced(location, options, identity, references.clone())))
        });
        Stores::of_references(name, files, far_requests, open)
    }
}
