//! Files that are opened in the place of others, so that a program reads a copy: `hyperslab advise --verify` names them.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, OsStr, c_char};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use crate::settings::settings;

static PAIRS: OnceLock<Vec<(PathBuf, CString)>> = OnceLock::new();

/// The copy to open in the place of the file with this name; `None` if the program gets what it asked for.
///
/// # Safety
///
/// The name ends with a zero, or is null.
pub(crate) unsafe fn instead(name: *const c_char) -> Option<&'static CStr> {
    let list = settings().instead.as_deref()?;
    if name.is_null() {
        return None;
    }
    let pairs = PAIRS.get_or_init(|| pairs(&fs::read(list).unwrap_or_default()));
    // SAFETY: as above.
    let asked = Path::new(OsStr::from_bytes(unsafe { CStr::from_ptr(name) }.to_bytes()));
    let path = fs::canonicalize(asked).ok()?;
    pairs.iter().find(|(original, _)| *original == path).map(|(_, copy)| copy.as_c_str())
}

/// The list: a file's real path and its copy's, by turns, each with a zero at its end.
fn pairs(list: &[u8]) -> Vec<(PathBuf, CString)> {
    let paths: Vec<&[u8]> = list.split(|&byte| byte == 0).collect();
    let pair =
        |pair: &[&[u8]]| Some((Path::new(OsStr::from_bytes(pair[0])).into(), CString::new(pair[1]).ok()?));
    paths.chunks_exact(2).filter_map(pair).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_pairs_of_paths() {
        let found = pairs(b"/data/a b.h5\0/scratch/0.h5\0/data/\xff.h5\0/scratch/1.h5\0");
        let expected = [(&b"/data/a b.h5"[..], c"/scratch/0.h5"), (&b"/data/\xff.h5"[..], c"/scratch/1.h5")];
        assert_eq!(found.len(), 2);
        for ((original, copy), (path, other)) in found.iter().zip(expected) {
            assert_eq!(original.as_os_str().as_bytes(), path);
            assert_eq!(copy.as_c_str(), other);
        }
        assert!(pairs(b"").is_empty());
        assert!(pairs(b"/data/a.h5").is_empty(), "a file without a copy stays");
    }
}
