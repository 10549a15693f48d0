//! An array's description in its metadata.

use hyperslab_core::{
    Array, Attribute, Codec, Element, Fill, Notes, Role, Segment, Unreadable, VirtualMappings,
};

use super::keys::Keys;
use super::shards::Shards;

/// The contents of an array's metadata, in either version.
pub(super) struct Description {
    pub shape: Vec<u64>,
    /// The shape of what one key holds.
    pub chunk_shape: Vec<u64>,
    pub element: Element,
    pub fill: Fill,
    /// The chain of a chunk, or of a subchunk if there are shards; or why there is none.
    pub codecs: Result<Vec<Codec>, Unreadable>,
    pub shards: Option<Shards>,
    pub keys: Keys,
    pub dimensions: Option<Vec<String>>,
    pub attributes: Vec<Attribute>,
    pub role: Role,
}

/// The described array in this shape, with these segments.
pub(super) fn array(
    description: &Description,
    shape: &[u64],
    segments: Result<Vec<Segment>, Unreadable>,
) -> Array {
    Array {
        max_shape: vec![None; shape.len()],
        shape: Some(shape.to_vec()),
        element: description.element.clone(),
        fill: description.fill.clone(),
        is_chunked: true,
        notes: Notes::default(),
        role: description.role,
        virtual_mappings: VirtualMappings::NONE,
        segments,
        dimensions: description.dimensions.clone(),
        attributes: description.attributes.clone(),
    }
}
