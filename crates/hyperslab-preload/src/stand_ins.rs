//! What stands for functions in the modules of a program: our entries by their names, and stubs. `entries`, which has them and
//! knows what is done there, tells where they are before anything is bound.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

use crate::instructions::Act;

/// How many entries stand for functions of libhdf5, in the order of `Hook`.
pub(crate) const HOOK_COUNT: usize = 18;
/// How many functions can have stubs. The largest programs call a thousand.
pub(crate) const STUB_COUNT: usize = 1 << 12;
/// How far apart stubs are.
#[cfg(target_arch = "x86_64")]
pub(crate) const STUB_NBYTES: usize = 16;
#[cfg(not(target_arch = "x86_64"))]
pub(crate) const STUB_NBYTES: usize = 8;

/// Where calls of a function arrive by its name, and what is done with them; `None` if they only have to be caught.
pub(crate) type Entry = (&'static CStr, unsafe extern "C" fn(), Option<Act>);

/// All that stand for functions.
pub(crate) struct StandIns {
    /// The entries for functions of libhdf5, then of netCDF-C.
    pub entries: &'static [Entry],
    /// The address of the first stub.
    pub first_stub: usize,
}

static ALL: OnceLock<StandIns> = OnceLock::new();

/// Says where they are. Only the first call does anything.
#[inline]
pub(crate) fn tell(all: impl FnOnce() -> StandIns) {
    ALL.get_or_init(all);
}

fn entries() -> &'static [Entry] {
    ALL.get().map_or(&[], |all| all.entries)
}

/// The number of the entry for a function of libhdf5's or netCDF-C's, if it has one: below `HOOK_COUNT`, that of a `Hook`.
pub(crate) fn entry_number(name: &CStr) -> Option<usize> {
    entries().iter().position(|(replaced, ..)| *replaced == name)
}

/// The name of a function that has an entry.
pub(crate) fn entry_name(number: usize) -> &'static CStr {
    entries()[number].0
}

/// Where calls of a function arrive whoever means it.
pub(crate) fn entry(number: usize) -> *mut c_void {
    entries()[number].1 as *mut c_void
}

/// What is done with calls of a function; `None` if nothing is.
pub(crate) fn act(number: usize) -> Option<Act> {
    entries().get(number)?.2
}

/// The address of a stub; `None` as long as nobody has told.
pub(crate) fn stub(number: usize) -> Option<usize> {
    Some(ALL.get()?.first_stub + number * STUB_NBYTES)
}

/// The number of the stub at an address.
#[inline]
pub(crate) fn stub_number(address: usize) -> Option<usize> {
    let first = ALL.get()?.first_stub;
    Some(address.checked_sub(first)? / STUB_NBYTES).filter(|&number| number < STUB_COUNT)
}
