//! Reading or writing.

/// What an access does with a selection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// Its elements are read.
    Read,
    /// All of its elements are written.
    Write,
}
