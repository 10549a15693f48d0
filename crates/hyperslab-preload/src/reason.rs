//! Why a read is left to libhdf5.

/// Why a read is left to libhdf5. The numbers are part of the record; `hyperslab.running` has the words for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Reason {
    /// It is so small that libhdf5 is as fast.
    Small = 0,
    /// The file is open for writing somewhere in this process.
    Writable = 1,
    /// The file is read by another driver than the plain one, or is no regular file.
    Driver = 2,
    /// Someone may write to the file while it is read (SWMR).
    Swmr = 3,
    /// The file has changed since it was opened.
    Changed = 4,
    /// The call has transfer properties.
    Properties = 5,
    /// The program wants elements of another type, and we do not convert these.
    Conversion = 6,
    /// Elements of variable length, or references.
    Pointers = 7,
    /// A selection of the array that we do not read.
    Selection = 8,
    /// A selection of memory that we do not fill.
    Memory = 9,
    /// The array is virtual, external, compact, or has a filter that we do not have.
    Layout = 10,
    /// Our reader failed.
    Failed = 11,
    /// libhdf5 is too old, or lacks functions, or another library wraps it.
    Library = 12,
    /// The call makes no sense: libhdf5 says why.
    Invalid = 13,
    /// Another thread has what we need.
    Busy = 14,
    /// The thread has little memory for its stack.
    Stack = 15,
}

impl Reason {
    /// How many there are.
    pub const COUNT: usize = 16;
}
