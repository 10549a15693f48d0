//! Which of many things were used least recently, with their sizes: the page cache, and the paper's caches.

use std::collections::HashMap;

const NONE: u32 = u32::MAX;
/// Room for everything.
pub(crate) const UNBOUNDED: u64 = u64::MAX;
/// Keys below this are places of a table; what may be larger goes by hashing.
const MOST_DENSE: u64 = 1 << 24;

#[derive(Clone, Debug)]
enum Places {
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

/// Keys with sizes, of a bounded sum; what was used least recently goes first.
#[derive(Clone, Debug)]
pub(crate) struct Lru {
    capacity: u64,
    used: u64,
    places: Places,
    nodes: Vec<Node>,
    free: Vec<u32>,
    oldest: u32,
    newest: u32,
}

impl Lru {
    /// Room for `capacity` bytes; keys are below `key_stop`, if that is known.
    pub fn new(capacity: u64, key_stop: Option<u64>) -> Self {
        let dense = key_stop.filter(|&stop| stop <= MOST_DENSE).and_then(|stop| usize::try_from(stop).ok());
        let places =
            dense.map_or_else(|| Places::Sparse(HashMap::new()), |stop| Places::Dense(vec![NONE; stop]));
        Self { capacity, used: 0, places, nodes: Vec::new(), free: Vec::new(), oldest: NONE, newest: NONE }
    }

    /// Use a key: whether it was there. If not, it is now, unless it is larger than everything.
    pub fn uses(&mut self, key: u64, nbytes: u64) -> bool {
        let place = self.place(key);
        if self.capacity == UNBOUNDED {
            if place == NONE {
                self.set_place(key, 0); // nothing ever goes, so the order of use is nobody's concern
            }
            return place != NONE;
        }
        if place != NONE {
            self.unlink(place);
            self.link(place);
            return true;
        }
        if nbytes > self.capacity {
            return false;
        }
        while self.used > self.capacity - nbytes {
            self.remove(self.oldest);
        }
        let node = Node { key, nbytes, older: NONE, newer: NONE };
        let place = self.free.pop().unwrap_or_else(|| {
            self.nodes.push(node);
            u32::try_from(self.nodes.len() - 1).unwrap_or(NONE)
        });
        self.nodes[place as usize] = node;
        self.set_place(key, place);
        self.used += nbytes;
        self.link(place);
        false
    }

    /// Whether a key is there.
    pub fn has(&self, key: u64) -> bool {
        self.place(key) != NONE
    }

    fn place(&self, key: u64) -> u32 {
        match &self.places {
            Places::Dense(places) => {
                places.get(usize::try_from(key).unwrap_or(usize::MAX)).copied().unwrap_or(NONE)
            }
            Places::Sparse(places) => places.get(&key).copied().unwrap_or(NONE),
        }
    }

    fn set_place(&mut self, key: u64, place: u32) {
        match &mut self.places {
            Places::Dense(places) => {
                if let Some(held) = places.get_mut(usize::try_from(key).unwrap_or(usize::MAX)) {
                    *held = place;
                }
            }
            Places::Sparse(places) if place == NONE => drop(places.remove(&key)),
            Places::Sparse(places) => drop(places.insert(key, place)),
        }
    }

    fn remove(&mut self, place: u32) {
        self.unlink(place);
        let Node { key, nbytes, .. } = self.nodes[place as usize];
        self.used -= nbytes;
        self.set_place(key, NONE);
        self.free.push(place);
    }

    fn unlink(&mut self, place: u32) {
        let Node { older, newer, .. } = self.nodes[place as usize];
        match older {
            NONE => self.oldest = newer,
            older => self.nodes[older as usize].newer = newer,
        }
        match newer {
            NONE => self.newest = older,
            newer => self.nodes[newer as usize].older = older,
        }
    }

    fn link(&mut self, place: u32) {
        let newest = self.newest;
        self.nodes[place as usize].older = newest;
        self.nodes[place as usize].newer = NONE;
        match newest {
            NONE => self.oldest = place,
            newest => self.nodes[newest as usize].newer = place,
        }
        self.newest = place;
    }
}
