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

    /// Whether an answer is about the same object. What told it apart at first must be in every answer: a server that
    /// stops to say it may send another object.
    pub(super) fn agrees(&self, answer: &Self) -> bool {
        let is_of_time = self.modified == answer.modified;
        let is_same = match (&self.etag, &answer.etag) {
            (Some(ours), Some(theirs)) => ours == theirs && (is_strong(ours) || is_of_time),
            (Some(_), None) => false,
            (None, theirs) => is_of_time && (self.modified != 0 || theirs.is_none()),
        };
        is_same && self.nbytes == answer.nbytes
    }

    /// Whether an answer lacks what told the object apart at first.
    pub(super) fn is_withheld_by(&self, answer: &Self) -> bool {
        let is_untimed = self.modified != 0 && answer.modified == 0;
        self.nbytes == answer.nbytes && answer.etag.is_none() && (self.etag.is_some() || is_untimed)
    }

    /// The tag, if servers may compare it. A weak tag never matches (RFC 9110, 13.1.1).
    pub(super) fn strong_etag(&self) -> Option<String> {
        self.etag.clone().filter(|etag| is_strong(etag))
    }
}

/// A weak tag may stay when bytes change.
fn is_strong(etag: &str) -> bool {
    !etag.starts_with("W/")
}

#[cfg(test)]
mod tests {
    use super::Identity;

    #[test]
    fn what_was_said_once_must_be_said_again() {
        let of = |nbytes, etag: &str, modified| Identity {
            nbytes,
            etag: (!etag.is_empty()).then(|| etag.to_owned()),
            modified,
        };
        for (opened, same) in [
            (of(9, "\"a\"", 5), of(9, "\"a\"", 5)),
            (of(9, "\"a\"", 5), of(9, "\"a\"", 6)), // another server of the same content
            (of(9, "\"a\"", 5), of(9, "\"a\"", 0)),
            (of(9, "W/\"a\"", 5), of(9, "W/\"a\"", 5)),
            (of(9, "", 5), of(9, "", 5)),
            (of(9, "", 5), of(9, "\"a\"", 5)),
            (of(9, "", 0), of(9, "", 0)),
        ] {
            assert!(opened.agrees(&same), "{opened:?} {same:?}");
        }
        for (opened, other) in [
            (of(9, "\"a\"", 5), of(8, "\"a\"", 5)),
            (of(9, "\"a\"", 5), of(9, "\"b\"", 5)),
            (of(9, "\"a\"", 5), of(9, "", 5)),
            (of(9, "\"a\"", 0), of(9, "", 0)),
            (of(9, "W/\"a\"", 5), of(9, "W/\"a\"", 6)),
            (of(9, "W/\"a\"", 5), of(9, "W/\"a\"", 0)),
            (of(9, "", 5), of(9, "", 6)),
            (of(9, "", 5), of(9, "", 0)),
            (of(9, "", 5), of(9, "\"a\"", 6)),
            (of(9, "", 0), of(9, "", 5)),
            (of(9, "", 0), of(9, "\"a\"", 0)),
            (of(9, "", 0), of(8, "", 0)),
        ] {
            assert!(!opened.agrees(&other), "{opened:?} {other:?}");
        }
    }
}
