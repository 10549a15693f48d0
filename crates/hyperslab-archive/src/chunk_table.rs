//! `ChunkTable`: maps the hash of a chunk to its slot in the stack of chunks that all versions of an array share.

use std::collections::HashMap;

use crate::chunk_hashes::Digest;

/// Maps the hash of each chunk to its slot.
#[derive(Clone, Debug, Default)]
pub struct ChunkTable(HashMap<Digest, i64>);

impl ChunkTable {
    /// From hashes and the slot of each.
    pub fn new(chunks: impl IntoIterator<Item = (Digest, i64)>) -> Self {
        Self(chunks.into_iter().collect())
    }

    /// How many chunks there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The slot of each hash, and the numbers of the new hashes. Each new hash gets a slot, counting from `next`. The
    /// hash `nothing` has slot -1: its chunk is not stored.
    pub fn find(&self, digests: &[Digest], nothing: &[u8], next: i64) -> (Vec<i64>, Vec<i64>) {
        let mut added: HashMap<Digest, i64> = HashMap::new();
        let (mut slots, mut new) = (Vec::with_capacity(digests.len()), Vec::new());
        for (number, digest) in (0_i64..).zip(digests) {
            let known = if digest.as_slice() == nothing { Some(-1) } else { self.0.get(digest).copied() };
            slots.push(known.unwrap_or_else(|| {
                *added.entry(*digest).or_insert_with(|| {
                    new.push(number);
                    next.saturating_add(i64::try_from(new.len()).unwrap_or(i64::MAX) - 1)
                })
            }));
        }
        (slots, new)
    }

    /// Adds hashes whose chunks take consecutive slots, starting at `first`.
    pub fn add(&mut self, digests: impl IntoIterator<Item = Digest>, first: i64) {
        self.0.extend(digests.into_iter().zip(first..));
    }
}
