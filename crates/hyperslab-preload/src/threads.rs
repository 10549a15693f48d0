//! Work on many elements, shared among threads.

use std::sync::{Mutex, PoisonError};
use std::thread::Builder;

use hyperslab_engine::join_all;

/// How many bytes are worth another thread.
const NBYTES_PER_THREAD: usize = 4 << 20;

/// Does something with shares of elements of a width: `work` gets the number of the share's first element, and the share.
pub(crate) fn in_shares(
    elements: &mut [u8],
    width: usize,
    thread_count: usize,
    work: impl Fn(usize, &mut [u8]) + Sync,
) {
    let width = width.max(1);
    let count = elements.len() / width;
    let thread_count = thread_count.min(elements.len() / NBYTES_PER_THREAD).max(1);
    let share_count = count.div_ceil(thread_count).max(1);
    let shares = Mutex::new(elements.chunks_mut(share_count * width).enumerate());
    let take = || {
        let next = || shares.lock().unwrap_or_else(PoisonError::into_inner).next();
        while let Some((number, share)) = next() {
            work(number * share_count, share);
        }
    };
    std::thread::scope(|scope| {
        let mut started = Vec::new();
        for _ in 1..thread_count {
            // Where there are no more threads, this one does all.
            started.extend(Builder::new().spawn_scoped(scope, take));
        }
        take();
        join_all(started);
    });
}
