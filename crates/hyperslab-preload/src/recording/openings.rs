//! Which arrays are open, as far as the program has accessed them: libhdf5 keeps the chunks of an array until the last
//! identifier of it is closed.
//!
//! An identifier that is closed may be the last one, or others may stand for the same array that we have not seen yet: in
//! `array = file["x"]` within a loop, the new one is opened before the old one is closed. Then libhdf5 tells.

use std::collections::{HashMap, HashSet};

use hyperslab_libhdf5::{Id, Kind as IdKind, Library, Place};

use super::state::{self, Key};

/// The flags of `log.py`: the array was closed and opened again since the access before, and so was its file.
pub(crate) const REOPENED: u8 = 8;
pub(crate) const FILE_REOPENED: u8 = 16;
/// How many arrays, and how many identifiers, are followed at most.
const MOST: usize = 1 << 16;
/// How many arrays that are open are looked at when one is closed.
const MOST_OPEN: usize = 256;
/// Where identifiers of libhdf5 have their kind, and which one is an array. It is so in all versions since 1.10.
const KIND_SHIFT: u32 = 56;
const KIND_OF_ARRAYS: Id = 5;

/// An array that some library has open: the library and the place.
type Opened = (usize, Place);

/// What is known of open arrays.
#[derive(Default)]
pub(crate) struct Openings {
    places: HashMap<Key, Place>,
    /// The identifiers that stand for an array.
    open: HashMap<Opened, Vec<Id>>,
    /// The arrays that were open all the time since they were accessed last.
    kept: HashSet<Opened>,
    /// Where an array was, by its library and the hash of its name, when it was accessed last; `None` if libhdf5 was closed.
    last: HashMap<(usize, u64), Option<Place>>,
}

impl Openings {
    /// Another identifier of the same array.
    fn other(&self, key: Key, place: Place) -> Option<Id> {
        self.open.get(&(key.0, place))?.iter().rev().copied().find(|&id| id != key.1)
    }

    /// An identifier stands for the array at this place.
    fn keep(&mut self, key: Key, place: Place) {
        if self.places.len() >= MOST {
            self.places.clear();
            self.open.clear();
            self.kept.clear();
        }
        if self.places.insert(key, place).is_none() {
            self.open.entry((key.0, place)).or_default().push(key.1);
        }
    }

    /// An identifier is closed.
    fn remove(&mut self, key: Key) {
        if let Some(place) = self.places.remove(&key)
            && let Some(ids) = self.open.get_mut(&(key.0, place))
        {
            ids.retain(|&id| id != key.1);
            if ids.is_empty() {
                self.open.remove(&(key.0, place));
                self.kept.remove(&(key.0, place));
            }
        }
    }

    /// The array of an identifier has forgotten its chunks.
    pub fn refreshed(&mut self, key: Key) {
        if let Some(&place) = self.places.get(&key) {
            self.kept.remove(&(key.0, place));
        }
    }

    /// The first access by an identifier, as far as we remember. Returns the flags.
    fn accessed(&mut self, key: Key, place: Place, named: u64) -> u8 {
        if self.last.len() >= MOST {
            self.last.clear();
        }
        let before = self.last.insert((key.0, named), Some(place));
        self.keep(key, place);
        let was_open = !self.kept.insert((key.0, place));
        match before {
            None => 0,
            Some(Some(before)) if before.file_number == place.file_number => {
                if was_open {
                    0
                } else {
                    REOPENED
                }
            }
            Some(_) => REOPENED | FILE_REOPENED,
        }
    }

    /// libhdf5 was closed, with all that it had open.
    pub fn forget(&mut self) {
        self.places.clear();
        self.open.clear();
        self.kept.clear();
        self.last.values_mut().for_each(|place| *place = None);
    }
}

/// Whether an identifier may be that of an array.
#[inline]
pub(crate) fn is_array(id: Id) -> bool {
    id >> KIND_SHIFT == KIND_OF_ARRAYS
}

/// Whether an identifier is one that the program has accessed an array by.
pub(crate) fn knows(key: Key) -> bool {
    state::exists() && state::with(|state| state.openings.places.contains_key(&key)).unwrap_or(false)
}

/// The first access by an identifier, to the array at a place. Returns the flags.
pub(crate) fn accessed(library: &Library, key: Key, place: Place, named: u64) -> Option<u8> {
    // Programs close arrays in many ways, not all of which we see: with their file, for example.
    for _ in 0..MOST_OPEN {
        let Some(other) = state::with(|state| state.openings.other(key, place))? else { break };
        if library.is(IdKind::Array, other) {
            break;
        }
        state::with(|state| state.openings.remove((key.0, other)))?;
    }
    state::with(|state| state.openings.accessed(key, place, named))
}

/// An identifier that was known has been released: if it is closed, others may stand for the same array.
pub(crate) fn released(library: &Library, key: Key) -> Option<()> {
    if library.is(IdKind::Array, key.1) {
        return Some(()); // there were several references
    }
    let mut room = [0; MOST_OPEN];
    let count = library.open_arrays(&mut room);
    for &id in &room[..count] {
        if !state::with(|state| state.openings.places.contains_key(&(key.0, id)))?
            && let Some(place) = library.array(id).place()
        {
            state::with(|state| state.openings.keep((key.0, id), place))?;
        }
    }
    state::with(|state| state.openings.remove(key))
}
