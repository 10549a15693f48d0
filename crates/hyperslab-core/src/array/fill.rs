//! What unwritten elements are.

/// What elements are where nothing was ever written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// All bytes zero: the library's default.
    Zero,
    /// One element, as stored.
    Value(Vec<u8>),
    /// The writer said that there is none: unwritten elements are undefined; we give zeros.
    Undefined,
}
