//! Asks libhdf5 which arrays are still open, when the program closes one or accesses one for the first time.

use hyperslab_libhdf5::{Id, Kind as IdKind, Library, Place};

use super::openings::Key;
use super::state;

/// How many arrays that are open are looked at when one is closed.
const MOST_OPEN: usize = 256;
/// Where identifiers of libhdf5 have their kind, and which one is an array. It is so in all versions since 1.10.
const KIND_SHIFT: u32 = 56;
const KIND_OF_ARRAYS: Id = 5;

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
