//! What one thread keeps from chunk to chunk, and the result of a codec.

use super::buffer::{Buffer, Size};
use crate::Error;

/// What one thread keeps from chunk to chunk: memory and decompressors.
#[derive(Default)]
pub struct Scratch {
    pub(super) front: Buffer,
    pub(super) back: Buffer,
    pub(super) tools: Tools,
}

/// Decompressors that are expensive to create, and memory for use within one codec.
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

/// What a codec of the table decodes.
#[derive(Clone, Copy)]
pub(crate) struct Coded<'a> {
    /// The encoded bytes.
    pub(super) bytes: &'a [u8],
    /// What the output must have.
    pub(super) size: Size,
    /// The numbers of [`hyperslab_core::Codec::Known`].
    pub(super) parameters: &'a [u32],
    /// Whether scatter comes next.
    pub(super) is_outermost: bool,
}

impl Coded<'_> {
    /// The parameters, if there are so many.
    pub(super) fn numbers<const COUNT: usize>(&self, codec: &'static str) -> Result<[u32; COUNT], Error> {
        let given = self.parameters.try_into();
        given.map_err(|_| Error::Parameters { codec, problem: "another number of them is needed" })
    }
}

#[cfg(test)]
impl<'a> Coded<'a> {
    /// Bytes of a codec without parameters.
    pub(super) fn of(bytes: &'a [u8], size: Size) -> Self {
        Self { bytes, size, parameters: &[], is_outermost: false }
    }
}

/// The result of a codec.
pub(crate) enum Step {
    /// The output is the first bytes of the input: this many.
    Kept(usize),
    /// The output is in the other buffer: this many bytes.
    Made(usize),
    /// The same, but the elements of its blocks are still shuffled. Only allowed if scatter comes next.
    MadeShuffled {
        /// Bytes in the other buffer.
        nbytes: usize,
        /// Width of an element; at least 2.
        element_nbytes: usize,
        /// Bytes of each block except the last: a multiple of the element width.
        block_nbytes: usize,
    },
}

impl From<usize> for Step {
    fn from(nbytes: usize) -> Self {
        Self::Made(nbytes)
    }
}
