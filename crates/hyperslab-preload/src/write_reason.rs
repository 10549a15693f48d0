//! Why a write is left to libhdf5.

use crate::reason::Reason;

/// Why a write is left to libhdf5. The numbers are part of the record; `hyperslab.running` has the words for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Left {
    /// It is so small that libhdf5 is as fast.
    Small = 0,
    /// The array has no chunks or no filters: there is nothing to encode.
    Plain = 1,
    /// It does not cover its chunks whole.
    Parts = 2,
    /// It writes again what libhdf5 would still have in its cache of chunks.
    Again = 3,
    /// A filter that we do not encode as libhdf5 does, or that libhdf5 does not have.
    Filter = 4,
    /// The file is written by another driver than the plain one.
    Driver = 5,
    /// Someone may read the file while it is written (SWMR).
    Swmr = 6,
    /// The call has transfer properties.
    Properties = 7,
    /// The program has elements of another type than the file.
    Conversion = 8,
    /// Elements of variable length, or references.
    Pointers = 9,
    /// The elements lie in memory with gaps.
    Memory = 10,
    /// The call makes no sense: libhdf5 says why.
    Invalid = 11,
    /// The libhdf5 is too old, or another library wraps it.
    Library = 12,
    /// We failed.
    Failed = 13,
    /// An earlier write that waited could not be stored.
    Stuck = 14,
}

impl Left {
    /// How many there are.
    pub const COUNT: usize = 15;
}

impl From<Reason> for Left {
    /// What `Request` says of a call that it cannot describe.
    fn from(reason: Reason) -> Self {
        match reason {
            Reason::Memory => Self::Memory,
            Reason::Selection => Self::Parts,
            _ => Self::Invalid,
        }
    }
}
