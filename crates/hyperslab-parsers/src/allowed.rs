//! `Allowed`: the local files that a document may lead to. The document may be a file of references, a link, or a
//! virtual array.
//!
//! docs/security.md states the rule. Python applies it to each document (`archive/far/allowed.py`).

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Everything, or only what lies below these paths.
#[derive(Clone, Debug, Default)]
pub struct Allowed(Option<Arc<[PathBuf]>>);

impl Allowed {
    /// Allows these files, these folders, and what the folders contain. Links in the given paths are resolved now.
    pub fn only(paths: &[PathBuf]) -> Self {
        Self(Some(paths.iter().map(|path| real(path)).collect()))
    }

    /// Whether it refuses anything.
    pub fn is_narrow(&self) -> bool {
        self.0.is_some()
    }

    /// Whether a path may be opened. Follows links in the path.
    pub fn permits(&self, path: &Path) -> bool {
        self.0.is_none() || self.holds(&real(path))
    }

    /// Whether an open file may be used. Someone may have replaced the path by a link since it was checked.
    pub fn permits_open(&self, path: &Path, file: &File) -> bool {
        self.0.is_none() || real_path_of(path, file).is_some_and(|real| self.holds(&real))
    }

    /// The path with all links resolved. A refusal names it.
    pub fn real_path(path: &Path) -> PathBuf {
        real(path)
    }

    fn holds(&self, real: &Path) -> bool {
        self.0.iter().flat_map(|paths| paths.iter()).any(|allowed| real.starts_with(allowed))
    }
}

/// Why a document is not followed to a location, and what to do. Every refusal uses these words.
pub fn refusal(document: &str, location: &str, allowed: &[String]) -> String {
    let folder = location.rsplit_once(['/', '\\']).map_or(location, |(folder, _)| folder);
    let folder = if folder.is_empty() || folder.ends_with('/') { location } else { folder };
    let mut listed: Vec<String> = allowed.iter().map(|allowed| format!("{allowed:?}")).collect();
    listed.push(format!("{folder:?}"));
    let listed = listed.join(", ");
    let said = format!(
        "{} leads to {location:?}, which is not allowed, so it is not followed",
        document.escape_debug()
    );
    format!("{said}. If you trust the file, open it with allowed=[{listed}] (docs/security.md)")
}

/// A path without links, dots and relative parts. What does not exist is resolved as far as possible.
fn real(path: &Path) -> PathBuf {
    let Ok(path) = std::path::absolute(path) else { return path.to_owned() };
    path.canonicalize().unwrap_or_else(|_| {
        let mut plain = PathBuf::new();
        for component in path.components() {
            match component {
                Component::ParentDir => drop(plain.pop()),
                Component::CurDir => {}
                other => plain.push(other),
            }
        }
        plain
    })
}

#[cfg(target_os = "linux")]
fn real_path_of(_: &Path, file: &File) -> Option<PathBuf> {
    use std::os::fd::AsRawFd;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

#[cfg(all(unix, not(target_os = "linux")))]
fn real_path_of(path: &Path, file: &File) -> Option<PathBuf> {
    use std::os::unix::fs::MetadataExt;
    let real = path.canonicalize().ok()?;
    let (one, other) = (std::fs::metadata(&real).ok()?, file.metadata().ok()?);
    ((one.dev(), one.ino()) == (other.dev(), other.ino())).then_some(real)
}

#[cfg(not(unix))]
fn real_path_of(path: &Path, _: &File) -> Option<PathBuf> {
    path.canonicalize().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Allowed, refusal};
    use std::path::{Path, PathBuf};

    #[test]
    fn names_that_lead_out_are_refused() {
        let allowed = Allowed::only(&[PathBuf::from("/no/such/data")]);
        assert!(allowed.permits(Path::new("/no/such/data/a/../b.bin")));
        for outside in ["/no/such/data/../b", "/no/such/database", "/no/such", "/etc/passwd", "b"] {
            assert!(!allowed.permits(Path::new(outside)), "{outside}");
        }
        assert!(Allowed::default().permits(Path::new("/etc/passwd")));
        assert!(!Allowed::only(&[]).permits(Path::new("/no")));
    }

    #[cfg(unix)]
    #[test]
    fn links_are_resolved_and_open_files_looked_at() {
        let folder = std::env::temp_dir().join(format!("hyperslab-allowed-{}", std::process::id()));
        std::fs::create_dir_all(folder.join("in")).unwrap();
        std::fs::write(folder.join("secret"), "s").unwrap();
        let link = folder.join("in/link");
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(folder.join("secret"), &link).unwrap();
        let allowed = Allowed::only(&[folder.join("in")]);
        assert!(!allowed.permits(&link));
        assert!(!allowed.permits_open(&link, &std::fs::File::open(&link).unwrap()));
        assert!(Allowed::only(std::slice::from_ref(&link)).permits(&folder.join("secret")));
        std::fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn refusals_say_what_to_pass() {
        let said = refusal("a.json", "https://x.org/b/c.nc", &["/data".to_owned()]);
        assert!(said.contains(r#"allowed=["/data", "https://x.org/b"]"#), "{said}");
        assert!(refusal("a", "/x", &[]).contains(r#"allowed=["/x"]"#));
    }
}
