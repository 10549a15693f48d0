//! The value of unwritten elements.

/// What unwritten elements are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    /// All bytes zero: the library's default.
    Zero,
    /// One element, as stored.
    Value(Vec<u8>),
    /// The writer defined none, so unwritten elements are undefined. We return zeros.
    Undefined,
}
