//! What one thread keeps from chunk to chunk, and what a step of a chain gives.

use super::buffer::Buffer;

/// What one thread keeps from chunk to chunk: memory and decompressors.
#[derive(Default)]
pub struct Scratch {
    pub(super) front: Buffer,
    pub(super) back: Buffer,
    pub(super) tools: Tools,
}

/// Decompressors that are costly to make, and memory for use within one codec.
pub(crate) struct Tools {
    pub(super) inflate: libdeflater::Decompressor,
    pub(super) zstd: Option<zstd_safe::DCtx<'static>>,
    pub(super) work: Buffer,
    pub(super) planes: Buffer,
    pub(super) frame: Buffer,
    pub(super) samples: Vec<u32>,
}

impl Default for Tools {
    fn default() -> Self {
        Self {
            inflate: libdeflater::Decompressor::new(),
            zstd: None,
            work: Buffer::default(),
            planes: Buffer::default(),
            frame: Buffer::default(),
            samples: Vec::new(),
        }
    }
}

/// What a step did.
pub(crate) enum Step {
    /// Its output is the first so many bytes of its input.
    Kept(usize),
    /// Its output is so many bytes in the other buffer.
    Made(usize),
    /// The same, but its blocks' elements are still shuffled: only where scatter comes next.
    MadeShuffled {
        /// Bytes in the other buffer.
        nbytes: usize,
        /// Width of an element; at least 2.
        element_nbytes: usize,
        /// Bytes of each block but the last: a multiple of an element's.
        block_nbytes: usize,
    },
}
