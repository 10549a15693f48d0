//! Locks that never wait for long. After a fork, a lock may be held by a thread that no longer exists.

use std::sync::{Mutex, MutexGuard, TryLockError};

/// Longer than any holder needs, since holders only look something up.
const MOST_TRIES: usize = 1000;

/// The lock, or `None` if it does not become free. The caller then does without what the lock protects, which must be
/// dispensable.
pub fn lock_briefly<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    for _ in 0..MOST_TRIES {
        match mutex.try_lock() {
            Ok(guard) => return Some(guard),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => std::thread::yield_now(),
        }
    }
    None
}
