//! The requests behind the variables, for callers that want to see them.

use hyperslab_core::ByteRange;

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Purpose {
    /// A whole chunk (or shard) is read.
    ReadChunk,
    /// A part of a chunk, shard or array is read.
    ReadPart,
    /// A block of the chunk index is read.
    ReadIndex,
    /// A whole chunk (or shard) is written.
    WriteChunk,
    /// A part of a chunk or array is written.
    WritePart,
}

/// One request of a library to the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// Its purpose.
    pub purpose: Purpose,
    /// The chunk's linear index; the shard's for whole shards; 0 if the array is in one piece.
    pub chunk: u64,
    /// The range in the file that holds the chunk. For an index block only the length is known; the offset is 0.
    pub range: ByteRange,
}

/// Sees requests as they are made.
pub trait Watch {
    /// Called for each request.
    fn saw(&mut self, request: Request);
}

/// Ignores all requests.
impl Watch for () {
    fn saw(&mut self, _: Request) {}
}

impl Watch for Vec<Request> {
    fn saw(&mut self, request: Request) {
        self.push(request);
    }
}
