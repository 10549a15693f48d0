//! Keeps fetched bytes of remote objects for later reads, if the caller asks for that.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::{Arc, Mutex};

use super::identity::Identity;
use crate::brief_lock::lock_briefly;

/// For how many objects we remember what they were when they were opened.
const MOST_OBJECTS: usize = 1 << 16;

/// The most recently used bytes, up to a limit. Threads share the cache. It is dispensable, so nobody waits for it.
pub struct ByteCache {
    most_nbytes: usize,
    kept: Mutex<Kept>,
}

#[derive(Default)]
struct Kept {
    /// By object name: pieces by offset. They do not overlap.
    pieces: HashMap<Arc<str>, BTreeMap<u64, Piece>>,
    by_use: BTreeMap<u64, (Arc<str>, u64)>,
    identities: HashMap<Arc<str>, Identity>,
    clock: u64,
    nbytes: usize,
}

struct Piece {
    bytes: Arc<[u8]>,
    used: u64,
}

/// Buffers to fill, by their offset in an object.
pub(super) type Wanted<'w> = Vec<(u64, &'w mut [u8])>;

impl fmt::Debug for ByteCache {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("ByteCache").field("most_nbytes", &self.most_nbytes).finish_non_exhaustive()
    }
}

impl ByteCache {
    /// An empty cache. With 0 bytes it keeps nothing.
    pub fn new(most_nbytes: usize) -> Self {
        Self { most_nbytes, kept: Mutex::default() }
    }

    fn is_used(&self) -> bool {
        self.most_nbytes > 0
    }

    /// Copies what is kept into the buffers. Returns what is missing, and how many bytes were copied.
    pub(super) fn take<'w>(&self, object: &str, wanted: Wanted<'w>) -> (Wanted<'w>, usize) {
        let (mut missing, mut taken) = (Vec::new(), 0);
        for (mut offset, mut out) in wanted {
            let held = self.overlapping(object, offset, out.len());
            for (start, bytes) in held {
                let skip = usize::try_from(offset.saturating_sub(start)).unwrap_or(usize::MAX);
                let gap = usize::try_from(start.saturating_sub(offset)).unwrap_or(usize::MAX).min(out.len());
                let (before, rest) = out.split_at_mut(gap);
                if !before.is_empty() {
                    missing.push((offset, before));
                }
                let part = bytes.get(skip..).unwrap_or_default();
                let (here, after) = rest.split_at_mut(part.len().min(rest.len()));
                here.copy_from_slice(&part[..here.len()]);
                taken += here.len();
                (offset, out) = (offset + (gap + here.len()) as u64, after);
            }
            if !out.is_empty() {
                missing.push((offset, out));
            }
        }
        (missing, taken)
    }

    /// Keeps bytes that are not in any kept piece.
    pub(super) fn keep(&self, object: &str, offset: u64, bytes: &[u8]) {
        if bytes.is_empty() || bytes.len() > self.most_nbytes {
            return;
        }
        let copy = bytes.into();
        if let Some(mut kept) = lock_briefly(&self.kept) {
            kept.insert(object, offset, copy);
            kept.make_room(self.most_nbytes);
        }
    }

    /// Forgets all bytes of an object.
    pub(super) fn forget(&self, object: &str) {
        let Some(mut kept) = lock_briefly(&self.kept) else { return };
        for (_, piece) in kept.pieces.remove(object).unwrap_or_default() {
            kept.by_use.remove(&piece.used);
            kept.nbytes -= piece.bytes.len();
        }
    }

    /// What an object was when it was opened.
    pub(super) fn identity(&self, object: &str) -> Option<Identity> {
        if self.is_used() { lock_briefly(&self.kept)?.identities.get(object).cloned() } else { None }
    }

    pub(super) fn keep_identity(&self, object: &str, identity: &Identity) {
        let Some(mut kept) = lock_briefly(&self.kept).filter(|_| self.is_used()) else { return };
        if kept.identities.len() >= MOST_OBJECTS {
            *kept = Kept::default(); // bytes without their identity could be of another version
        }
        kept.identities.insert(object.into(), identity.clone());
    }

    /// Pieces that overlap a range, in order.
    fn overlapping(&self, object: &str, offset: u64, nbytes: usize) -> Vec<(u64, Arc<[u8]>)> {
        let kept = if self.is_used() { lock_briefly(&self.kept) } else { None };
        kept.map(|mut kept| kept.overlapping(object, offset, nbytes)).unwrap_or_default()
    }
}

impl Kept {
    fn overlapping(&mut self, object: &str, offset: u64, nbytes: usize) -> Vec<(u64, Arc<[u8]>)> {
        let end = offset.saturating_add(nbytes as u64);
        let Some((name, _)) = self.pieces.get_key_value(object) else { return Vec::new() };
        let name = Arc::clone(name);
        let Some(pieces) = self.pieces.get_mut(object) else { return Vec::new() };
        let first = pieces.range(..=offset).next_back().map_or(offset, |(start, _)| *start);
        let mut found = Vec::new();
        for (start, piece) in pieces.range_mut(first..end) {
            if start.saturating_add(piece.bytes.len() as u64) > offset {
                self.clock += 1;
                self.by_use.remove(&piece.used);
                piece.used = self.clock;
                self.by_use.insert(self.clock, (Arc::clone(&name), *start));
                found.push((*start, Arc::clone(&piece.bytes)));
            }
        }
        found
    }

    /// Skips bytes that another thread has kept meanwhile.
    fn insert(&mut self, object: &str, offset: u64, bytes: Arc<[u8]>) {
        if !self.overlapping(object, offset, bytes.len()).is_empty() {
            return;
        }
        let known = self.pieces.get_key_value(object).map(|(name, _)| Arc::clone(name));
        let name = known.unwrap_or_else(|| object.into());
        self.clock += 1;
        self.nbytes += bytes.len();
        self.by_use.insert(self.clock, (Arc::clone(&name), offset));
        self.pieces.entry(name).or_default().insert(offset, Piece { bytes, used: self.clock });
    }

    fn make_room(&mut self, most_nbytes: usize) {
        while self.nbytes > most_nbytes {
            let Some((_, (name, offset))) = self.by_use.pop_first() else { break };
            let Some(pieces) = self.pieces.get_mut(&name) else { continue };
            if let Some(piece) = pieces.remove(&offset) {
                self.nbytes -= piece.bytes.len();
            }
            if pieces.is_empty() {
                self.pieces.remove(&name);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(cache: &ByteCache, offset: u64, nbytes: usize) -> (Vec<u8>, Vec<(u64, usize)>) {
        let mut out = vec![0; nbytes];
        let (missing, _) = cache.take("x", vec![(offset, &mut out)]);
        let missing = missing.into_iter().map(|(offset, part)| (offset, part.len())).collect();
        (out, missing)
    }

    #[test]
    fn what_is_kept_is_not_missing() {
        let cache = ByteCache::new(8);
        cache.keep("x", 10, &[1, 2, 3]);
        cache.keep("x", 15, &[4, 5]);
        assert_eq!(taken(&cache, 10, 3), (vec![1, 2, 3], vec![]));
        assert_eq!(taken(&cache, 11, 1), (vec![2], vec![]));
        assert_eq!(
            taken(&cache, 9, 10),
            (vec![0, 1, 2, 3, 0, 0, 4, 5, 0, 0], vec![(9, 1), (13, 2), (17, 2)])
        );
        assert_eq!(taken(&cache, 13, 2).1, [(13, 2)]);
        cache.keep("x", 11, &[9, 9]); // kept already
        assert_eq!(taken(&cache, 11, 2).0, [2, 3]);
        cache.keep("y", 0, &[7; 5]); // what was used longest ago goes: 15..17
        assert_eq!(taken(&cache, 10, 7).1, [(13, 4)]);
        cache.forget("y");
        cache.keep("z", 0, &[8; 5]); // there is room for it
        assert_eq!(taken(&cache, 10, 3).1, []);
        assert_eq!(taken(&ByteCache::new(0), 1, 2).1, [(1, 2)]);
    }
}
