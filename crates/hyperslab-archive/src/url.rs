//! Locations of files: local paths, and URLs of remote files.

use std::path::{Path, PathBuf};

/// Whether a location is a URL.
pub(crate) fn is_url(location: &str) -> bool {
    location.contains("://")
}

/// A URL without its secrets: user, password and query.
pub fn shown(url: &str) -> String {
    let (kind, rest) = match url.split_once("://") {
        Some((kind, rest)) if kind.to_ascii_lowercase().starts_with("http") => (kind, rest),
        _ => return url.to_owned(), // keys of object stores may have any character
    };
    let rest = rest.split(['?', '#']).next().unwrap_or_default();
    let (server, path) = rest.split_once('/').unwrap_or((rest, ""));
    format!("{kind}://{}/{path}", server.rsplit('@').next().unwrap_or_default())
}

/// The folder of a file, or the URL of a remote file's folder.
pub(crate) fn folder_of(path: &Path) -> PathBuf {
    path.parent().map(Path::to_owned).unwrap_or_default()
}

/// Where a file is that a document in `folder` names.
pub(crate) fn location_in(folder: &Path, name: &str) -> PathBuf {
    if is_url(name) { PathBuf::from(name) } else { folder.join(name) }
}

/// What a name in a remote file means: a URL, or a local path.
pub(crate) fn beside(url: &str, other: &str) -> String {
    if is_url(other) || Path::new(other).is_absolute() {
        return other.to_owned();
    }
    let base = url.split(['?', '#']).next().unwrap_or_default();
    let folder = base.rsplit_once('/').map(|(folder, _)| folder).unwrap_or_default();
    format!("{folder}/{other}")
}
