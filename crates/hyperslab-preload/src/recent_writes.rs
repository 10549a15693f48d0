//! What was written last of each array, as much as libhdf5's cache of chunks would hold: who writes there again may rely on
//! that cache, where it costs no more than a copy. Forgetting costs time, and nothing else.

use std::collections::VecDeque;

use hyperslab_libhdf5::ArrayKey;

use crate::shared::Shared;

/// Of how many writes it is known.
const MOST_WRITES: usize = 256;

/// Where elements are: the first one, and the shape.
pub(crate) type Box = (Vec<u64>, Vec<u64>);

struct Written {
    key: ArrayKey,
    part: Box,
    nbytes: u64,
}

#[derive(Default)]
struct Recent(VecDeque<Written>);

static RECENT: Shared<Recent> = Shared::new();

/// Begins anew in a forked child.
pub(crate) fn forget() {
    RECENT.forget();
}

/// Notes a write of whole chunks. Returns whether libhdf5's cache would have had one of them, if it holds so many bytes.
pub(crate) fn note(key: ArrayKey, part: &Box, nbytes: u64, cache_nbytes: u64) -> bool {
    if nbytes > cache_nbytes {
        return false;
    }
    let Some(mut recent) = RECENT.lock() else { return false };
    let mut room = cache_nbytes;
    let is_again = recent.0.iter().filter(|written| written.key == key).any(|written| {
        room = room.saturating_sub(written.nbytes);
        room > 0 && overlap(&written.part, part)
    });
    recent.0.retain(|written| written.key != key || written.part != *part);
    recent.0.push_front(Written { key, part: part.clone(), nbytes });
    recent.0.truncate(MOST_WRITES);
    is_again
}

fn overlap(one: &Box, other: &Box) -> bool {
    let axes = one.0.iter().zip(&one.1).zip(other.0.iter().zip(&other.1));
    axes.into_iter()
        .all(|((&first, &length), (&start, &count))| first < start + count && start < first + length)
}
