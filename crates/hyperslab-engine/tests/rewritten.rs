//! A file that is written to in place is noticed, although its times are put back; what writes no bytes is no change.

#![cfg(unix)]
#![allow(clippy::unwrap_used)]

use std::fs::{File, FileTimes, Permissions};
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::PathBuf;

use hyperslab_engine::{FileStore, FileVersion, Store};

fn file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a");
    std::fs::write(&path, [1_u8; 100]).unwrap();
    (folder, path)
}

fn rewrite(path: &PathBuf) {
    let modified = std::fs::metadata(path).unwrap().modified().unwrap();
    let file = File::options().write(true).open(path).unwrap();
    file.write_all_at(&[2], 50).unwrap();
    file.set_times(FileTimes::new().set_modified(modified)).unwrap();
}

#[test]
fn a_write_whose_time_is_put_back_is_a_change() {
    let (_folder, path) = file();
    let (store, before) = (FileStore::open(&path).unwrap(), FileVersion::of(&path).unwrap());
    store.check_unchanged().unwrap();
    rewrite(&path);
    assert!(store.check_unchanged().is_err());
    let now = FileVersion::of(&path).unwrap();
    assert_eq!((now.nbytes(), now.modified()), (before.nbytes(), before.modified()));
    assert!(!now.keeps(&before));
    // References know no more than these two.
    assert!(now.keeps(&FileVersion::new(before.nbytes(), before.modified())));
}

#[test]
fn what_writes_no_bytes_is_no_change() {
    let (folder, path) = file();
    let store = FileStore::open(&path).unwrap();
    let (second, third) = (folder.path().join("b"), folder.path().join("c"));
    std::fs::set_permissions(&path, Permissions::from_mode(0o400)).unwrap();
    store.check_unchanged().unwrap();
    std::fs::hard_link(&path, &second).unwrap();
    store.check_unchanged().unwrap();
    std::fs::remove_file(&second).unwrap();
    store.check_unchanged().unwrap();
    std::fs::rename(&path, &third).unwrap();
    store.check_unchanged().unwrap();
    std::fs::remove_file(&third).unwrap();
    store.check_unchanged().unwrap();
}
