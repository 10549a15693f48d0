//! Opens and reads a Zarr folder.

use std::path::Path;

use crate::memory;
use crate::parse::allowance;
use crate::read::{FOLDER, read_archive};

/// Separates the files of an input. Each file is a line with its path, then its bytes.
const BETWEEN_FILES: &[u8] = b"\xff/\xff";
const MOST_FILES: usize = 100;

/// The target.
pub fn zarr(data: &[u8]) {
    let _ = std::fs::remove_dir_all(&*FOLDER);
    std::fs::create_dir_all(&*FOLDER).expect("a folder to fuzz in");
    for file in split(data).into_iter().take(MOST_FILES) {
        write(file);
    }
    memory::bounded(2 * allowance(data.len()), || read_archive(&FOLDER, data));
}

fn split(data: &[u8]) -> Vec<&[u8]> {
    let mut files = Vec::new();
    let mut rest = data;
    while let Some(position) = rest.windows(BETWEEN_FILES.len()).position(|bytes| bytes == BETWEEN_FILES) {
        files.push(&rest[..position]);
        rest = &rest[position + BETWEEN_FILES.len()..];
    }
    files.push(rest);
    files
}

fn write(file: &[u8]) {
    let Some(end) = file.iter().position(|&byte| byte == b'\n') else { return };
    let Ok(name) = std::str::from_utf8(&file[..end]) else { return };
    if !is_inside(name) {
        return;
    }
    let path = FOLDER.join(name);
    let _ = path.parent().map(std::fs::create_dir_all);
    let _ = std::fs::write(path, &file[end + 1..]); // a folder may already have this name
}

/// Whether a name stays within the folder.
fn is_inside(name: &str) -> bool {
    let normal = |part| matches!(part, std::path::Component::Normal(_));
    !name.is_empty() && name.len() < 200 && !name.contains('\0') && Path::new(name).components().all(normal)
}
