//! Property lists.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int};
use std::ptr;

use crate::library::Library;
use crate::owned::Owned;
use crate::owned::{Identified, identified};
use crate::{Id, MOST_NDIM};

/// `H5D_FILL_TIME_NEVER`, `H5D_FILL_VALUE_UNDEFINED`.
const FILL_NEVER: c_int = 1;
const FILL_UNDEFINED: c_int = 0;
/// `H5D_CHUNK_DONT_FILTER_PARTIAL_CHUNKS`.
const PLAIN_EDGES: u32 = 2;
/// A chunk may be stored without the filter.
const OPTIONAL: u32 = 1;
/// More parameters than any filter has that we know.
const MOST_VALUES: usize = 64;
/// `H5FD_MPIO_COLLECTIVE`.
const COLLECTIVE: c_int = 1;

/// `MOST_NDIM`, as libhdf5 counts.
const MOST_AXES: c_int = 32;

/// Transfer properties in which libhdf5 reports what it did in the last read. They ask for nothing.
const REPORTS: [&CStr; 6] = [
    c"actual_selection_io_mode",
    c"no_selection_io_cause",
    c"actual_io_mode",
    c"actual_chunk_opt_mode",
    c"local_no_collective_cause",
    c"global_no_collective_cause",
];

/// A property list, by its identifier.
#[derive(Clone, Copy)]
pub struct Properties<'l> {
    pub(crate) library: &'l Library,
    pub(crate) id: Id,
}

/// How an array is stored: `H5D_layout_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Layout {
    /// In its header.
    Compact,
    /// In one piece.
    Contiguous,
    /// In chunks.
    Chunked,
    /// In other arrays.
    Virtual,
}

/// A filter of an array, as its properties say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterSettings {
    /// The filter's number.
    pub number: u32,
    /// Its parameters.
    pub values: Vec<u32>,
    /// Whether a chunk may be stored without it, if it fails.
    pub is_optional: bool,
}

/// libhdf5's cache of the chunks of an array.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CacheSettings {
    /// How many chunks it has room for.
    pub slots: usize,
    /// How many bytes.
    pub nbytes: usize,
    /// How it prefers to drop chunks that were read in full.
    pub w0: f64,
}

identified!(Properties, properties);

impl Properties<'_> {
    /// How an array is stored that is created so.
    pub fn layout(self) -> Option<Layout> {
        // SAFETY: the functions here look up any identifier.
        match unsafe { (self.library.call.properties_layout)(self.id) } {
            0 => Some(Layout::Compact),
            1 => Some(Layout::Contiguous),
            2 => Some(Layout::Chunked),
            3 => Some(Layout::Virtual),
            _ => None,
        }
    }

    /// Whether its elements are in files that are not HDF5's.
    pub fn is_external(self) -> bool {
        // SAFETY: as above.
        unsafe { (self.library.call.properties_external)(self.id) > 0 }
    }

    /// The shape of a chunk.
    pub fn chunk_shape(self, room: &mut [u64; MOST_NDIM]) -> Option<&mut [u64]> {
        // SAFETY: as above; there is room for as many axes as are said.
        let ndim = unsafe { (self.library.call.properties_chunk)(self.id, MOST_AXES, room.as_mut_ptr()) };
        room.get_mut(..usize::try_from(ndim).ok()?)
    }

    /// The numbers of its filters, in order; `None` if it has none to tell of.
    pub fn filters(self) -> Option<Vec<c_int>> {
        // SAFETY: as above.
        let count = unsafe { (self.library.call.properties_filters)(self.id) };
        let number = |place| {
            let (mut flags, mut value_count, mut config) = (0, 0, 0);
            let (flags, values, config) = (&raw mut flags, &raw mut value_count, &raw mut config);
            let filter = self.library.call.properties_filter;
            // SAFETY: as above; no room is offered for parameters and names, and the other pointers are valid.
            unsafe { filter(self.id, place, flags, values, ptr::null_mut(), 0, ptr::null_mut(), config) }
        };
        Some((0..u32::try_from(count).ok()?).map(number).collect())
    }

    /// Its filters with all that was said of them, in order; `None` if libhdf5 does not say.
    pub fn filter_settings(self) -> Option<Vec<FilterSettings>> {
        // SAFETY: as above.
        let count = unsafe { (self.library.call.properties_filters)(self.id) };
        let settings = |place| {
            let (mut flags, mut count, mut config) = (0, MOST_VALUES, 0);
            let mut values = vec![0; MOST_VALUES];
            let (flags_out, count_out, room) = (&raw mut flags, &raw mut count, values.as_mut_ptr());
            let filter = self.library.call.properties_filter;
            // SAFETY: as above; there is room for as many parameters as are said, none for a name, and the other pointers
            // are valid for writes.
            let number = unsafe {
                filter(self.id, place, flags_out, count_out, room, 0, ptr::null_mut(), &raw mut config)
            };
            values.truncate(Some(count).filter(|&count| count <= MOST_VALUES)?);
            Some(FilterSettings {
                number: u32::try_from(number).ok()?,
                values,
                is_optional: flags & OPTIONAL != 0,
            })
        };
        (0..u32::try_from(count).ok()?).map(settings).collect()
    }

    /// Whether chunks that reach beyond the array are stored without filters; `None` if libhdf5 does not say.
    pub fn leaves_edges_plain(self) -> Option<bool> {
        let mut options = 0;
        // SAFETY: as above, and the pointer is valid for writes.
        let done = unsafe { (self.library.writing.as_ref()?.chunk_options)(self.id, &raw mut options) };
        (done >= 0).then_some(options & PLAIN_EDGES != 0)
    }

    /// The fill value as an element of a type with so many bytes; `None` if it has none.
    pub fn fill_value(self, kind: Id, nbytes: usize) -> Option<Vec<u8>> {
        let mut value = vec![0_u8; nbytes];
        // SAFETY: as above, and the caller says that elements of the type have so many bytes.
        let done =
            unsafe { (self.library.writing.as_ref()?.fill_value)(self.id, kind, value.as_mut_ptr().cast()) };
        (done >= 0).then_some(value)
    }

    /// Whether it has filters.
    pub fn is_filtered(self) -> bool {
        // SAFETY: as above.
        unsafe { (self.library.call.properties_filters)(self.id) > 0 }
    }

    /// The first filter that the library neither has nor finds where it looks for plugins.
    pub fn lacked_filter(self) -> Option<u32> {
        let numbers = self.filters()?.into_iter();
        // SAFETY: the function takes any number.
        let mut lacked = numbers.filter(|&number| unsafe { (self.library.call.filter_is_here)(number) } <= 0);
        lacked.next().and_then(|number| u32::try_from(number).ok())
    }

    /// Whether elements that are not stored are filled in.
    pub fn fills(self) -> bool {
        let (mut time, mut value) = (FILL_NEVER, FILL_UNDEFINED);
        // SAFETY: as above, and the pointers are valid for writes.
        unsafe {
            (self.library.call.properties_fill_time)(self.id, &raw mut time);
            (self.library.call.properties_fill_value)(self.id, &raw mut value);
        }
        time != FILL_NEVER && value != FILL_UNDEFINED
    }

    /// The cache of chunks of an array that is opened so.
    pub fn chunk_cache(self) -> Option<CacheSettings> {
        let mut cache = CacheSettings { slots: 0, nbytes: 0, w0: 0.0 };
        let (slots, nbytes, w0) = (&raw mut cache.slots, &raw mut cache.nbytes, &raw mut cache.w0);
        // SAFETY: as above, and the pointers are valid for writes.
        let done = unsafe { (self.library.call.properties_cache)(self.id, slots, nbytes, w0) };
        (done >= 0).then_some(cache)
    }

    /// Whether transfer properties are the defaults.
    pub fn is_default_transfer(self) -> bool {
        let defaults = self.library.transfer_defaults();
        if self.id == 0 || self.equals(defaults) {
            return true;
        }
        // SAFETY: as above.
        let copy = unsafe { (self.library.call.properties_copy)(self.id) };
        let Some(copy) = Owned::returned(self.library.properties(copy)) else { return false };
        for name in REPORTS {
            // SAFETY: as above; the name ends with a zero.
            unsafe { (self.library.call.properties_copy_one)(copy.id, defaults, name.as_ptr()) };
        }
        copy.equals(defaults)
    }

    fn equals(self, other: Id) -> bool {
        // SAFETY: as above.
        unsafe { (self.library.call.properties_equal)(self.id, other) > 0 }
    }

    /// Whether transfer properties make all processes of a parallel program take part.
    #[inline]
    pub fn is_collective(self) -> bool {
        let Some(ask) = self.library.transfer_mode else { return false };
        let mut mode: c_int = 0;
        // SAFETY: as above, and the pointer is valid for writes.
        let done = unsafe { ask(self.id, &raw mut mode) };
        done >= 0 && mode == COLLECTIVE
    }
}
