//! Evicts the least recently used of many sized things: for the page cache, and the paper's caches.

use std::collections::HashMap;

const NONE: u32 = u32::MAX;
/// Unlimited room.
pub(crate) const UNBOUNDED: u64 = u64::MAX;
/// Keys below this are positions in a table. If keys may be larger, we hash them.
const MOST_DENSE: u64 = 1 << 24;

#[derive(Clone, Debug)]
enum Positions {
    Dense(Vec<u32>),
    Sparse(HashMap<u64, u32>),
}

#[derive(Clone, Copy, Debug)]
struct Node {
    key: u64,
    nbytes: u64,
    older: u32,
    newer: u32,
}

/// Keys with sizes of a bounded sum. The least recently used key is evicted first.
#[derive(Clone, Debug)]
pub(crate) struct Lru {
    capacity: u64,
    used: u64,
    positions: Positions,
    nodes: Vec<Node>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Lru {
    /// Room for `capacity` bytes. Keys are below `key_stop`, if that is known.
    pub fn new(capacity: u64, key_stop: Option<u64>) -> Self {
        let dense = key_stop.filter(|&stop| stop <= MOST_DENSE).and_then(|stop| usize::try_from(stop).ok());
        let positions = dense
            .map_or_else(|| Positions::Sparse(HashMap::new()), |stop| Positions::Dense(vec![NONE; stop]));
        Self { capacity, used: 0, positions, nodes: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE }
    }

    /// Uses a key. Returns whether it was there. If not, it is added, unless it is larger than the capacity.
    pub fn uses(&mut self, key: u64, nbytes: u64) -> bool {
        let position = self.position(key);
        if self.capacity == UNBOUNDED {
            if position == NONE {
                self.set_position(key, 0); // nothing is ever evicted, so the order of use does not matter
            }
            return position != NONE;
        }
        if position != NONE {
            self.unlink(position);
            self.link(position);
            return true;
        }
        if nbytes > self.capacity {
            return false;
        }
        while self.used > self.capacity - nbytes {
            self.remove(self.oldest);
        }
        let node = Node { key, nbytes, older: NONE, newer: NONE };
        let position = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(node);
            u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
        });
        self.nodes[position as usize] = node;
        self.set_position(key, position);
        self.used += nbytes;
        self.link(position);
        false
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        match &mut self.positions {
            Positions::Dense(positions) => positions.fill(NONE),
            Positions::Sparse(positions) => positions.clear(),
        }
        self.used = 0;
        self.nodes.clear();
        self.free.clear();
        (self.oldest, self.newest) = (NONE, NONE);
    }

    /// Keys may now be this large.
    pub fn grow(&mut self, key_stop: u64) {
        if let (Positions::Dense(positions), Ok(stop)) = (&mut self.positions, usize::try_from(key_stop)) {
            positions.resize(stop.max(positions.len()), NONE);
        }
    }

    /// Whether a key is there.
    pub fn has(&self, key: u64) -> bool {
        self.position(key) != NONE
    }

    fn position(&self, key: u64) -> u32 {
        match &self.positions {
            Positions::Dense(positions) => {
                positions.get(usize::try_from(key).unwrap_or(usize::MAX)).copied().unwrap_or(NONE)
            }
            Positions::Sparse(positions) => positions.get(&key).copied().unwrap_or(NONE),
        }
    }

    fn set_position(&mut self, key: u64, position: u32) {
        match &mut self.positions {
            Positions::Dense(positions) => {
                if let Some(held) = positions.get_mut(usize::try_from(key).unwrap_or(usize::MAX)) {
                    *held = position;
                }
            }
            Positions::Sparse(positions) if position == NONE => drop(positions.remove(&key)),
            Positions::Sparse(positions) => drop(positions.insert(key, position)),
        }
    }

    fn remove(&mut self, position: u32) {
        self.unlink(position);
        let Node { key, nbytes, .. } = self.nodes[position as usize];
        self.used -= nbytes;
        self.set_position(key, NONE);
        self.free.push(position);
    }

    fn unlink(&mut self, position: u32) {
        let Node { older, newer, .. } = self.nodes[position as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
    }

    fn link(&mut self, position: u32) {
        let newest = self.newest;
        self.nodes[position as usize].older = newest;
        self.nodes[position as usize].newer = NONE;
        match newest {
            NONE => self.oldest = position,
            newest => self.nodes[newest as usize].newer = position,
        }
        self.newest = position;
    }
}
