//! What an archive takes from its callers and returns to them: identities, refusals, errors of their own code.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // no hashes are compared here
mod samples;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyperslab_archive::{
    Archive, ArchiveArray, ArraySelection, BetweenCommits, CallerError, CombinedArray, Error, OpenOptions,
    ReadOptions, SourceResolver, TableReader, save_references,
};
use hyperslab_core::{FileIdentity, Orthogonal};
use hyperslab_engine::ReadError;
use hyperslab_parsers::Allowed;
use hyperslab_parsers::zarr::Table;

fn open(path: &Path) -> Arc<Archive> {
    Arc::new(Archive::open(path, &OpenOptions::default()).unwrap())
}

/// All bytes of an array.
fn read(archive: &Arc<Archive>, path: &str) -> Result<Vec<u8>, Error> {
    let array = ArchiveArray::at(archive, path)?.unwrap();
    let shape = array.shape()?.unwrap();
    let nbytes = shape.iter().product::<u64>() * array.described().element.nbytes();
    let mut bytes = vec![0; usize::try_from(nbytes).unwrap()];
    let all = ArraySelection::Axes(Orthogonal::all(&shape).unwrap());
    array.read_into(&all, &mut bytes, ReadOptions::default()).map(|()| bytes)
}

fn copied(name: &str, directory: &Path) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::copy(directory.join(name), &path).unwrap();
    (folder, path)
}

#[test]
fn a_known_file_is_opened_and_another_one_under_its_path_is_not() {
    let Some(directory) = samples::directory() else { return };
    let (folder, path) = copied("latest.h5", &directory);
    let known = FileIdentity::of_metadata(&std::fs::metadata(&path).unwrap()).unwrap();
    let archive = Archive::open_known(&path, known, &OpenOptions::default()).unwrap();
    assert_eq!(archive.identity(), Some(known));
    let again = folder.path().join("again");
    std::fs::copy(&path, &again).unwrap();
    std::fs::rename(&again, &path).unwrap();
    let error = Archive::open_known(&path, known, &OpenOptions::default()).err().unwrap();
    assert!(matches!(error, Error::Read(ReadError::FileChanged { .. })), "{error}");
    // The open file is still the same file.
    assert_eq!(archive.identity().map(|identity| identity.inode), Some(known.inode));
}

#[test]
fn sources_that_may_not_be_opened_are_refused() {
    let Some(directory) = samples::directory() else { return };
    let (folder, path) = copied("virtual.h5", &directory);
    let allowed = Allowed::only(&[folder.path().to_owned()]);
    let resolver = SourceResolver::new("virtual.h5".to_owned(), None, allowed, Vec::new());
    let archive =
        Arc::new(Archive::open(&path, &OpenOptions { resolver, ..OpenOptions::default() }).unwrap());
    let error = read(&archive, "shown").unwrap_err();
    assert!(matches!(error, Error::Read(ReadError::NotAllowed { .. })), "{error}");
    assert!(read(&archive, "own").is_ok());
    assert!(read(&open(&path), "shown").is_ok());
}

/// Counts how often someone reads between commits, or fails.
struct Commits(AtomicUsize, bool);

impl BetweenCommits for Commits {
    fn run(&self, read: &mut dyn FnMut()) -> Result<(), CallerError> {
        if self.1 {
            return Err("a writer never ends".into());
        }
        self.0.fetch_add(1, Ordering::Relaxed);
        read();
        Ok(())
    }
}

#[test]
fn chunks_are_looked_up_between_commits() {
    let Some(directory) = samples::directory() else { return };
    let path = directory.join("latest.h5");
    let open_with = |commits: &Arc<Commits>| {
        let between_commits: Option<Arc<dyn BetweenCommits>> = Some(Arc::clone(commits) as Arc<_>);
        Arc::new(Archive::open(&path, &OpenOptions { between_commits, ..OpenOptions::default() }).unwrap())
    };
    let commits = Arc::new(Commits(AtomicUsize::new(0), false));
    let archive = open_with(&commits);
    assert_eq!(commits.0.load(Ordering::Relaxed), 0, "opening looks up no chunks");
    assert_eq!(read(&archive, "chunked").unwrap(), read(&open(&path), "chunked").unwrap());
    assert_eq!(commits.0.load(Ordering::Relaxed), 1);
    let archive = open_with(&Arc::new(Commits(AtomicUsize::new(0), true)));
    let error = read(&archive, "chunked").unwrap_err();
    assert!(matches!(error, Error::Caller(_)) && error.to_string() == "a writer never ends", "{error}");
}

struct NoTables;

impl TableReader for NoTables {
    fn read(&self, path: &str) -> Result<(Table, Vec<String>), Error> {
        Err(Error::Caller(format!("no table of {path}").into()))
    }
}

#[test]
fn an_error_of_the_callers_table_reader_comes_back() {
    let document = br#"{"zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "compressor": null,
        "fill_value": 0, "order": "C", "filters": null}"#;
    let group = br#"{"zarr_format": 2}"#.to_vec();
    let documents =
        HashMap::from([(".zgroup".to_owned(), group), ("a/.zarray".to_owned(), document.to_vec())]);
    let archive =
        Archive::of_tables(documents, Box::new(NoTables), Path::new("tables"), &OpenOptions::default());
    let error = read(&Arc::new(archive.unwrap()), "a").unwrap_err();
    assert!(matches!(error, Error::Caller(_)) && error.to_string() == "no table of a", "{error}");
}

#[test]
fn references_lead_to_the_same_elements() {
    let Some(directory) = samples::directory() else { return };
    let folder = tempfile::tempdir().unwrap();
    let (archive, saved) = (open(&directory.join("latest.h5")), folder.path().join("saved.hyperslab"));
    let (array_count, _) =
        save_references(&saved, folder.path(), &[(String::new(), Arc::clone(&archive))]).unwrap();
    assert_eq!(usize::try_from(array_count).unwrap(), archive.tree().arrays.len());
    let references = open(&saved);
    assert_eq!(references.format().name(), "references");
    for path in ["contiguous", "chunked", "two_unlimited", "sparse"] {
        assert_eq!(read(&references, path).unwrap(), read(&archive, path).unwrap(), "{path}");
    }
}

#[test]
fn arrays_of_several_archives_are_one() {
    let Some(directory) = samples::directory() else { return };
    let archives = ["latest.h5", "earliest.h5"].map(|name| open(&directory.join(name)));
    let number = |archive: &Archive| archive.find_array("chunked").unwrap().unwrap();
    let combined = CombinedArray {
        files: vec![0, 1],
        arrays: archives.iter().map(|archive| number(archive)).collect(),
        kinds: vec![0, 0],
        axis: Some(0),
        ..CombinedArray::default()
    };
    let groups = vec![(0, 0, vec![("both".to_owned(), "array".to_owned(), 0)])];
    let (name, version) = ("both".to_owned(), "1".to_owned());
    let arrays = [("both".to_owned(), combined)];
    let combined = Archive::combine(name, version, &archives, groups, &arrays, &OpenOptions::default());
    let combined = Arc::new(combined.unwrap());
    let expected = archives.each_ref().map(|archive| read(archive, "chunked").unwrap()).concat();
    assert_eq!(read(&combined, "both").unwrap(), expected);
}
