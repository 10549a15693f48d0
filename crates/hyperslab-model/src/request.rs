//! The requests behind the variables, for who wants to see them.

use hyperslab_core::ByteRange;

/// What a request is for.
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

/// One request that a library makes of the operating system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Request {
    /// What it is for.
    pub purpose: Purpose,
    /// The chunk's linear index; the shard's for whole shards; 0 where an array is in one piece.
    pub chunk: u64,
    /// Where in the file that holds the chunk. Of an index block only the length is known: its offset is 0.
    pub range: ByteRange,
}

/// Who wants to see requests as they are made.
pub trait Watch {
    /// One more request.
    fn saw(&mut self, request: Request);
}

/// Nobody.
impl Watch for () {
    fn saw(&mut self, _: Request) {}
}

impl Watch for Vec<Request> {
    fn saw(&mut self, request: Request) {
        self.push(request);
    }
}
