//! The files to read, and what other implementations read of them: `tests/engine/make_samples.py` makes both.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use hyperslab_core::{AxisIndices, AxisSelection, Orthogonal};
use serde_json::Value;

/// What a file should hold.
pub struct Expected {
    /// The file.
    pub file: PathBuf,
    /// Its arrays.
    pub arrays: Vec<ExpectedArray>,
}

/// What an array should hold.
pub struct ExpectedArray {
    /// Its path.
    pub path: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// The hash of all elements.
    pub sha256: String,
    /// Where the part starts on each axis: every third index from there on.
    pub starts: Vec<u64>,
    /// The hash of the part.
    pub part_sha256: String,
}

impl ExpectedArray {
    /// The part.
    pub fn part(&self) -> Orthogonal {
        let axis = |(axis, (&start, &length)): (usize, (&u64, &u64))| {
            let count = (length - start).div_ceil(3);
            AxisIndices::Regular(AxisSelection::new(axis, start, 3, count, 1).unwrap())
        };
        Orthogonal::new(self.starts.iter().zip(&self.shape).enumerate().map(axis).collect()).unwrap()
    }
}

/// The directory with the samples: the one in `HYPERSLAB_CORPUS` that says what its files hold. `None` without it.
pub fn directory() -> Option<PathBuf> {
    let directories = std::env::var("HYPERSLAB_CORPUS").unwrap_or_default();
    let mut directories = directories.split(':').map(PathBuf::from);
    let found = directories.find(|directory| directory.join("expected.json").is_file());
    if found.is_none() {
        eprintln!("nothing is read: no directory in HYPERSLAB_CORPUS has an expected.json");
    }
    found
}

/// What all files should hold.
pub fn expected(directory: &Path) -> Vec<Expected> {
    let text = std::fs::read_to_string(directory.join("expected.json")).unwrap();
    let found: Value = serde_json::from_str(&text).unwrap();
    found.as_array().unwrap().iter().map(file).collect()
}

fn file(entry: &Value) -> Expected {
    let arrays = entry["arrays"].as_array().unwrap().iter().map(array).collect();
    Expected { file: PathBuf::from(text(&entry["file"])), arrays }
}

fn array(entry: &Value) -> ExpectedArray {
    let numbers =
        |name: &str| entry[name].as_array().unwrap().iter().map(|one| one.as_u64().unwrap()).collect();
    ExpectedArray {
        path: text(&entry["path"]),
        shape: numbers("shape"),
        sha256: text(&entry["sha256"]),
        starts: numbers("starts"),
        part_sha256: text(&entry["part_sha256"]),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

/// The hash of bytes, as Python writes it.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, bytes);
    digest.as_ref().iter().fold(String::new(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}
