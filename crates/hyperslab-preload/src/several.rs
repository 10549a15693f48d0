//! Several arrays in one call, `H5Dread_multi` and `H5Dwrite_multi`: each is ours or libhdf5's, as if it were a call of its own.

#![allow(unsafe_code)]

use std::slice::from_raw_parts;

use hyperslab_libhdf5::{Id, Library, Quiet};

use crate::request::Call;

/// More arrays than any program reads at once.
const MOST: usize = 1 << 16;

/// The lists that a program passes.
#[derive(Clone, Copy)]
pub(crate) struct Lists {
    pub count: usize,
    pub arrays: *const Id,
    pub memory_types: *const Id,
    pub memory_spaces: *const Id,
    pub file_spaces: *const Id,
    pub memories: *const *mut u8,
}

/// Lists of our own.
#[derive(Default)]
pub(crate) struct Rest {
    arrays: Vec<Id>,
    memory_types: Vec<Id>,
    memory_spaces: Vec<Id>,
    file_spaces: Vec<Id>,
    memories: Vec<*mut u8>,
}

impl Lists {
    /// The calls that say the same one by one; `None` if the lists make no sense.
    ///
    /// # Safety
    /// Lists must have so many entries, as libhdf5 expects.
    pub unsafe fn calls(self, properties: Id) -> Option<Vec<Call>> {
        let lists = [self.arrays, self.memory_types, self.memory_spaces, self.file_spaces];
        if self.count > MOST || self.memories.is_null() || lists.iter().any(|list| list.is_null()) {
            return None;
        }
        // SAFETY: as the caller promises.
        let ([arrays, types, spaces, selections], memories) = unsafe {
            (lists.map(|list| from_raw_parts(list, self.count)), from_raw_parts(self.memories, self.count))
        };
        let call = |number: usize| Call {
            array: arrays[number],
            memory_type: types[number],
            memory_space: spaces[number],
            file_space: selections[number],
            properties,
            out: memories[number],
        };
        Some((0..self.count).map(call).collect())
    }
}

/// Whether all calls are about different arrays. Otherwise it matters in which order they are done.
pub(crate) fn are_different(library: Option<&Library>, calls: &[Call]) -> bool {
    let places = || {
        let library = library?;
        let _quiet = Quiet::new(library)?;
        let mut places =
            calls.iter().map(|call| library.array(call.array).place()).collect::<Option<Vec<_>>>()?;
        places.sort_unstable_by_key(|place| (place.file_number, place.address));
        Some(places.windows(2).all(|pair| pair[0] != pair[1]))
    };
    places().unwrap_or(false)
}

impl Rest {
    /// The lists of these calls.
    pub fn of(calls: &[Call]) -> Self {
        let mut rest = Self::default();
        for call in calls {
            rest.arrays.push(call.array);
            rest.memory_types.push(call.memory_type);
            rest.memory_spaces.push(call.memory_space);
            rest.file_spaces.push(call.file_space);
            rest.memories.push(call.out);
        }
        rest
    }

    /// As libhdf5 expects them.
    pub fn lists(&self) -> Lists {
        Lists {
            count: self.arrays.len(),
            arrays: self.arrays.as_ptr(),
            memory_types: self.memory_types.as_ptr(),
            memory_spaces: self.memory_spaces.as_ptr(),
            file_spaces: self.file_spaces.as_ptr(),
            memories: self.memories.as_ptr(),
        }
    }
}
