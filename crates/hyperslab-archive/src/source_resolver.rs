//! `SourceResolver`: finds and opens the files that a document names, and decides which may be opened.

use std::path::Path;
use std::sync::Arc;

use hyperslab_engine::{FileStore, Location, Opener, ReadError, RemoteOptions, Store};
use hyperslab_parsers::Allowed;

use crate::url::{is_url, shown};

/// Tells how to reach a URL that a document names.
pub trait UrlResolver: Send + Sync {
    /// The location and the options to use; `ReadError::NotAllowed` if the document may not lead there.
    fn location(&self, url: &str) -> Result<(Location, RemoteOptions), ReadError>;
}

/// Finds and opens the files that a document names, and refuses those it may not name. `Allowed` decides for local
/// files, a `UrlResolver` for URLs. Without a `UrlResolver`, the environment tells how to reach URLs.
#[derive(Clone, Default)]
pub struct SourceResolver {
    document: String,
    urls: Option<Arc<dyn UrlResolver>>,
    allowed: Allowed,
    /// What was allowed, in the user's words.
    listed: Vec<String>,
}

impl SourceResolver {
    /// A resolver for what `document` names. Messages show `listed` as what was allowed.
    pub fn new(
        document: String,
        urls: Option<Arc<dyn UrlResolver>>,
        allowed: Allowed,
        listed: Vec<String>,
    ) -> Self {
        Self { document, urls, allowed, listed }
    }

    /// The local files that may be opened.
    pub fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    pub(crate) fn refused_file(&self, path: &Path) -> ReadError {
        let target = Allowed::real_path(path);
        let said = hyperslab_parsers::refusal(&self.document, &target.to_string_lossy(), &self.listed);
        ReadError::NotAllowed { said }
    }

    /// Opens a local file. This is the only way to open one that a document names.
    pub fn open_file(&self, path: &Path) -> Result<FileStore, ReadError> {
        if !self.allowed.permits(path) {
            return Err(self.refused_file(path));
        }
        let store = FileStore::open(path)?;
        if !self.allowed.permits_open(path, store.file()) {
            return Err(self.refused_file(path));
        }
        Ok(store)
    }

    /// Opens local files.
    pub(crate) fn opener(&self) -> Opener {
        let resolver = self.clone();
        Arc::new(move |path: &Path| Ok(Arc::new(resolver.open_file(path)?) as Arc<dyn Store>))
    }

    /// Fails if the document may not lead to `target`, a path or a URL. Opens nothing.
    pub(crate) fn check(&self, target: &Path) -> Result<(), ReadError> {
        match target.to_str().filter(|text| is_url(text)) {
            Some(url) => self.location(url).map(drop),
            None if self.allowed.permits(target) => Ok(()),
            None => Err(self.refused_file(target)),
        }
    }

    /// How to reach a URL.
    pub(crate) fn location(&self, url: &str) -> Result<(Location, RemoteOptions), ReadError> {
        if let Some(urls) = &self.urls {
            return urls.location(url);
        }
        let options = RemoteOptions::default();
        let failed = |problem: String| ReadError::System { file: shown(url), problem };
        Ok((Location::of_url(url, &options).map_err(failed)?, options))
    }
}
