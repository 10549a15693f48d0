//! HDF5's cache of decoded chunks, as in `H5Dchunk.c`: a hash table with one chunk in each slot, and a list that is
//! only roughly in the order of use.

use hyperslab_core::ChunkGrid;

const NONE: u32 = u32::MAX;

/// The parameters of the cache: HDF5's `rdcc_nbytes`, `rdcc_nslots`, `rdcc_w0`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChunkCacheSize {
    /// Size in decoded bytes.
    pub nbytes: u64,
    /// Slots of the hash table.
    pub slot_count: u64,
    /// How much earlier chunks are evicted that were read or written completely: from 0 to 1.
    pub w0: f64,
}

impl ChunkCacheSize {
    /// The defaults up to HDF5 1.14.
    pub const BEFORE_2: Self = Self { nbytes: 1 << 20, slot_count: 521, w0: 0.75 };
    /// The defaults from HDF5 2.0 on.
    pub const FROM_2: Self = Self { nbytes: 8 << 20, slot_count: 8191, w0: 0.75 };
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    chunk: u64,
    slot: u32,
    earlier: u32,
    later: u32,
    unread: u64,
    unwritten: u64,
    is_dirty: bool,
}

impl Entry {
    /// Whether the chunk was read or written completely, or not used at all, so that it may be evicted early.
    fn is_done_with(&self, chunk_nbytes: u64) -> bool {
        match (self.unread, self.unwritten) {
            (0, unwritten) => unwritten == 0 || unwritten == chunk_nbytes,
            (unread, unwritten) => unwritten == 0 && unread == chunk_nbytes,
        }
    }
}

/// A chunk that leaves the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Left {
    pub chunk: u64,
    /// Whether it was changed, and so must be written.
    pub is_dirty: bool,
}

#[derive(Clone, Debug)]
pub(crate) struct ChunkCache {
    size: ChunkCacheSize,
    chunk_nbytes: u64,
    /// How many bits each axis except the first contributes to the hash.
    nbits: Vec<u32>,
    slots: Vec<u32>,
    entries: Vec<Entry>,
    free: Vec<u32>,
    first: u32,
    last: u32,
    count: u64,
    /// How many of the chunks may be evicted early.
    done_count: u64,
}

impl ChunkCache {
    pub fn new(mut size: ChunkCacheSize, grid: &ChunkGrid, chunk_nbytes: u64) -> Self {
        if size.nbytes == 0 || size.slot_count == 0 {
            (size.nbytes, size.slot_count) = (0, 0);
        }
        let nbits = |&length: &u64| length.max(1).next_power_of_two().trailing_zeros();
        Self {
            nbits: grid.grid_shape().iter().map(nbits).collect(),
            slots: vec![NONE; usize::try_from(size.slot_count).unwrap_or(0)],
            size,
            chunk_nbytes,
            entries: Vec::new(),
            free: Vec::new(),
            first: NONE,
            last: NONE,
            count: 0,
            done_count: 0,
        }
    }

    /// Whether a chunk can be kept at all.
    pub fn takes_chunks(&self) -> bool {
        !self.slots.is_empty() && self.chunk_nbytes <= self.size.nbytes
    }

    /// Whether chunks are larger than the cache.
    pub fn is_too_small(&self) -> bool {
        self.chunk_nbytes > self.size.nbytes
    }

    /// Whether the cache is empty.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// The slot of a chunk. If two chunks share a slot, the later one evicts the earlier.
    pub fn slot(&self, chunk_index: &[u64]) -> usize {
        if self.slots.is_empty() {
            return 0;
        }
        let mut axes = chunk_index.iter().zip(&self.nbits);
        let first = axes.next().map_or(0, |(&index, _)| index);
        let value = axes.fold(first, |value, (&index, &nbits)| value.checked_shl(nbits).unwrap_or(0) ^ index);
        usize::try_from(value % self.slots.len() as u64).unwrap_or(0)
    }

    /// Uses a chunk if it is in the cache, which moves it one position away from eviction.
    pub fn uses(&mut self, slot: usize, chunk: u64) -> bool {
        let position = self.slots.get(slot).copied().unwrap_or(NONE);
        if position == NONE || self.entries[position as usize].chunk != chunk {
            return false;
        }
        let later = self.entries[position as usize].later;
        if later != NONE {
            self.unlink(position);
            self.link_after(later, position);
        }
        true
    }

    /// Puts a chunk into its slot. Calls `leaves` for each chunk that is evicted, in order.
    pub fn insert(&mut self, slot: usize, chunk: u64, mut leaves: impl FnMut(Left)) {
        let position = self.slots[slot];
        if position != NONE {
            leaves(self.remove(position));
        }
        self.make_room(&mut leaves);
        let (unread, unwritten) = (self.chunk_nbytes, self.chunk_nbytes);
        let slot_number = u32::try_from(slot).unwrap_or(NONE);
        let entry = Entry {
            chunk,
            slot: slot_number,
            earlier: NONE,
            later: NONE,
            unread,
            unwritten,
            is_dirty: false,
        };
        let position = self.free.pop().unwrap_or_else(|| {
            self.entries.push(entry);
            u32::try_from(self.entries.len() - 1).unwrap_or(NONE)
        });
        self.entries[position as usize] = entry;
        self.slots[slot] = position;
        self.count += 1;
        self.done_count += u64::from(entry.is_done_with(self.chunk_nbytes));
        self.link_after(self.last, position);
    }

    /// The array has another shape now, so chunks may have other slots. HDF5 counts only whole chunks along an axis
    /// here (`H5D__set_extent`). Calls `leaves` for chunks whose slot another one has taken, once all have theirs.
    pub fn regrid(
        &mut self,
        grid: &ChunkGrid,
        index_of: impl Fn(u64) -> Vec<u64>,
        mut leaves: impl FnMut(Left),
    ) {
        let whole =
            |(&length, &chunk): (&u64, &u64)| (length / chunk).max(1).next_power_of_two().trailing_zeros();
        let nbits: Vec<u32> = grid.shape().iter().zip(grid.chunk_shape()).map(whole).collect();
        if std::mem::replace(&mut self.nbits, nbits) == self.nbits {
            return;
        }
        let mut displaced: Vec<u32> = Vec::new();
        let mut position = self.first;
        while position != NONE {
            let Entry { chunk, slot: old, later, .. } = self.entries[position as usize];
            let new = self.slot(&index_of(chunk));
            if new != old as usize {
                let there = self.slots[new];
                if there != NONE {
                    displaced.push(there);
                }
                self.slots[new] = position;
                self.entries[position as usize].slot = u32::try_from(new).unwrap_or(NONE);
                if let Some(found) = displaced.iter().position(|&each| each == position) {
                    displaced.remove(found);
                } else {
                    self.slots[old as usize] = NONE;
                }
            }
            position = later;
        }
        for position in displaced {
            let slot = self.entries[position as usize].slot as usize;
            let holder = self.slots[slot];
            leaves(self.remove(position));
            self.slots[slot] = holder;
        }
    }

    /// Counts bytes that were read of the chunk in a slot.
    pub fn was_read(&mut self, slot: usize, nbytes: u64) {
        self.change(slot, |entry| entry.unread = entry.unread.saturating_sub(nbytes));
    }

    /// Counts bytes that were written to the chunk in a slot.
    pub fn was_written(&mut self, slot: usize, nbytes: u64) {
        self.change(slot, |entry| {
            entry.unwritten = entry.unwritten.saturating_sub(nbytes);
            entry.is_dirty = true;
        });
    }

    fn change(&mut self, slot: usize, change: impl FnOnce(&mut Entry)) {
        let entry = &mut self.entries[self.slots[slot] as usize];
        self.done_count -= u64::from(entry.is_done_with(self.chunk_nbytes));
        change(entry);
        self.done_count += u64::from(entry.is_done_with(self.chunk_nbytes));
    }

    /// The changed chunks, in the order in which they are written. They stay, and count as unchanged from now on.
    pub fn flush(&mut self) -> Vec<u64> {
        let mut dirty = Vec::new();
        let mut position = self.first;
        while position != NONE {
            let entry = &mut self.entries[position as usize];
            if std::mem::take(&mut entry.is_dirty) {
                dirty.push(entry.chunk);
            }
            position = entry.later;
        }
        dirty
    }

    /// Forgets all chunks. Changed ones must have been written.
    pub fn clear(&mut self) {
        self.slots.fill(NONE);
        self.entries.clear();
        self.free.clear();
        (self.first, self.last) = (NONE, NONE);
        (self.count, self.done_count) = (0, 0);
    }

    fn is_full(&self) -> bool {
        (self.count + 1) * self.chunk_nbytes > self.size.nbytes
    }

    /// Evicts chunks until there is room for one more. If none may be evicted early, and one is enough, that is the first
    /// one of the list: no walk has to find that out.
    fn make_room(&mut self, leaves: &mut impl FnMut(Left)) {
        let one_is_enough = self.count * self.chunk_nbytes <= self.size.nbytes;
        if self.is_full() && self.done_count == 0 && one_is_enough && self.lead() < self.count {
            return leaves(self.remove(self.first));
        }
        self.walk(leaves);
    }

    /// How far the leading hand is ahead of the other.
    #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)] // as HDF5 does
    fn lead(&self) -> u64 {
        (self.count as f64 * self.size.w0) as u64
    }

    /// Two hands go along the list until there is room for one more chunk. The leading one only takes chunks that were
    /// read or written completely, or not used at all. The other takes any chunk; it starts when the first is `w0` of
    /// the list ahead.
    fn walk(&mut self, leaves: &mut impl FnMut(Left)) {
        let mut lead = Some(self.lead());
        let mut hands = [self.first, NONE];
        while hands != [NONE, NONE] && self.is_full() {
            if lead == Some(0) {
                hands[1] = self.first;
            }
            let mut nexts = hands.map(|position| self.later(position));
            for hand in 0..hands.len() {
                let position = hands[hand];
                if !self.is_full()
                    || position == NONE
                    || hand == 0 && !self.entries[position as usize].is_done_with(self.chunk_nbytes)
                {
                    continue;
                }
                for (held, next) in hands.iter_mut().zip(&mut nexts) {
                    if *held == position {
                        *held = NONE;
                    }
                    if *next == position {
                        *next = self.later(position);
                    }
                }
                leaves(self.remove(position));
            }
            hands = nexts;
            lead = lead.and_then(|lead| lead.checked_sub(1));
        }
    }

    fn later(&self, position: u32) -> u32 {
        if position == NONE { NONE } else { self.entries[position as usize].later }
    }

    fn remove(&mut self, position: u32) -> Left {
        self.unlink(position);
        let entry = self.entries[position as usize];
        self.slots[entry.slot as usize] = NONE;
        self.free.push(position);
        self.count -= 1;
        self.done_count -= u64::from(entry.is_done_with(self.chunk_nbytes));
        Left { chunk: entry.chunk, is_dirty: entry.is_dirty }
    }

    fn unlink(&mut self, position: u32) {
        let Entry { earlier, later, .. } = self.entries[position as usize];
        match earlier {
            NONE => self.first = later,
            earlier => self.entries[earlier as usize].later = later,
        }
        match later {
            NONE => self.last = earlier,
            later => self.entries[later as usize].earlier = earlier,
        }
    }

    fn link_after(&mut self, earlier: u32, position: u32) {
        let later = if earlier == NONE { self.first } else { self.entries[earlier as usize].later };
        self.entries[position as usize].earlier = earlier;
        self.entries[position as usize].later = later;
        match earlier {
            NONE => self.first = position,
            earlier => self.entries[earlier as usize].later = position,
        }
        match later {
            NONE => self.last = position,
            later => self.entries[later as usize].earlier = position,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers that look random.
    fn drawn(state: &mut u64, below: u64) -> u64 {
        *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    #[test]
    fn what_is_evicted_without_a_walk_is_what_a_walk_evicts() -> Result<(), hyperslab_core::Error> {
        let grid = ChunkGrid::new(vec![400], vec![1])?;
        let mut evicted = [0, 0];
        for (seed, w0) in (0..).zip([0.0, 0.3, 0.75, 0.99, 1.0]) {
            let size = ChunkCacheSize { nbytes: 160, slot_count: 97, w0 };
            let (mut cache, mut state) = (ChunkCache::new(size, &grid, 8), seed);
            for _ in 0..4000 {
                let chunk = drawn(&mut state, 400);
                let slot = cache.slot(&[chunk]);
                if !cache.uses(slot, chunk) {
                    let (mut walked, mut mine, mut theirs) = (cache.clone(), Vec::new(), Vec::new());
                    let is_short = cache.done_count == 0;
                    walked.walk(&mut |left| theirs.push(left));
                    cache.make_room(&mut |left| mine.push(left));
                    assert_eq!(mine, theirs);
                    evicted[usize::from(is_short)] += mine.len();
                    cache.insert(slot, chunk, |_| ());
                }
                match drawn(&mut state, 40) {
                    0 => cache.was_read(slot, 8),
                    1 => cache.was_written(slot, 8),
                    _ => cache.was_read(slot, 1),
                }
                let all = cache.entries.iter().enumerate();
                let held = all.filter(|(place, _)| !cache.free.iter().any(|&free| free as usize == *place));
                let done = held.filter(|(_, entry)| entry.is_done_with(8)).count();
                assert_eq!(cache.done_count, done as u64);
            }
        }
        assert!(evicted.iter().all(|&count| count > 100), "{evicted:?}");
        Ok(())
    }
}
