//! The array and the type of a thread's last access: most programs read from one array many times, and asking for either
//! would take longer than reading a single element.

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};

use super::state::{Key, Numbers};
use crate::libhdf5::MOST_NDIM;

struct Recent {
    epoch: u64,
    key: Key,
    kind: Key,
    known: Numbers,
    shape: [u64; MOST_NDIM],
    ndim: usize,
}

/// Changes when shapes or identifiers may have changed, or the log has.
static EPOCH: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static RECENT: RefCell<Recent> = const {
        let known = Numbers { array: 0, text: 0, width: 0 };
        RefCell::new(Recent { epoch: 0, key: (0, 0), kind: (0, 0), known, shape: [0; MOST_NDIM], ndim: 0 })
    };
}

/// What to compare with later.
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// Nothing that is kept holds any more.
pub(crate) fn forget() {
    EPOCH.fetch_add(1, Ordering::AcqRel);
}

/// Lets a function use the numbers and the shape, if they are still those of this array and type.
#[inline]
pub(crate) fn with<R>(key: Key, kind: Key, act: impl FnOnce(Numbers, &[u64]) -> Option<R>) -> Option<R> {
    RECENT.with(|recent| {
        let recent = recent.try_borrow().ok()?;
        if recent.key == key && recent.kind == kind && recent.epoch == epoch() {
            act(recent.known, &recent.shape[..recent.ndim])
        } else {
            None
        }
    })
}

/// Keeps them. `epoch` is that of a moment before the shape was asked for.
pub(crate) fn keep(epoch: u64, key: Key, kind: Key, known: Numbers, shape: &[u64]) {
    RECENT.with(|recent| {
        let Ok(mut recent) = recent.try_borrow_mut() else { return };
        let mut room = [0; MOST_NDIM];
        room[..shape.len()].copy_from_slice(shape);
        *recent = Recent { epoch, key, kind, known, shape: room, ndim: shape.len() };
    });
}
