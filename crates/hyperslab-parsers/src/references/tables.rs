//! What a file of references holds beside manifests.

use hyperslab_core::{Array, ChunkGrid, Codec, Element, FileIndex, Fill, Group, SegmentAxis, Unreadable};

/// A file that chunks lie in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceFile {
    /// Its path, relative to the folder of the references if it lies below it.
    pub path: String,
    /// How long it was.
    pub nbytes: Option<u64>,
    /// When it was changed last, in seconds and nanoseconds since 1970 began.
    pub modified: Option<(u64, u32)>,
    /// What a server calls this version of it.
    pub etag: Option<String>,
    /// Whether it goes on with zeros behind its end, as HDF5's external raw files do.
    pub is_padded: bool,
}

/// An array without its chunks' locations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct StoredArray {
    pub(super) described: Array,
    pub(super) segments: Result<Vec<StoredSegment>, Unreadable>,
    /// The file that pointers of variable-length elements lead into.
    pub(super) heap_file: Option<FileIndex>,
}

/// A segment with the number of its manifest instead of the manifest.
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

/// Where a manifest is in the file, its checksum included.
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
