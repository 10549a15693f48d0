//! What a remote object was when it was opened.

use object_store::ObjectMeta;

/// Tells an object from one that replaced it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// How long it is.
    pub nbytes: u64,
    /// The server's name for this version.
    pub etag: Option<String>,
    /// Seconds since 1970; 0 if the server does not say.
    pub modified: i64,
}

impl Identity {
    pub(super) fn of(meta: &ObjectMeta) -> Self {
        Self { nbytes: meta.size, etag: meta.e_tag.clone(), modified: meta.last_modified.timestamp() }
    }

    /// Whether an answer is about the same object. What the answer leaves out counts as unchanged.
    pub(super) fn agrees(&self, other: &Self) -> bool {
        let etags = self.etag.as_ref().zip(other.etag.as_ref());
        let tagged = etags.map_or_else(
            || self.modified == other.modified || self.modified == 0 || other.modified == 0,
            |(ours, theirs)| ours == theirs,
        );
        tagged && self.nbytes == other.nbytes
    }

    /// The tag, if servers may compare it. A weak tag never matches (RFC 9110, 13.1.1).
    pub(super) fn strong_etag(&self) -> Option<String> {
        self.etag.clone().filter(|etag| !etag.starts_with("W/"))
    }
}
