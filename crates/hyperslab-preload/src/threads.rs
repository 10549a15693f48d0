//! Work on many elements, shared among threads.

/// How many bytes are worth another thread.
const NBYTES_PER_THREAD: usize = 4 << 20;

/// Does something with shares of elements of a width: `work` gets the number of the share's first element, and the share.
pub(crate) fn in_shares(
    elements: &mut [u8],
    width: usize,
    thread_count: usize,
    work: impl Fn(usize, &mut [u8]) + Sync,
) {
    let thread_count = thread_count.min(elements.len() / NBYTES_PER_THREAD).max(1);
    hyperslab_engine::in_shares(elements, width, thread_count, work);
}
