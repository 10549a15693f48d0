//! `Allowed`: what of this machine a document may lead to, be it a file of references, a link, or a virtual array.
//!
//! docs/security.md states the rule. Python says what it comes to for one document (`archive/allowed.py`).

use std::fs::File;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Whatever there is, or only what lies below some paths.
#[derive(Clone, Debug, Default)]
pub struct Allowed(Option<Arc<[PathBuf]>>);

impl Allowed {
    /// Files and folders, and what is in these. Links in their own names are resolved now.
    pub fn only(paths: &[PathBuf]) -> Self {
        Self(Some(paths.iter().map(|path| real(path)).collect()))
    }

    /// Whether there is anything that it refuses.
    pub fn is_narrow(&self) -> bool {
        self.0.is_some()
    }

    /// Whether what a path leads to, over all links, may be opened, if it is there.
    pub fn permits(&self, path: &Path) -> bool {
        self.0.is_none() || self.holds(&real(path))
    }

    /// Whether a file that was opened by a path is one that may be: a link may have been put in its place meanwhile.
    pub fn permits_open(&self, path: &Path, file: &File) -> bool {
        self.0.is_none() || real_path_of(path, file).is_some_and(|real| self.holds(&real))
    }

    /// Where a path leads to, over all links: what a refusal names.
    pub fn real_path(path: &Path) -> PathBuf {
        real(path)
    }

    fn holds(&self, real: &Path) -> bool {
        self.0.iter().flat_map(|paths| paths.iter()).any(|allowed| real.starts_with(allowed))
    }
}

/// Why a document is not followed to a location, and what to do: in these words everywhere.
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

/// A path without links, dots and relative parts; of what is not there, as it would be.
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
