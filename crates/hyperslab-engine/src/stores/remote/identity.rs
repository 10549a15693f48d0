//! What an object far away was when it was opened.

use object_store::ObjectMeta;

/// What tells an object from what took its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// How long it is.
    pub nbytes: u64,
    /// What its server calls this version of it.
    pub etag: Option<String>,
    /// Seconds since 1970; 0 if the server does not say.
    pub modified: i64,
}

impl Identity {
    pub(super) fn of(meta: &ObjectMeta) -> Self {
        Self { nbytes: meta.size, etag: meta.e_tag.clone(), modified: meta.last_modified.timestamp() }
    }

    /// Whether an answer is about the same object. What a server leaves out of an answer counts as unchanged.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let etags = self.etag.as_ref().zip(other.etag.as_ref());
        let tagged = etags.map_or_else(
            || self.modified == other.modified || self.modified == 0 || other.modified == 0,
            |(ours, theirs)| ours == theirs,
        );
        tagged && self.nbytes == other.nbytes
    }

    /// The tag, if servers may compare it: a weak one never matches (RFC 9110, 13.1.1).
    pub(super) fn strong_etag(&self) -> Option<String> {
        self.etag.clone().filter(|etag| !etag.starts_with("W/"))
    }
}
