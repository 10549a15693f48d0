//! Limits that the system sets to this process.

use rustix::process::{Resource, getrlimit};

/// The most bytes of a file that the process may write. Beyond, the system sends a signal that ends most programs.
pub(crate) fn file_limit() -> u64 {
    getrlimit(Resource::Fsize).current.unwrap_or(u64::MAX)
}
