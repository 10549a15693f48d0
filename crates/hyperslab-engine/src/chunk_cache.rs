//! Keeps decoded chunks that were read only in part, for the next read that wants another part.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use crate::brief_lock::lock_briefly;
use crate::codecs::{Decoded, Shuffled};

/// Array, the address in memory of its segment's manifest, chunk.
pub type ChunkKey = (u64, usize, u64);

/// A decoded chunk.
#[derive(Debug)]
pub(crate) struct KeptChunk(Vec<u8>);

impl KeptChunk {
    /// A copy in the memory of an older chunk, because fresh memory costs half as much as decoding. Copying also
    /// unshuffles, which takes no longer, so later reads from this chunk are plain copies.
    fn of(decoded: Decoded<'_>, mut memory: Vec<u8>) -> Self {
        match decoded {
            Decoded::Plain(bytes) => {
                memory.clear();
                memory.extend_from_slice(bytes);
            }
            Decoded::Shuffled(shuffled) => {
                memory.resize(shuffled.planes.len(), 0);
                shuffled.unshuffle(&mut memory);
            }
        }
        Self(memory)
    }

    /// As the decoder returned it.
    pub fn decoded(&self) -> Decoded<'_> {
        Decoded::Plain(&self.0)
    }
}

/// The most recently used chunks, up to a number of bytes. Threads share the cache. It is dispensable, so nobody waits
/// for it.
#[derive(Debug)]
pub struct ChunkCache {
    most_nbytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    chunks: HashMap<ChunkKey, (Arc<KeptChunk>, u64)>,
    by_use: BTreeMap<u64, ChunkKey>,
    clock: u64,
    nbytes: usize,
}

impl ChunkCache {
    /// An empty cache. With 0 bytes it keeps nothing.
    pub fn new(most_nbytes: usize) -> Self {
        Self { most_nbytes, kept: Mutex::default() }
    }

    /// Whether the cache can hold this many bytes at once.
    pub(crate) fn has_room_for(&self, nbytes: u64) -> bool {
        nbytes <= self.most_nbytes as u64
    }

    pub(crate) fn get(&self, key: ChunkKey) -> Option<Arc<KeptChunk>> {
        if self.most_nbytes == 0 {
            return None;
        }
        lock_briefly(&self.kept)?.touch(key)
    }

    pub(crate) fn insert(&self, key: ChunkKey, decoded: Decoded<'_>) {
        let (Decoded::Plain(bytes) | Decoded::Shuffled(Shuffled { planes: bytes, .. })) = decoded;
        if bytes.len() > self.most_nbytes {
            return;
        }
        let room = self.most_nbytes - bytes.len();
        let Some(memory) = lock_briefly(&self.kept).map(|mut kept| kept.make_room(room)) else { return };
        let chunk = Arc::new(KeptChunk::of(decoded, memory));
        if let Some(mut kept) = lock_briefly(&self.kept) {
            kept.insert(key, chunk);
            kept.make_room(self.most_nbytes); // another thread may have taken the room
        }
    }
}

impl Kept {
    fn touch(&mut self, key: ChunkKey) -> Option<Arc<KeptChunk>> {
        self.clock += 1;
        let (chunk, used) = self.chunks.get_mut(&key)?;
        self.by_use.remove(used);
        *used = self.clock;
        self.by_use.insert(self.clock, key);
        Some(Arc::clone(chunk))
    }

    fn insert(&mut self, key: ChunkKey, chunk: Arc<KeptChunk>) {
        self.clock += 1;
        self.nbytes += chunk.0.len();
        self.by_use.insert(self.clock, key);
        if let Some((replaced, used)) = self.chunks.insert(key, (chunk, self.clock)) {
            self.by_use.remove(&used);
            self.nbytes -= replaced.0.len();
        }
    }

    /// Drops the least recently used chunks until at most `nbytes` are kept. Returns the memory of the last one
    /// dropped.
    fn make_room(&mut self, nbytes: usize) -> Vec<u8> {
        let mut memory = Vec::new();
        while self.nbytes > nbytes {
            let Some((_, key)) = self.by_use.pop_first() else { break };
            if let Some((chunk, _)) = self.chunks.remove(&key) {
                self.nbytes -= chunk.0.len();
                memory = Arc::try_unwrap(chunk).map(|chunk| chunk.0).unwrap_or_default();
            }
        }
        memory
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_chunk_used_longest_ago_goes_first() {
        let cache = ChunkCache::new(20);
        let insert = |chunk: u64, byte: u8| cache.insert((0, 0, chunk), Decoded::Plain(&[byte; 10]));
        let kept =
            |chunk: u64| cache.get((0, 0, chunk)).map(|kept| kept.decoded() == Decoded::Plain(&[7; 10]));
        insert(1, 7);
        insert(2, 7);
        assert_eq!(kept(1), Some(true));
        insert(3, 7);
        assert_eq!((kept(1), kept(2), kept(3)), (Some(true), None, Some(true)));
        cache.insert((0, 0, 4), Decoded::Plain(&[7; 21]));
        assert_eq!((kept(1), kept(4)), (Some(true), None));
        insert(3, 8);
        assert_eq!(kept(3), Some(false));
    }
}
