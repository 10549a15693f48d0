//! An array known only by its metadata, in a hierarchy whose keys we do not list: a remote one, or one that others
//! write to. Its chunks are looked for when they are read.

use hyperslab_core::{
    Array, ByteRange, Codec, FileIndex, Fill, Manifest, Orthogonal, PlanError, PointGroup, Points, ReadPlan,
    Segment, Unreadable,
};

use super::chunk_bytes::{Chunk, ChunkBytes};
use super::description::{Description, array};
use super::nodes::{Documents, node};
use super::parts::Parts;
use super::{chunks, document};
use crate::error::Error;

/// The contents of the array's metadata.
pub struct ArrayDocument {
    /// The prefix of the keys of its chunks.
    prefix: String,
    description: Description,
}

impl ArrayDocument {
    /// From the text of a `zarr.json` or `.zarray`. Keys start with the array's path, which may be empty.
    pub fn of(text: &[u8], path: &str) -> Result<Self, Unreadable> {
        let value = document::read(text)?;
        let is_old = value.get("zarr_format").and_then(serde_json::Value::as_u64) == Some(2);
        let documents = Documents::from([(if is_old { ".zarray" } else { "zarr.json" }, Ok(value))]);
        let description = node(&documents)?.ok_or_else(|| Unreadable::damaged("a group, not an array"))?;
        Ok(Self::new(path, description))
    }

    pub(super) fn new(path: &str, description: Description) -> Self {
        let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
        Self { prefix, description }
    }

    /// The same with another fill value: the bytes of an element.
    #[must_use]
    pub fn with_fill(self, element: Vec<u8>) -> Self {
        Self { description: Description { fill: Fill::Value(element), ..self.description }, ..self }
    }

    /// Why none of it can be read; `None` if it can.
    pub fn unreadable(&self) -> Option<&Unreadable> {
        self.description.codecs.as_ref().err()
    }

    /// The shape of what one key holds: a chunk, or a shard.
    pub fn key_shape(&self) -> &[u64] {
        &self.description.chunk_shape
    }

    /// The shape of what is encoded at a time: a chunk, or a subchunk of a shard; `None` for shards within shards.
    pub fn unit_shape(&self) -> Option<&[u64]> {
        match &self.description.shards {
            None => Some(self.key_shape()),
            Some(shards) => shards.within.is_none().then_some(shards.subchunk_shape.as_slice()),
        }
    }

    /// How a chunk or subchunk is encoded.
    pub fn codecs(&self) -> Result<&[Codec], Unreadable> {
        self.description.codecs.as_deref().map_err(Clone::clone)
    }

    /// The bytes of the fill value, as stored.
    pub fn fill(&self) -> Option<Vec<u8>> {
        let width = usize::try_from(self.description.element.nbytes()).ok()?;
        match &self.description.fill {
            Fill::Value(element) => (element.len() == width).then(|| element.clone()),
            Fill::Zero | Fill::Undefined => Some(vec![0; width]),
        }
    }

    /// The subchunks of a shard, given all its bytes.
    pub fn entries_in(&self, shard: &[u8]) -> Result<Vec<Option<ByteRange>>, Error> {
        let shards = self.description.shards.as_ref();
        shards.map_or_else(|| Ok(Vec::new()), |shards| shards.entries_in(self.key_shape(), shard))
    }

    /// The index of a shard whose subchunks, in order, have these lengths, and whether it stands before them.
    pub fn index_of(&self, lengths: &[Option<u64>]) -> Result<(bool, Vec<u8>), Unreadable> {
        let Some(shards) = &self.description.shards else { return Ok((false, Vec::new())) };
        let (is_first, nbytes) = shards.index_position(self.key_shape())?;
        Ok((is_first, shards.index_of(lengths, if is_first { nbytes } else { 0 })))
    }

    /// The array without any chunk.
    pub fn empty(&self) -> Array {
        self.array(&self.description.shape, |description| {
            let codecs = description.codecs.as_ref().map_err(Clone::clone)?;
            let mut unit = description.chunk_shape.as_slice();
            let mut shards = description.shards.as_ref();
            while let Some(level) = shards {
                (unit, shards) = (&level.subchunk_shape, level.within.as_deref());
            }
            chunks::segment(description, &description.shape, codecs, unit, Manifest::empty())
        })
    }

    /// The linear indices of the chunks, or shards, that a selection touches in an array of this shape, sorted.
    pub fn touched(&self, shape: &[u64], selection: &Orthogonal) -> Result<Vec<u64>, PlanError> {
        let outer = self.outer(shape);
        let plan = ReadPlan::new(&outer, selection)?;
        Ok(distinct(plan.reads().map(|read| read.chunk).collect()))
    }

    /// The same for points.
    pub fn touched_by(&self, shape: &[u64], points: &Points) -> Result<Vec<u64>, PlanError> {
        let outer = self.outer(shape);
        let mut touched = Vec::new();
        for group in PointGroup::of(points, &outer)? {
            touched.extend(ReadPlan::new(&outer, &group.around)?.reads().map(|read| read.chunk));
        }
        Ok(distinct(touched))
    }

    /// The keys of chunks, or shards, of an array of this shape.
    pub fn keys(&self, shape: &[u64], indices: &[u64]) -> Result<Vec<String>, Unreadable> {
        let grid = chunks::outer_grid(&self.description, shape)?;
        let key = |&index: &u64| {
            let chunk_index = grid.chunk_index(index)?;
            Ok(format!("{}{}", self.prefix, self.description.keys.key(&chunk_index)))
        };
        indices.iter().map(key).collect()
    }

    /// The location of a shard's index: whether it is at the start, and how many bytes it takes; `None` without shards.
    pub fn shard_index(&self) -> Result<Option<(bool, u64)>, Unreadable> {
        let shards = self.description.shards.as_ref();
        shards.map(|shards| shards.index_position(&self.description.chunk_shape)).transpose()
    }

    /// The array, in this shape, with these chunks, by linear index in increasing order. Each chunk is a file of its
    /// own and may not exist; file number 1 holds the first chunk.
    pub fn with_chunks(&self, shape: &[u64], indices: &[u64], are_far: bool) -> Array {
        let sought = indices.iter().copied().zip(1..).collect();
        self.array(shape, |description| {
            let codecs = description.codecs.as_ref().map_err(Clone::clone)?;
            let manifest = Manifest::of_sought(sought, are_far);
            chunks::segment(description, shape, codecs, &description.chunk_shape, manifest)
        })
    }

    /// The array, in this shape, with the shards that exist: linear index, file, and length.
    pub fn with_shards(&self, shape: &[u64], shards: &[(u64, FileIndex, u64)], parts: &dyn Parts) -> Array {
        self.array(shape, |description| {
            let codecs = description.codecs.as_ref().map_err(Clone::clone)?;
            let chunk = |&(index, file, length): &(u64, FileIndex, u64)| Chunk {
                index,
                bytes: ChunkBytes::Stored { file, range: ByteRange { offset: 0, length } },
            };
            let grid = chunks::outer_grid(description, shape)?;
            let shards = shards.iter().map(chunk).collect();
            chunks::of_chunks(parts, description, shape, codecs, grid, shards)
        })
    }

    /// The array with one chunk for each key. This only serves to see which keys are touched.
    fn outer(&self, shape: &[u64]) -> Array {
        self.array(shape, |description| {
            let codecs = description.codecs.as_ref().map_err(Clone::clone)?;
            chunks::segment(description, shape, codecs, &description.chunk_shape, Manifest::empty())
        })
    }

    fn array(
        &self,
        shape: &[u64],
        segments: impl FnOnce(&Description) -> Result<Vec<Segment>, Unreadable>,
    ) -> Array {
        let segments = if shape.contains(&0) { Ok(Vec::new()) } else { segments(&self.description) };
        array(&self.description, shape, segments)
    }
}

fn distinct(mut indices: Vec<u64>) -> Vec<u64> {
    indices.sort_unstable();
    indices.dedup();
    indices
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use hyperslab_core::{ChunkState, Hyperslab};

    use super::*;

    const DOCUMENT: &str = r#"{"zarr_format": 3, "node_type": "array", "shape": [7, 9], "data_type": "uint8",
        "fill_value": 3, "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4, 3]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": ["bytes"]}"#;

    #[test]
    fn only_what_a_selection_touches_is_sought() {
        let made = ArrayDocument::of(DOCUMENT.as_bytes(), "a/b").unwrap();
        let asked = Hyperslab::new(&[0, 2], &[1, 2], &[2, 2], &[1, 1]).unwrap();
        let touched = made.touched(&[7, 9], &Orthogonal::from(&asked)).unwrap();
        assert_eq!(touched, [0, 1]);
        assert_eq!(made.keys(&[7, 9], &touched).unwrap(), ["a/b/c/0/0", "a/b/c/0/1"]);
        let array = made.with_chunks(&[7, 9], &touched, false);
        let manifest = &array.segments.unwrap()[0].manifest;
        assert_eq!(manifest.state(1), ChunkState::Sought { file: 2 });
        assert_eq!(manifest.state(2), ChunkState::Missing);
        let corner = Points::new(2, vec![6, 8]).unwrap();
        assert_eq!(made.touched_by(&[7, 9], &corner).unwrap(), [5]);
    }
}
