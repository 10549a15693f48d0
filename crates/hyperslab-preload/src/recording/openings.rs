//! Which arrays are open, as far as the program has accessed them: libhdf5 keeps the chunks of an array until the last
//! identifier of it is closed.
//!
//! An identifier that is closed may be the last one, or others may stand for the same array that we have not seen yet: in
//! `array = file["x"]` within a loop, the new one is opened before the old one is closed. Then libhdf5 tells.

use std::collections::{HashMap, HashSet};

use hyperslab_libhdf5::{Id, Place};

/// An identifier of a library: the library's number, and the identifier.
pub(crate) type Key = (usize, Id);

/// The flags of `log.py`: the array was closed and opened again since the access before, and so was its file.
pub(crate) const REOPENED: u8 = 8;
pub(crate) const FILE_REOPENED: u8 = 16;
/// How many arrays, and how many identifiers, are followed at most.
const MOST: usize = 1 << 16;

/// An array that some library has open: the library and the place.
type Opened = (usize, Place);

/// What is known of open arrays.
#[derive(Default)]
pub(crate) struct Openings {
    pub places: HashMap<Key, Place>,
    /// The identifiers that stand for an array.
    open: HashMap<Opened, Vec<Id>>,
    /// The arrays that were open all the time since they were accessed last.
    kept: HashSet<Opened>,
    /// Where an array was, by its library and the hash of its name, when it was accessed last; `None` if libhdf5 was closed.
    last: HashMap<(usize, u64), Option<Place>>,
}

impl Openings {
    /// Another identifier of the same array.
    pub fn other(&self, key: Key, place: Place) -> Option<Id> {
        self.open.get(&(key.0, place))?.iter().rev().copied().find(|&id| id != key.1)
    }

    /// An identifier stands for the array at this place.
    pub fn keep(&mut self, key: Key, place: Place) {
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
    pub fn remove(&mut self, key: Key) {
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
    pub fn accessed(&mut self, key: Key, place: Place, named: u64) -> u8 {
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
