//! Open arrays.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong};
use std::ptr;

use crate::Id;
use crate::datatype::Type;
use crate::file::File;
use crate::library::Library;
use crate::owned::Owned;
use crate::owned::{Identified, identified};
use crate::properties::Properties;
use crate::space::Space;
use crate::table::ObjectInfo;

/// `H5D_SPACE_STATUS_ALLOCATED`.
const ALL_ALLOCATED: c_int = 2;
/// `H5O_INFO_BASIC`.
const BASIC: c_uint = 1;
/// More than any version of `H5O_info_t` has.
const INFO_WORDS: usize = 64;

/// An array, by its identifier.
#[derive(Clone, Copy)]
pub struct Array<'l> {
    pub(crate) library: &'l Library,
    pub(crate) id: Id,
}

/// Where an array is among all that its library has open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// The number that the library gave to the file when it was opened. It never gives it again.
    pub file_number: c_ulong,
    /// The address of the array's header, counted from the file's base address.
    pub address: u64,
}

/// Tells arrays of all libraries apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayKey {
    /// The library's number.
    pub library: usize,
    /// Where it has the array.
    pub place: Place,
}

identified!(Array, array);

impl<'l> Array<'l> {
    /// The file that it is in. A file has itself.
    pub fn file(self) -> Option<Owned<File<'l>>> {
        // SAFETY: the functions here look up any identifier.
        Owned::returned(self.library.file(unsafe { (self.library.call.id_file)(self.id) }))
    }

    /// Its shape, all of it selected.
    #[inline]
    pub fn space(self) -> Option<Owned<Space<'l>>> {
        // SAFETY: as above.
        Owned::returned(self.library.space(unsafe { (self.library.call.array_space)(self.id) }))
    }

    /// The type of its elements in the file.
    pub fn stored_type(self) -> Option<Owned<Type<'l>>> {
        // SAFETY: as above.
        Owned::returned(self.library.datatype(unsafe { (self.library.call.array_type)(self.id) }))
    }

    /// How it was created.
    pub fn creation(self) -> Option<Owned<Properties<'l>>> {
        // SAFETY: as above.
        Owned::returned(self.library.properties(unsafe { (self.library.call.array_properties)(self.id) }))
    }

    /// How it was opened.
    pub fn access(self) -> Option<Owned<Properties<'l>>> {
        // SAFETY: as above.
        Owned::returned(self.library.properties(unsafe { (self.library.call.array_access)(self.id) }))
    }

    /// Whether the file has room for all its elements.
    pub fn is_allocated(self) -> bool {
        let mut status = 0;
        // SAFETY: as above, and the pointer is valid for writes.
        unsafe { (self.library.call.array_allocation)(self.id, &raw mut status) };
        status == ALL_ALLOCATED
    }

    /// The bytes that it takes in the file. libhdf5 counts them chunk by chunk.
    pub fn stored_nbytes(self) -> u64 {
        // SAFETY: as above.
        unsafe { (self.library.call.array_stored_nbytes)(self.id) }
    }

    /// Where it is; `None` if the library does not say.
    pub fn place(self) -> Option<Place> {
        let mut info = [0_u64; INFO_WORDS];
        let into = info.as_mut_ptr().cast();
        // SAFETY: the buffer is larger than the structure of any version.
        let done = unsafe {
            match self.library.info {
                ObjectInfo::Fields(call) => call(self.id, into, BASIC),
                ObjectInfo::Whole(call) => call(self.id, into),
            }
        };
        // All versions begin with the file's number and the address; since 1.12 the latter is the first half of a token.
        let [file_number, address, ..] = info;
        (done >= 0).then_some(Place { file_number, address })
    }

    /// The name of its file, as the program gave it.
    pub fn file_name(self) -> Option<String> {
        let name = self.library.call.file_name;
        // SAFETY: the function looks up any identifier, and writes no more than there is room for.
        text(|out, size| unsafe { name(self.id, out, size) })
    }

    /// Its path in the file.
    pub fn name(self) -> Option<String> {
        let name = self.library.call.id_name;
        // SAFETY: as above.
        text(|out, size| unsafe { name(self.id, out, size) })
    }
}

/// The text that a function writes into a buffer whose length it is told.
fn text(write: impl Fn(*mut c_char, usize) -> isize) -> Option<String> {
    let length = usize::try_from(write(ptr::null_mut(), 0)).ok().filter(|&length| length > 0)?;
    let mut bytes = vec![0_u8; length.checked_add(1)?];
    write(bytes.as_mut_ptr().cast(), bytes.len());
    Some(CStr::from_bytes_until_nul(&bytes).ok()?.to_string_lossy().into_owned())
}
