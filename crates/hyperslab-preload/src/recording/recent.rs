//! The array and the type of a thread's last access: most programs read from one array many times, and asking for either
//! would take longer than reading a single element.

use std::cell::{Cell, RefCell};
use std::sync::atomic::{AtomicU64, Ordering};

use hyperslab_libhdf5::Library;

use super::openings::Key;
use super::state::Kind;

struct RecentArray {
    epoch: u64,
    key: Key,
    number: u32,
    width: u64,
    shape: Vec<u64>,
}

#[derive(Clone, Copy)]
struct RecentKind {
    epoch: u64,
    key: Key,
    kind: Kind,
}

/// Changes when shapes or identifiers may have changed, or the log has.
static EPOCH: AtomicU64 = AtomicU64::new(1);

thread_local! {
    static ARRAY: RefCell<RecentArray> = const {
        RefCell::new(RecentArray { epoch: 0, key: (0, 0), number: 0, width: 0, shape: Vec::new() })
    };
    static KIND: Cell<RecentKind> = const {
        Cell::new(RecentKind { epoch: 0, key: (0, 0), kind: Kind { text: 0, same_as: 0 } })
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

/// Lets a function use the number of the last array, the bytes of its elements and its shape, if this is it.
#[inline]
pub(crate) fn with_array<R>(key: Key, act: impl FnOnce(u32, u64, &[u64]) -> Option<R>) -> Option<R> {
    ARRAY.with(|recent| {
        let recent = recent.try_borrow().ok()?;
        if recent.key == key && recent.epoch == epoch() {
            act(recent.number, recent.width, &recent.shape)
        } else {
            None
        }
    })
}

/// Keeps them. `epoch` is that of a moment before the shape was asked for.
pub(crate) fn keep_array(epoch: u64, key: Key, (number, width): (u32, u64), shape: &[u64]) {
    ARRAY.with(|recent| {
        let Ok(mut recent) = recent.try_borrow_mut() else { return };
        let recent = &mut *recent;
        shape.clone_into(&mut recent.shape);
        (recent.epoch, recent.key) = (epoch, key);
        (recent.number, recent.width) = (number, width);
    });
}

/// The number of the words for a type in memory, if it is the last one. Programs give many calls a new identifier of the
/// same type: whether it is the same is a single question.
#[inline]
pub(crate) fn text(library: &Library, key: Key) -> Option<u32> {
    KIND.with(|recent| {
        let mut known = recent.get();
        if known.epoch != epoch() || known.key.0 != key.0 {
            return None;
        }
        if known.key.1 != key.1 {
            let same_as = known.kind.same_as;
            if same_as == 0 || !library.datatype(key.1).equals(same_as) {
                return None;
            }
            known.key = key;
            recent.set(known);
        }
        Some(known.kind.text)
    })
}

/// Keeps a type. `epoch` is that of a moment before it was asked for.
pub(crate) fn keep_kind(epoch: u64, key: Key, kind: Kind) {
    KIND.with(|recent| recent.set(RecentKind { epoch, key, kind }));
}
