//! What is known of this process, and the names of its logs.

use std::ffi::{CString, OsStr};
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::parent_id;
use std::path::Path;

use super::json;

/// More arguments are not said.
const MOST_ARGUMENTS: usize = 100;
/// More programs than anyone lets one process run in turn.
const MOST_PROGRAMS: u32 = 1000;

/// This process.
pub(crate) struct Process {
    pub number: u32,
    pub parent: u32,
    /// When it began, in ticks of the system: it tells it from others with its number, and `exec` does not change it.
    began: u64,
}

impl Process {
    /// The one that asks.
    pub fn own() -> Self {
        let number = std::process::id();
        let parent = parent_id();
        Self { number, parent, began: began().unwrap_or(0) }
    }

    /// A path that no log has yet.
    pub fn new_path(&self, folder: &OsStr) -> Option<CString> {
        self.paths(folder).find(|path| !exists(path))
    }

    /// The paths of its logs: one for each program that runs in it, one after the other.
    pub fn paths(&self, folder: &OsStr) -> impl Iterator<Item = CString> {
        let names =
            (0..MOST_PROGRAMS).map(|program| format!("/{}-{}-{program}.log", self.number, self.began));
        names.filter_map(|name| CString::new([folder.as_bytes(), name.as_bytes()].concat()).ok())
    }

    /// Its arguments, for the log.
    pub fn arguments() -> String {
        let content = fs::read("/proc/self/cmdline").unwrap_or_default();
        let words = content.strip_suffix(b"\0").unwrap_or(&content).split(|&byte| byte == 0);
        let mut text = String::from("{\"arguments\": [");
        for (place, word) in words.take(MOST_ARGUMENTS).enumerate() {
            text.push_str(if place > 0 { ", " } else { "" });
            json::put_text(&mut text, &String::from_utf8_lossy(word));
        }
        text + "]}"
    }
}

fn exists(path: &CString) -> bool {
    Path::new(OsStr::from_bytes(path.as_bytes())).exists()
}

/// Field 22 of the process's line, which follows the name in parentheses.
fn began() -> Option<u64> {
    let line = fs::read("/proc/self/stat").ok()?;
    let line = String::from_utf8_lossy(&line);
    line.get(line.rfind(')')? + 1..)?.split_whitespace().nth(19)?.parse().ok()
}
