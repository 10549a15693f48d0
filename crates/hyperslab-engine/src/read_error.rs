//! Why a read failed, in words for people: which file, which array, which chunk, and where.

use hyperslab_core::PlanError;
use thiserror::Error;

use crate::error::Error;

/// A failed read. Do not trust any of its output.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReadError {
    /// The selection cannot be planned.
    #[error("array {array} of {file}: {problem}")]
    Plan {
        /// The file.
        file: String,
        /// The array's path in it.
        array: String,
        /// The reason.
        problem: PlanError,
    },
    /// A chunk's bytes contradict its metadata.
    #[error("array {array} of {file}, chunk {chunk_index:?} at offset {offset}: {problem}")]
    Chunk {
        /// The file that holds the chunk.
        file: String,
        /// The array's path.
        array: String,
        /// The chunk's index in its grid.
        chunk_index: Vec<u64>,
        /// Where its bytes start.
        offset: u64,
        /// What is wrong.
        problem: Error,
    },
    /// The read needs bytes beyond the end of a file.
    #[error(
        "{file} ends at {file_nbytes}, but {nbytes} bytes at offset {offset} are needed: it is truncated or damaged"
    )]
    Truncated {
        /// The file.
        file: String,
        /// Where the bytes should start.
        offset: u64,
        /// How many are needed.
        nbytes: u64,
        /// Where the file ends.
        file_nbytes: u64,
    },
    /// The file has changed since it was opened.
    #[error("{file} changed while it was open: open it again")]
    FileChanged {
        /// The file.
        file: String,
    },
    /// A server no longer says which object it sends.
    #[error(
        "{file} may have changed while it was open: its server does not send the ETag or the Last-Modified that it sent \
         before; open it again"
    )]
    Unidentified {
        /// The URL, without query and credentials.
        file: String,
    },
    /// There is no object at a URL.
    #[error("there is nothing at {url}: check the URL")]
    NoSuchObject {
        /// The URL, without query and credentials.
        url: String,
    },
    /// A server did not send what was asked for.
    #[error("{url} at offset {offset}: {problem}; {remedy}")]
    Remote {
        /// The URL, without query and credentials.
        url: String,
        /// The first byte that was asked for.
        offset: u64,
        /// What it did instead, including the HTTP status.
        problem: String,
        /// What the user can do.
        remedy: &'static str,
    },
    /// A file has changed since references to it were made.
    #[error("{file} changed since {references} was written: its references are stale, index it again")]
    StaleReferences {
        /// The file.
        file: String,
        /// The file of references.
        references: String,
    },
    /// The operating system could not read a file.
    #[error("{file}: {problem}")]
    System {
        /// The file.
        file: String,
        /// The system's message.
        problem: String,
    },
    /// The operating system could not read what an array needs.
    #[error("array {array}: {file}: {problem}")]
    Unfetched {
        /// The array's path.
        array: String,
        /// The file that holds its bytes.
        file: String,
        /// The system's message.
        problem: String,
    },
    /// A document leads to where it may not.
    #[error("{said}")]
    NotAllowed {
        /// The document, where it leads, and what to do.
        said: String,
    },
    /// The caller cancelled the read.
    #[error("the read was cancelled")]
    Cancelled,
    /// The output and the selection differ in size.
    #[error("the output has {found} bytes, but the selection needs {expected}")]
    OutputSize {
        /// The size of the selection.
        expected: u64,
        /// The size of the output.
        found: u64,
    },
}
