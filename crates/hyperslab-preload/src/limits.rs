//! Limits that the system sets to this process.

#![allow(unsafe_code)]

/// The most bytes of a file that the process may write. Beyond, the system sends a signal that ends most programs.
pub(crate) fn file_limit() -> u64 {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the structure is valid for writes.
    if unsafe { libc::getrlimit(libc::RLIMIT_FSIZE, &raw mut limit) } == 0 {
        limit.rlim_cur
    } else {
        u64::MAX
    }
}
