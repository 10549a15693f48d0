//! `SourceResolver`: how the files are found and opened that a document names, and which of them may be opened.

use std::path::Path;
use std::sync::Arc;

use hyperslab_engine::{FileStore, Location, Opener, ReadError, RemoteOptions, Store};
use hyperslab_parsers::Allowed;

use crate::url::{is_url, shown};

/// Says how a URL that a document names is reached.
pub trait UrlResolver: Send + Sync {
    /// Where it leads and with which options; `ReadError::NotAllowed` if the document may not lead there.
    fn location(&self, url: &str) -> Result<(Location, RemoteOptions), ReadError>;
}

/// Finds and opens the files that a document names, and refuses those that it may not name: `Allowed` decides for files
/// of this machine, a `UrlResolver` for URLs. Without one, the environment says how URLs are reached.
#[derive(Clone, Default)]
pub struct SourceResolver {
    document: String,
    urls: Option<Arc<dyn UrlResolver>>,
    allowed: Allowed,
    /// What was allowed, as people said it.
    listed: Vec<String>,
}

impl SourceResolver {
    /// For what `document` names; `listed` is what was allowed, for messages.
    pub fn new(
        document: String,
        urls: Option<Arc<dyn UrlResolver>>,
        allowed: Allowed,
        listed: Vec<String>,
    ) -> Self {
        Self { document, urls, allowed, listed }
    }

    /// Which files of this machine may be opened.
    pub fn allowed(&self) -> &Allowed {
        &self.allowed
    }

    pub(crate) fn refused_file(&self, path: &Path) -> ReadError {
        let target = Allowed::real_path(path);
        let said = hyperslab_parsers::refusal(&self.document, &target.to_string_lossy(), &self.listed);
        ReadError::NotAllowed { said }
    }

    /// Open a file of this machine. There is no other way to one that a document names.
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

    /// Opens files of this machine.
    pub(crate) fn opener(&self) -> Opener {
        let resolver = self.clone();
        Arc::new(move |path: &Path| Ok(Arc::new(resolver.open_file(path)?) as Arc<dyn Store>))
    }

    /// Fails if a document may not lead to a target (a path or a URL). Nothing is opened.
    pub(crate) fn check(&self, target: &Path) -> Result<(), ReadError> {
        match target.to_str().filter(|text| is_url(text)) {
            Some(url) => self.location(url).map(drop),
            None if self.allowed.permits(target) => Ok(()),
            None => Err(self.refused_file(target)),
        }
    }

    /// How a URL is reached.
    pub(crate) fn location(&self, url: &str) -> Result<(Location, RemoteOptions), ReadError> {
        if let Some(urls) = &self.urls {
            return urls.location(url);
        }
        let options = RemoteOptions::default();
        let failed = |problem: String| ReadError::System { file: shown(url), problem };
        Ok((Location::of_url(url, &options).map_err(failed)?, options))
    }
}
