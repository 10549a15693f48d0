//! A local file, read by position and never mapped: if the file shrinks, that is an error and not a signal.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::path::{Path, PathBuf};

use hyperslab_core::CoalescePolicy;
use hyperslab_parsers::{check_regular, open_regular};

use super::contract::Store;
use super::file_version::FileVersion;
use super::held;
use crate::read_error::ReadError;

/// An open file, with its size and modification time at that moment. Threads and forked processes can share it.
#[derive(Debug)]
pub struct FileStore {
    name: String,
    /// Where it was found; `None` if the caller had it open.
    path: Option<PathBuf>,
    file: File,
    version: FileVersion,
    grows: bool,
}

impl FileStore {
    /// Opens a regular file for reading.
    pub fn open(path: &Path) -> Result<Self, ReadError> {
        let name = path.display().to_string();
        let opened = open(path).and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| system(&name, &error))?;
        Ok(Self {
            name,
            path: Some(path.to_owned()),
            file,
            version: FileVersion::of_metadata(&metadata),
            grows: false,
        })
    }

    /// A file that the caller has open for reading. Errors call it `name`.
    pub fn of_open(name: String, file: File) -> Result<Self, ReadError> {
        let metadata = check_regular(&file).map_err(|error| system(&name, &error))?;
        Ok(Self { name, path: None, file, version: FileVersion::of_metadata(&metadata), grows: false })
    }

    /// The same file, but others may append to it: only shrinking counts as a change. For files that are never
    /// overwritten.
    #[must_use]
    pub fn growing(self) -> Self {
        Self { grows: true, ..self }
    }

    /// The same open file, including what has been appended since.
    pub fn now(&self) -> Result<Self, ReadError> {
        let opened = self.file.try_clone().and_then(|file| Ok((file.metadata()?, file)));
        let (metadata, file) = opened.map_err(|error| system(&self.name, &error))?;
        Ok(Self {
            name: self.name.clone(),
            path: self.path.clone(),
            file,
            version: FileVersion::of_metadata(&metadata),
            grows: self.grows,
        })
    }

    /// Opens a file for reading, if a file of that name exists. A folder does not count.
    pub fn find(path: &Path) -> Result<Option<Self>, ReadError> {
        let absent = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        };
        let is_absent = || match std::fs::metadata(path) {
            Ok(metadata) => metadata.is_dir(),
            Err(error) => absent(&error),
        };
        match Self::open(path) {
            Ok(store) => Ok(Some(store)),
            Err(_) if is_absent() => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// The open file.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// The version of the file.
    pub fn version(&self) -> FileVersion {
        self.version
    }

    fn check_within(&self, offset: u64, nbytes: usize) -> Result<(), ReadError> {
        let nbytes = nbytes as u64;
        if offset.checked_add(nbytes).is_some_and(|end| end <= self.version.nbytes()) {
            return Ok(());
        }
        Err(ReadError::Truncated {
            file: self.name.clone(),
            offset,
            nbytes,
            file_nbytes: self.version.nbytes(),
        })
    }

    /// If bytes that were there at opening are missing, the file has shrunk.
    fn failure(&self, error: &io::Error) -> ReadError {
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return ReadError::FileChanged { file: self.name.clone() };
        }
        system(&self.name, error)
    }
}

impl Store for FileStore {
    fn version(&self) -> Option<FileVersion> {
        Some(self.version)
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn nbytes(&self) -> u64 {
        self.version.nbytes()
    }

    fn policy(&self) -> CoalescePolicy {
        CoalescePolicy::LOCAL
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.check_within(offset, out.len())?;
        read_exact_at(&self.file, out, offset).map_err(|error| self.failure(&error))
    }

    fn read_vectored(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError> {
        let nbytes = parts.iter().map(|part| part.len()).sum();
        self.check_within(offset, nbytes)?;
        read_exact_vectored(&self.file, parts, offset).map_err(|error| self.failure(&error))
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        let metadata = self.file.metadata().map_err(|error| system(&self.name, &error))?;
        let now = FileVersion::of_metadata(&metadata);
        let was_moved = || self.path.as_ref().is_some_and(|path| now.was_moved(&self.version, path));
        if now.keeps(&self.version) || was_moved() || (self.grows && now.nbytes() >= self.version.nbytes()) {
            return Ok(());
        }
        Err(ReadError::FileChanged { file: self.name.clone() })
    }
}

fn system(name: &str, error: &io::Error) -> ReadError {
    let remedy = if has_no_descriptor(error) {
        ": close archives that are not needed, or let the process have more files open (ulimit -n)"
    } else {
        ""
    };
    ReadError::System { file: name.to_owned(), problem: format!("{error}{remedy}") }
}

/// Opens a file. If the process has no descriptor left, idle files that archives hold open are closed first.
fn open(path: &Path) -> io::Result<File> {
    open_regular(path).or_else(|error| {
        if !has_no_descriptor(&error) {
            return Err(error);
        }
        held::close_all();
        open_regular(path)
    })
}

#[cfg(unix)]
fn has_no_descriptor(error: &io::Error) -> bool {
    use rustix::io::Errno;

    error
        .raw_os_error()
        .is_some_and(|code| [Errno::MFILE, Errno::NFILE].map(Errno::raw_os_error).contains(&code))
}

#[cfg(not(unix))]
fn has_no_descriptor(_: &io::Error) -> bool {
    false
}

#[cfg(unix)]
fn read_exact_at(file: &File, out: &mut [u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, out, offset)
}

#[cfg(windows)]
fn read_exact_at(file: &File, mut out: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !out.is_empty() {
        match std::os::windows::fs::FileExt::seek_read(file, out, offset)? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                out = out.get_mut(count..).unwrap_or_default();
                offset += count as u64;
            }
        }
    }
    Ok(())
}

#[cfg(target_os = "linux")]
fn read_exact_vectored(file: &File, mut parts: &mut [IoSliceMut<'_>], mut offset: u64) -> io::Result<()> {
    IoSliceMut::advance_slices(&mut parts, 0); // skips empty parts
    while !parts.is_empty() {
        match rustix::io::preadv(file, parts, offset) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                IoSliceMut::advance_slices(&mut parts, count);
                offset += count as u64;
            }
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(not(target_os = "linux"))]
fn read_exact_vectored(file: &File, parts: &mut [IoSliceMut<'_>], mut offset: u64) -> io::Result<()> {
    for part in parts {
        read_exact_at(file, part, offset)?;
        offset += part.len() as u64;
    }
    Ok(())
}
