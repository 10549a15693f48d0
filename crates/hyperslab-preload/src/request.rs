//! What one call of `H5Dread` asks for, as far as it takes to decide whether it is ours.

#![allow(unsafe_code)]

use crate::dataspace::{Dataspace, Selected};
use crate::libhdf5::{ARRAY_ID, DATATYPE_ID, Held, Id, Library, SPACE_ID};
use crate::reason::Reason;

/// The arguments of `H5Dread`.
pub(crate) struct Call {
    pub array: Id,
    pub memory_type: Id,
    pub memory_space: Id,
    pub file_space: Id,
    pub properties: Id,
    pub out: *mut u8,
}

/// `H5S_ALL`.
pub(crate) const ALL: Id = 0;

/// A call that makes sense: which elements it wants, and where they go.
pub(crate) struct Request {
    /// The selection of the array.
    pub file: Dataspace,
    /// The selection of memory; `None` if elements go one after the other.
    pub memory: Option<Dataspace>,
    /// How many elements.
    pub count: u64,
}

/// Whether an identifier is one of a dataspace, or stands for everything.
pub(crate) fn is_space(library: &Library, space: Id) -> bool {
    // SAFETY: the function takes any number, and reports no error for a wrong one.
    space == ALL || unsafe { (library.call.id_type)(space) } == SPACE_ID
}

/// Whether all identifiers of a call are of the right kind. Asking prints no error.
pub(crate) fn makes_sense(library: &Library, call: &Call) -> bool {
    // SAFETY: as above.
    let kind = |id| unsafe { (library.call.id_type)(id) };
    !call.out.is_null() && kind(call.array) == ARRAY_ID && kind(call.memory_type) == DATATYPE_ID
}

impl Request {
    /// What the call selects.
    pub fn of(library: &Library, call: &Call) -> Result<Self, Reason> {
        let own = match call.file_space {
            // SAFETY: the function takes any identifier.
            ALL => Held::new(library, unsafe { (library.call.array_space)(call.array) }),
            _ => None,
        };
        let space = own.as_ref().map_or(call.file_space, |own| own.id);
        if space == ALL {
            return Err(Reason::Invalid);
        }
        let file = Dataspace::of(library, space, Reason::Selection)?;
        let count = file.len().ok_or(Reason::Selection)?;
        let memory = match (call.memory_space, call.file_space) {
            (ALL, ALL) => None,
            // Memory is then laid out as the array, and selected alike.
            (ALL, _) => Some(Dataspace::of(library, space, Reason::Memory)?),
            (given, _) => Some(Dataspace::of(library, given, Reason::Memory)?),
        };
        if memory.as_ref().is_some_and(|memory| memory.len() != Some(count)) {
            return Err(Reason::Invalid);
        }
        let is_contiguous = |memory: &Dataspace| matches!(memory.selected, Selected::All);
        Ok(Self { file, memory: memory.filter(|memory| !is_contiguous(memory)), count })
    }
}
