//! The contents of a file of references, besides manifests.

use super::known_codecs::is_named;
use hyperslab_core::{Array, ChunkGrid, Codec, Element, FileIndex, Fill, Group, SegmentAxis, Unreadable};

/// A file that holds chunks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path; relative to the folder of the references if it lies below that folder.
    pub path: String,
    /// Its size then.
    pub nbytes: Option<u64>,
    /// Its modification time then, in seconds and nanoseconds since 1970.
    pub modified: Option<(u64, u32)>,
    /// The server's name for its version.
    pub etag: Option<String>,
    /// Whether it continues with zeros after its end, as HDF5's external raw files do.
    pub is_padded: bool,
}

/// An array without its chunks' locations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredArray {
    pub(super) described: Array,
    pub(super) segments: Result<Vec<StoredSegment>, Unreadable>,
    /// The file into which variable-length elements point.
    pub(super) heap_file: Option<FileIndex>,
}

/// A segment with the number of its manifest in place of the manifest.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredSegment {
    pub(super) axes: Vec<SegmentAxis>,
    pub(super) grid: ChunkGrid,
    pub(super) codecs: Vec<Codec>,
    pub(super) element: Element,
    pub(super) plain_edge_chunks: bool,
    pub(super) fill: Fill,
    pub(super) manifest: usize,
}

/// The location of a manifest in the file, including its checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ManifestLocation {
    pub(super) offset: u64,
    pub(super) nbytes: u64,
}

#[derive(Default)]
pub(super) struct Tables {
    pub(super) files: Vec<SourceFile>,
    pub(super) groups: Vec<Group>,
    pub(super) arrays: Vec<StoredArray>,
    pub(super) manifests: Vec<ManifestLocation>,
}

impl Tables {
    /// Whether a codec is stored by name.
    pub(super) fn name_codecs(&self) -> bool {
        let segments = self.arrays.iter().filter_map(|array| array.segments.as_ref().ok()).flatten();
        segments.flat_map(|segment| &segment.codecs).any(is_named)
    }
}
