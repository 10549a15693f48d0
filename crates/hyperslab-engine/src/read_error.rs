//! Why a read failed, for a person: which file, which array, which chunk, and where.

use hyperslab_core::PlanError;
use thiserror::Error;

use crate::error::Error;

/// A read that failed; nothing of its output is to be trusted.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ReadError {
    /// There is no plan for the selection.
    #[error("array {array} of {file}: {problem}")]
    Plan {
        /// The file.
        file: String,
        /// The array's path in it.
        array: String,
        /// Why.
        problem: PlanError,
    },
    /// A chunk's bytes are not what its metadata say.
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
    /// Bytes beyond the end of a file are needed.
    #[error(
        "{file} ends at {file_nbytes}, {nbytes} bytes at offset {offset} are needed: it is truncated or damaged"
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
    /// A file is not the one that was opened any more.
    #[error("{file} changed while it was open: open it again")]
    FileChanged {
        /// The file.
        file: String,
    },
    /// There is nothing at a URL.
    #[error("there is nothing at {url}: check the URL")]
    NoSuchObject {
        /// The URL, without query and credentials.
        url: String,
    },
    /// A server did not give what was asked for.
    #[error("{url} at offset {offset}: {problem}; {remedy}")]
    Remote {
        /// The URL, without query and credentials.
        url: String,
        /// The first byte that was asked for.
        offset: u64,
        /// What it did instead, status included.
        problem: String,
        /// What a person can do.
        remedy: &'static str,
    },
    /// A file is not the one any more that references were made of.
    #[error("{file} changed since {references} was written: its references are stale, index it again")]
    StaleReferences {
        /// The file.
        file: String,
        /// The file of references.
        references: String,
    },
    /// The operating system could not read.
    #[error("{file}: {problem}")]
    System {
        /// The file.
        file: String,
        /// What it says.
        problem: String,
    },
    /// The operating system could not read what an array needs.
    #[error("array {array}: {file}: {problem}")]
    Unfetched {
        /// The array's path.
        array: String,
        /// The file that holds its bytes.
        file: String,
        /// What the system says.
        problem: String,
    },
    /// A document leads to where it may not.
    #[error("{said}")]
    NotAllowed {
        /// The document, where it leads, and what to do.
        said: String,
    },
    /// The caller asked to stop.
    #[error("the read was cancelled")]
    Cancelled,
    /// The output has another size than the selection.
    #[error("the output has {found} bytes, the selection {expected}")]
    OutputSize {
        /// What the selection needs.
        expected: u64,
        /// What was given.
        found: u64,
    },
}
