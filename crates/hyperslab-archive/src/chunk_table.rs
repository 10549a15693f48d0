//! `ChunkTable`: where the chunk of each hash is in a stack of chunks, which versions of an array share.

use std::collections::HashMap;

use crate::chunk_hashes::Digest;

/// Where the chunk of each hash is.
#[derive(Clone, Debug, Default)]
pub struct ChunkTable(HashMap<Digest, i64>);

impl ChunkTable {
    /// Of hashes, and of the slot of each one's chunk.
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

    /// The slot of each hash, and which of them are new: each of these is met for the first time, and gets a slot from
    /// `next` on. The hash `nothing` has the slot -1: its chunk is not stored.
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

    /// Put hashes in, whose chunks are one after another from the slot `first` on.
    pub fn add(&mut self, digests: impl IntoIterator<Item = Digest>, first: i64) {
        self.0.extend(digests.into_iter().zip(first..));
    }
}
