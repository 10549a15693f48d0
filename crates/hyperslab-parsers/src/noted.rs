//! What a parser read of a file: the structures by kind, and how far apart they are.

use std::collections::BTreeMap;

use hyperslab_core::ByteRange;

/// Structures that are farther apart than this are in two places: one request should not bring both.
const PLACE_GAP_NBYTES: u64 = 256 << 10;

/// The structures that were read, each once.
#[derive(Clone, Debug, Default)]
pub struct Noted {
    /// By offset: what it is, and the end of the longest read from there.
    read: BTreeMap<u64, (&'static str, u64)>,
}

/// All structures of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotedKind {
    /// The name of the kind, for people.
    pub what: &'static str,
    /// How many there are.
    pub count: u64,
    /// How many bytes they have. Bytes that two structures share count for both.
    pub nbytes: u64,
    /// Where the first one starts.
    pub first_offset: u64,
    /// Where the last one starts.
    pub last_offset: u64,
}

impl Noted {
    pub(crate) fn add(&mut self, what: &'static str, range: ByteRange) {
        let entry = self.read.entry(range.offset).or_insert((what, 0));
        if range.end() > entry.1 {
            *entry = (what, range.end());
        }
    }

    /// The kinds, by name.
    pub fn kinds(&self) -> Vec<NotedKind> {
        let mut kinds: BTreeMap<&'static str, NotedKind> = BTreeMap::new();
        for (&offset, &(what, end)) in &self.read {
            let new = NotedKind { what, count: 0, nbytes: 0, first_offset: offset, last_offset: offset };
            let kind = kinds.entry(what).or_insert(new);
            kind.count += 1;
            kind.nbytes += end - offset;
            kind.last_offset = offset;
        }
        kinds.into_values().collect()
    }

    /// How many bytes were read; those that were read twice count once.
    pub fn nbytes(&self) -> u64 {
        let (mut nbytes, mut reached) = (0, 0);
        for (&offset, &(_, end)) in &self.read {
            nbytes += end.saturating_sub(offset.max(reached));
            reached = reached.max(end);
        }
        nbytes
    }

    /// The end of the last structure.
    pub fn end(&self) -> u64 {
        self.read.values().map(|&(_, end)| end).max().unwrap_or(0)
    }

    /// In how many places of the file the structures are.
    pub fn place_count(&self) -> u64 {
        let (mut count, mut reached) = (0, None);
        for (&offset, &(_, end)) in &self.read {
            if reached.is_none_or(|reached| offset > reached + PLACE_GAP_NBYTES) {
                count += 1;
            }
            reached = reached.max(Some(end));
        }
        count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn structures_are_counted_once_and_by_place() {
        let mut noted = Noted::default();
        for (what, offset, length) in
            [("node", 100, 50), ("node", 100, 80), ("heap", 140, 60), ("node", 1 << 20, 8)]
        {
            noted.add(what, ByteRange { offset, length });
        }
        assert_eq!((noted.nbytes(), noted.place_count(), noted.end()), (108, 2, (1 << 20) + 8));
        let heap = NotedKind { what: "heap", count: 1, nbytes: 60, first_offset: 140, last_offset: 140 };
        let node = NotedKind { what: "node", count: 2, nbytes: 88, first_offset: 100, last_offset: 1 << 20 };
        assert_eq!(noted.kinds(), [heap, node]);
    }
}
