//! How a file driver is described to libhdf5: `H5FD_class_t`, in the two forms that it has had since HDF5 1.10.

#![allow(unsafe_code)]

use std::ffi::{c_uint, c_void};

use crate::Id;
use crate::driven::{
    MOST_LIBRARIES, close, compare, copy_information, end, file_end, free_information, handle, information,
    open, query, read, set_end, write,
};

/// The largest offset.
const MOST_OFFSET: u64 = i64::MAX as u64;
/// `H5F_CLOSE_WEAK`.
const CLOSE_WEAK: u64 = 1;
/// `H5FD_CLASS_VERSION`, and in the upper half our number, which must be one that no driver of libhdf5 has.
const VERSION_AND_VALUE: u64 = 1 | (NUMBER << 32);
const NUMBER: u64 = 42_101;
/// More than what follows in any form.
const REST_WORDS: usize = 32;

/// `H5FDregister`.
pub(crate) type Register = unsafe extern "C" fn(*const c_void) -> Id;

/// Registers the driver of the library at a place. `None` if it refuses.
pub(crate) fn register(place: usize, version: [c_uint; 3], register: Register) -> Option<Id> {
    let words = words(opener(place)?);
    let class = match version {
        [1, 10..=12, _] => words.to_vec(),
        [major, minor, _] if major > 1 || minor >= 14 => {
            std::iter::once(VERSION_AND_VALUE).chain(words).collect()
        }
        _ => return None, // versions for developers
    };
    // What else there is (several parts at once, locks, kinds of memory) is left out, which zeros mean.
    let class: Vec<u64> = class.into_iter().chain([0; REST_WORDS]).collect();
    // SAFETY: the words are a description in the form of this version, which libhdf5 copies. What follows is its room.
    let id = unsafe { register(class.as_ptr().cast()) };
    (id > 0).then_some(id)
}

/// What both forms have in common: from the name to the function that writes.
fn words(open: u64) -> [u64; 27] {
    let word = |function: *const ()| function as usize as u64;
    [
        word(c"hyperslab".as_ptr().cast()),
        MOST_OFFSET,
        CLOSE_WEAK,
        0, // nothing to do at the end
        0, // nothing in the superblock: its length,
        0, // how it is written
        0, // and read
        0, // the length of properties: they are copied by functions
        word(information as *const ()),
        word(copy_information as *const ()),
        word(free_information as *const ()),
        0, // no transfer properties: their length,
        0, // how they are copied
        0, // and freed
        open,
        word(close as *const ()),
        word(compare as *const ()),
        word(query as *const ()),
        0, // no map of kinds of memory
        0, // nothing is allocated
        0, // nor freed
        word(end as *const ()),
        word(set_end as *const ()),
        word(file_end as *const ()),
        word(handle as *const ()),
        word(read as *const ()),
        word(write as *const ()),
    ]
}

/// The function that opens files for the library at a place.
fn opener(place: usize) -> Option<u64> {
    let openers: [*const (); MOST_LIBRARIES] = [
        open::<0> as *const (),
        open::<1> as *const (),
        open::<2> as *const (),
        open::<3> as *const (),
        open::<4> as *const (),
        open::<5> as *const (),
        open::<6> as *const (),
        open::<7> as *const (),
    ];
    openers.get(place).map(|&function| function as usize as u64)
}
