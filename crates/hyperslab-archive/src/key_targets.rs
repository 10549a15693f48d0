//! Where the keys of a Zarr array are written: files of a folder, or bytes for a store of somebody else.

use std::borrow::Cow;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::zarr_writing::KeyTarget;

/// Pieces shorter than this are written together.
const SHORT_NBYTES: usize = 64 << 10;

/// Files below a folder. Each is written beside and renamed, as zarr-python does it, so that readers and kills see the old
/// file or the new one; in a folder that nobody reads yet, each is written in its place.
pub struct FolderTarget<'a> {
    /// The folder.
    pub folder: &'a Path,
    /// The names of the files below it.
    pub keys: &'a [String],
    /// Whether nobody reads the folder yet.
    pub is_new: bool,
}

impl FolderTarget<'_> {
    fn path(&self, number: usize) -> PathBuf {
        self.folder.join(self.keys.get(number).map_or("", String::as_str))
    }
}

impl KeyTarget for FolderTarget<'_> {
    fn read(&self, number: usize) -> io::Result<Option<Cow<'_, [u8]>>> {
        match fs::read(self.path(number)) {
            Ok(bytes) => Ok(Some(Cow::Owned(bytes))),
            Err(error) if is_no_file(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn write(&self, number: usize, pieces: &[&[u8]]) -> io::Result<()> {
        let path = self.path(number);
        if self.is_new {
            return write_all(&mut in_folder(&path, |path| File::create(path))?, pieces);
        }
        let (mut file, beside) = in_folder(&path, created_beside)?;
        let written = write_all(&mut file, pieces).and_then(|()| {
            drop(file);
            fs::rename(&beside, &path)
        });
        written.inspect_err(|_| drop(fs::remove_file(&beside)))
    }

    fn remove(&self, number: usize) -> io::Result<()> {
        match fs::remove_file(self.path(number)) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            done => done,
        }
    }
}

/// Creates a file, and the folders that it needs.
fn in_folder<T>(path: &Path, create: impl Fn(&Path) -> io::Result<T>) -> io::Result<T> {
    match create(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            path.parent().map_or(Ok(()), fs::create_dir_all)?;
            create(path)
        }
        created => created,
    }
}

/// As zarr-python's local store, which takes a folder for no chunk.
fn is_no_file(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::NotFound | ErrorKind::IsADirectory | ErrorKind::NotADirectory)
}

fn write_all(file: &mut File, pieces: &[&[u8]]) -> io::Result<()> {
    if let [piece] = pieces {
        return file.write_all(piece);
    }
    let mut together = BufWriter::with_capacity(SHORT_NBYTES, file); // longer pieces go past its memory
    pieces.iter().try_for_each(|piece| together.write_all(piece))?;
    together.flush()
}

/// A new file with a name that nobody else uses: `0.….partial`, as zarr-python calls it.
fn created_beside(path: &Path) -> io::Result<(File, PathBuf)> {
    static MADE: AtomicU64 = AtomicU64::new(0);
    let nanoseconds = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() << 30 ^ u64::from(since.subsec_nanos()));
    loop {
        let made = MADE.fetch_add(1, Ordering::Relaxed) & 0xff_ffff;
        let mut name = OsString::from(path.file_stem().unwrap_or_default());
        name.push(format!(".{nanoseconds:016x}{:08x}{made:08x}.partial", std::process::id()));
        let beside = path.with_file_name(name);
        match File::create_new(&beside) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            created => return created.map(|file| (file, beside)),
        }
    }
}

/// Bytes in memory: what each key held, and what it is to hold.
pub struct GivenTarget<'a> {
    /// What the keys held.
    pub old: Vec<Option<&'a [u8]>>,
    made: Mutex<Vec<Option<Vec<u8>>>>,
}

impl<'a> GivenTarget<'a> {
    /// For keys that held these bytes.
    pub fn new(old: Vec<Option<&'a [u8]>>) -> Self {
        let made = Mutex::new(vec![None; old.len()]);
        Self { old, made }
    }

    /// What each key is to hold; `None` if it is to be removed.
    pub fn into_made(self) -> Vec<Option<Vec<u8>>> {
        self.made.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KeyTarget for GivenTarget<'_> {
    fn read(&self, number: usize) -> io::Result<Option<Cow<'_, [u8]>>> {
        Ok(self.old.get(number).copied().flatten().map(Cow::Borrowed))
    }

    fn write(&self, number: usize, pieces: &[&[u8]]) -> io::Result<()> {
        let bytes = pieces.concat();
        if let Some(made) = self.made.lock().unwrap_or_else(PoisonError::into_inner).get_mut(number) {
            *made = Some(bytes);
        }
        Ok(())
    }

    fn remove(&self, _: usize) -> io::Result<()> {
        Ok(())
    }
}
