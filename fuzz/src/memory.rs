//! Limits the memory of a target. Beyond the limit, allocation fails, which ends the process unless the code expects
//! it.

use std::alloc::System;

use cap::Cap;

#[global_allocator]
static MEMORY: Cap<System> = Cap::new(System, usize::MAX);

/// Runs work that may hold this many bytes at a time beyond what is held now.
pub fn bounded<T>(nbytes: usize, work: impl FnOnce() -> T) -> T {
    let limit = MEMORY.allocated().saturating_add(nbytes);
    let _ = MEMORY.set_limit(limit); // only fails below what is held
    let result = work();
    let _ = MEMORY.set_limit(usize::MAX);
    result
}

/// A panic is reported with all the memory that it takes.
pub fn lift_on_panic() {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |information| {
        let _ = MEMORY.set_limit(usize::MAX);
        told(information);
    }));
}
