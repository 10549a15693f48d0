//! Folders in which the processes of a program leave what the command that started it wants to know.
//!
//! Nobody but their owner may write there. So a process of root that is about to become another user first makes a folder
//! inside for that user, which the processes that it starts then find too.

use std::ffi::{OsStr, OsString};
use std::fs::{DirBuilder, Metadata, Permissions, set_permissions};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt, lchown};

use rustix::process::geteuid;

/// A folder that the environment names.
#[derive(Debug)]
pub(crate) struct Folder {
    path: OsString,
    owner: Option<u32>,
}

impl Folder {
    /// The folder with this path.
    pub fn new(path: OsString) -> Self {
        let owner = std::fs::metadata(&path).ok().as_ref().map(Metadata::uid);
        Self { path, owner }
    }

    /// Where in it this process may write: the path, and the user whose folder inside it is.
    pub fn own(&self) -> (&OsStr, Option<u32>) {
        let user = geteuid().as_raw();
        (&self.path, (user != 0 && self.owner == Some(0)).then_some(user))
    }

    /// The same as a path.
    pub fn own_path(&self) -> OsString {
        let (path, user) = self.own();
        user.map_or_else(|| path.to_owned(), |user| inside(path, user))
    }

    /// Makes the folder of a user inside. Failures only mean that less is known at the end.
    pub fn admit(&self, user: u32) {
        if self.owner != Some(0) {
            return;
        }
        // Others may then pass through the folder, and neither list it nor write there.
        let _ = set_permissions(&self.path, Permissions::from_mode(0o711));
        let inside = inside(&self.path, user);
        if DirBuilder::new().mode(0o700).create(&inside).is_ok() {
            let _ = lchown(&inside, Some(user), None);
        }
    }
}

/// `hyperslab.running` and `hyperslab.trace` look there too.
fn inside(path: &OsStr, user: u32) -> OsString {
    OsStr::from_bytes(&[path.as_bytes(), format!("/u{user}").as_bytes()].concat()).to_owned()
}
