//! What compresses blocks of bytes without any framing of ours, and what it keeps from one block to the next.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use libdeflater::{CompressionLvl, Compressor};
use zstd_safe::CCtx;

use super::lz4_encode::{Lz4, bound};
use super::{blosclz_encode, zstd};

/// What a step makes of bytes: nothing if it cannot; `Some(None)` if it is skipped for this chunk.
pub(super) type Made = Option<Option<Vec<u8>>>;

/// What compresses the blocks of Blosc and bitshuffle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inner {
    /// Nothing.
    Plain,
    /// LZ4.
    Lz4,
    /// `BloscLZ`, at a level of Blosc's, and whether the stream is one of several of its block.
    BloscLz { level: usize, is_split: bool },
    /// Deflate, at a level.
    Deflate(u32),
    /// Zstandard, at a level.
    Zstd(i32),
}

/// The settings of Blosc.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blosc {
    /// What compresses the blocks.
    pub inner: Inner,
    /// Blosc's own level, from 0 to 9: blocks depend on it.
    pub level: u8,
    /// Whether bytes or bits of equal significance are put together first: 0 neither, 1 bytes, 2 bits.
    pub shuffle: u8,
    /// Bytes of an element.
    pub element_nbytes: usize,
    /// Whether a chunk that would not become shorter is skipped, as HDF5's filter does. Otherwise it is copied.
    pub is_skipped: bool,
}

/// The compressors of one thread.
#[derive(Default)]
pub(super) struct Compressors {
    deflate: HashMap<u32, Compressor>,
    zstd: Option<CCtx<'static>>,
    pub(super) lz4: Lz4,
    /// A block of Blosc with its bytes rearranged.
    pub(super) arranged: Vec<u8>,
}

/// What a compressor of libdeflate takes at most, about.
const DEFLATE_NBYTES: usize = 2 << 20;

impl Compressors {
    /// About how many bytes they take.
    pub(super) fn nbytes(&self) -> usize {
        let zstd = self.zstd.as_ref().map_or(0, CCtx::sizeof);
        self.deflate.len() * DEFLATE_NBYTES + zstd + self.lz4.nbytes() + self.arranged.len()
    }

    /// Deflates with zlib's or gzip's header; `None` if there is no such level.
    pub(super) fn deflate(&mut self, bytes: &[u8], level: u32, is_gzip: bool) -> Option<Vec<u8>> {
        let compressor = match self.deflate.entry(level) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(free) => {
                let level = CompressionLvl::new(i32::try_from(level).ok()?).ok()?;
                free.insert(Compressor::new(level))
            }
        };
        let bound = if is_gzip {
            compressor.gzip_compress_bound(bytes.len())
        } else {
            compressor.zlib_compress_bound(bytes.len())
        };
        let mut out = vec![0; bound];
        let nbytes = if is_gzip {
            compressor.gzip_compress(bytes, &mut out).ok()?
        } else {
            compressor.zlib_compress(bytes, &mut out).ok()?
        };
        out.truncate(nbytes);
        Some(out)
    }

    /// Compresses a block.
    pub(super) fn inner(&mut self, bytes: &[u8], inner: Inner) -> Option<Vec<u8>> {
        match inner {
            Inner::Plain => Some(bytes.to_vec()),
            Inner::Lz4 => self.lz4.encode(bytes, 1, bound(bytes.len())).map(<[u8]>::to_vec),
            Inner::BloscLz { level, is_split } => {
                Some(blosclz_encode::encode(bytes, level, is_split).unwrap_or_else(|| bytes.to_vec()))
            }
            Inner::Deflate(level) => self.deflate(bytes, level, false),
            Inner::Zstd(level) => zstd::encode(bytes, level, &mut self.zstd),
        }
    }
}
