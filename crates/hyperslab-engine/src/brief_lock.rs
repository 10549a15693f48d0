//! Locks that never wait for long: after a fork a lock may be held by a thread that does not exist any more.

use std::sync::{Mutex, MutexGuard, TryLockError};

/// More than any holder needs, who only looks something up.
const MOST_TRIES: usize = 1000;

/// The lock, or nothing: then the caller goes on without what it protects, which must be dispensable.
pub(crate) fn lock_briefly<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..MOST_TRIES {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}
