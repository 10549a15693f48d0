//! What one call of `H5Dread` asks for, as far as it takes to decide whether it is ours.

use hyperslab_libhdf5::{Dataspace, Id, Kind, Library, Selected};

use crate::reason::Reason;

/// The arguments of `H5Dread`.
#[derive(Clone, Copy)]
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
    space == ALL || library.is(Kind::Space, space)
}

/// Whether all identifiers of a call are of the right kind. Asking prints no error.
pub(crate) fn makes_sense(library: &Library, call: &Call) -> bool {
    !call.out.is_null() && library.is(Kind::Array, call.array) && library.is(Kind::Type, call.memory_type)
}

impl Request {
    /// What the call selects.
    pub fn of(library: &Library, call: &Call) -> Result<Self, Reason> {
        let own;
        let space = if call.file_space == ALL {
            own = library.array(call.array).space().ok_or(Reason::Invalid)?;
            *own
        } else {
            library.space(call.file_space)
        };
        let file = Dataspace::of(space).ok_or(Reason::Selection)?;
        let count = file.count().ok_or(Reason::Selection)?;
        let memory = match (call.memory_space, call.file_space) {
            (ALL, ALL) => None,
            // Memory is then laid out as the array, and selected alike.
            (ALL, _) => Some(Dataspace::of(space).ok_or(Reason::Memory)?),
            (given, _) => Some(Dataspace::of(library.space(given)).ok_or(Reason::Memory)?),
        };
        if memory.as_ref().is_some_and(|memory| memory.count() != Some(count)) {
            return Err(Reason::Invalid);
        }
        let is_contiguous = |memory: &Dataspace| matches!(memory.selected, Selected::All);
        Ok(Self { file, memory: memory.filter(|memory| !is_contiguous(memory)), count })
    }
}
