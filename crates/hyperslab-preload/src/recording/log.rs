//! The raw log of this process: a file that is mapped into memory, so that an access costs no system call, and a process
//! that is killed leaves what it has written. `python/hyperslab/trace/recording/log.py` describes the bytes.
//!
//! Space is reserved on the disk before it is mapped: a full disk is then an error, and no signal. The file is opened for
//! each piece and closed again, as programs may close descriptors that they do not know.

#![allow(unsafe_code)]
#![allow(clippy::cast_ptr_alignment)] // mappings begin at pages, and numbers at multiples of their size

use std::ffi::{CString, OsStr, c_void};
use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::process::Process;
use crate::limits::file_limit;

const MAGIC: [u8; 8] = *b"HSTRACE\0";
const VERSION: u32 = 2;
const HEADER_NBYTES: usize = 56;
/// What precedes the body of a record, and what its length is a multiple of.
const WORD: usize = 8;
/// The states of a log, as in its header.
const RUNNING: u32 = 0;
const ENDED: u32 = 1;
const STOPPED: u32 = 2;
const REPLACED: u32 = 3;
/// Where the header has the state, the accesses that are missing, and all of them.
const STATE_AT: usize = 20;
const LOST_AT: usize = 40;
const COUNT_AT: usize = 48;
/// The first piece that is mapped, and the largest one.
const FIRST_NBYTES: u64 = 64 << 10;
const MOST_NBYTES: u64 = 4 << 20;

/// An error of the system.
pub(crate) type Errno = i32;

/// A log that can be written.
pub(crate) struct Log {
    path: CString,
    process: u32,
    header: Mapped,
    piece: Mapped,
    /// Where in the file the piece begins, and where the next record does.
    piece_at: u64,
    end: u64,
    next_nbytes: u64,
    count: u64,
    lost: u64,
    is_stopped: bool,
}

/// Part of a file in memory. It is never unmapped by accident: a child that forks has it too.
struct Mapped {
    start: *mut u8,
    nbytes: usize,
}

impl Log {
    /// Creates the log of a process in a folder. `now` is the time on the clock that accesses have.
    pub fn create(folder: &OsStr, process: &Process, now: u64) -> Result<Self, Errno> {
        let path = process.new_path(folder).ok_or(libc::ENAMETOOLONG)?;
        let file = opened(&path, true)?;
        let page = page_nbytes();
        let first = FIRST_NBYTES.max(page);
        let nbytes = reserve(&file, 0, first, page)?;
        let header = Mapped::new(&file, 0, page)?;
        let piece = Mapped::new(&file, 0, nbytes)?;
        let mut bytes = [0_u8; HEADER_NBYTES];
        let real = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let real = u64::try_from(real.as_nanos()).unwrap_or(u64::MAX);
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        bytes[12..16].copy_from_slice(&process.number.to_le_bytes());
        bytes[16..20].copy_from_slice(&process.parent.to_le_bytes());
        bytes[STATE_AT..24].copy_from_slice(&RUNNING.to_le_bytes());
        bytes[24..32].copy_from_slice(&real.to_le_bytes());
        bytes[32..40].copy_from_slice(&now.to_le_bytes());
        // SAFETY: the mapping is larger than the header.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), header.start, bytes.len()) };
        let (end, next_nbytes) = (HEADER_NBYTES as u64, 2 * first);
        let number = process.number;
        Ok(Self {
            path,
            process: number,
            header,
            piece,
            piece_at: 0,
            end,
            next_nbytes,
            count: 0,
            lost: 0,
            is_stopped: false,
        })
    }

    /// Counts an access, which is missing if it could not be written.
    pub fn count(&mut self, is_written: bool) {
        self.count += 1;
        self.store(COUNT_AT, self.count);
        if !is_written {
            self.lost += 1;
            self.store(LOST_AT, self.lost);
        }
    }

    /// Appends a record whose body has these parts. Returns false if it could not be written; then nothing will be.
    pub fn append(&mut self, kind: u8, parts: &[&[u8]]) -> bool {
        let body: usize = parts.iter().map(|part| part.len()).sum();
        let nbytes = WORD + body.next_multiple_of(WORD);
        let Ok(length) = u32::try_from(body) else { return false };
        if self.is_stopped || (self.room() < nbytes && !self.grow(nbytes as u64)) {
            return false;
        }
        let offset = usize::try_from(self.end - self.piece_at).unwrap_or(0);
        // SAFETY: the piece has room for the record, and begins at a multiple of eight, as do all records. The word that
        // makes it a record is written last: before, the log ends here.
        unsafe {
            let start = self.piece.start.add(offset);
            let mut to = start.add(WORD);
            for part in parts {
                ptr::copy_nonoverlapping(part.as_ptr(), to, part.len());
                to = to.add(part.len());
            }
            let word = u64::from(length) | u64::from(kind) << 32;
            (*start.cast::<AtomicU64>()).store(word.to_le(), Ordering::Release);
        }
        self.end += nbytes as u64;
        true
    }

    /// Whether it is not that of a parent, as in a child that shares memory with its parent until it starts a program.
    pub fn is_of_this_process(&self) -> bool {
        self.process == std::process::id()
    }

    /// The process ends, and has said everything.
    pub fn close(&mut self) {
        if !self.is_stopped {
            self.say(ENDED);
            self.is_stopped = true;
        }
        if let Ok(file) = opened(&self.path, false) {
            let _ = file.set_len(self.end); // nothing is written behind the end any more
        }
    }

    fn room(&self) -> usize {
        let until = self.piece_at + self.piece.nbytes as u64;
        usize::try_from(until - self.end).unwrap_or(0)
    }

    /// Maps the next piece of the file, with room for so many bytes.
    #[cold]
    fn grow(&mut self, nbytes: u64) -> bool {
        match self.next_piece(nbytes) {
            Ok(()) => true,
            Err(error) => {
                self.is_stopped = true;
                self.say(STOPPED | u32::from(u16::try_from(error).unwrap_or(0)) << 16);
                false
            }
        }
    }

    fn next_piece(&mut self, nbytes: u64) -> Result<(), Errno> {
        let page = page_nbytes();
        let file = opened(&self.path, false)?;
        let start = self.end / page * page;
        let least = (self.end + nbytes).next_multiple_of(page) - start;
        let nbytes = reserve(&file, start, self.next_nbytes.max(least), least)?;
        let piece = Mapped::new(&file, start, nbytes)?;
        std::mem::replace(&mut self.piece, piece).unmap();
        self.piece_at = start;
        self.next_nbytes = (2 * self.next_nbytes).min(MOST_NBYTES);
        Ok(())
    }

    fn say(&self, state: u32) {
        // SAFETY: the header has the number there, at a multiple of four.
        unsafe { self.header.start.add(STATE_AT).cast::<u32>().write_volatile(state.to_le()) };
    }

    fn store(&self, at: usize, value: u64) {
        // SAFETY: the header has the number there, at a multiple of eight.
        unsafe { self.header.start.add(at).cast::<u64>().write_volatile(value.to_le()) };
    }
}

/// Says in a log that the program of its process was replaced by another one. Logs that have ended stay as they are.
pub(crate) fn say_replaced(path: &CString) -> bool {
    let Ok(file) = opened(path, false) else { return false };
    let mut state = [0_u8; 4];
    if file.read_exact_at(&mut state, STATE_AT as u64).is_ok() && u32::from_le_bytes(state) == RUNNING {
        let _ = file.write_all_at(&REPLACED.to_le_bytes(), STATE_AT as u64);
    }
    true
}

impl Mapped {
    fn new(file: &File, at: u64, nbytes: u64) -> Result<Self, Errno> {
        let size = usize::try_from(nbytes).map_err(|_| libc::ENOMEM)?;
        let at = libc::off_t::try_from(at).map_err(|_| libc::EFBIG)?;
        let (protection, flags) = (libc::PROT_READ | libc::PROT_WRITE, libc::MAP_SHARED);
        // SAFETY: a new mapping.
        let start = unsafe { libc::mmap(ptr::null_mut(), size, protection, flags, file.as_raw_fd(), at) };
        if start == libc::MAP_FAILED {
            return Err(errno());
        }
        // All pages at once cost less than one after the other. Before Linux 5.14, they come one after the other.
        // SAFETY: the mapping was just made.
        unsafe { libc::madvise(start, size, libc::MADV_POPULATE_WRITE) };
        Ok(Self { start: start.cast(), nbytes: size })
    }

    fn unmap(self) {
        // SAFETY: nobody else has it.
        unsafe { libc::munmap(self.start.cast::<c_void>(), self.nbytes) };
    }
}

/// Reserves bytes of a file on the disk: as many as wanted, or at least the least. Returns how many.
fn reserve(file: &File, start: u64, wanted: u64, least: u64) -> Result<u64, Errno> {
    let most = file_limit();
    for nbytes in [wanted, least] {
        let stop = start + nbytes;
        let (Ok(from), Ok(length)) = (libc::off_t::try_from(start), libc::off_t::try_from(nbytes)) else {
            return Err(libc::EFBIG);
        };
        let error = if stop > most {
            libc::EFBIG
        } else {
            // SAFETY: the call takes any numbers.
            unsafe { libc::posix_fallocate(file.as_raw_fd(), from, length) }
        };
        if error == 0 {
            return Ok(nbytes);
        }
        if nbytes == least || !matches!(error, libc::EFBIG | libc::ENOSPC | libc::EDQUOT) {
            return Err(error);
        }
    }
    Err(libc::ENOSPC)
}

fn page_nbytes() -> u64 {
    // SAFETY: the call has no effect.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096).max(4096)
}

/// A log's file, which is new or not.
fn opened(path: &CString, is_new: bool) -> Result<File, Errno> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(is_new).mode(0o600).custom_flags(libc::O_NOFOLLOW);
    let path = OsStr::from_bytes(path.as_bytes());
    options.open(path).map_err(|error| error.raw_os_error().unwrap_or(libc::EIO))
}

fn errno() -> Errno {
    std::io::Error::last_os_error().raw_os_error().unwrap_or(libc::EIO)
}
