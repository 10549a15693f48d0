//! Bytes of equal significance, one after another: the input of unshuffling.

/// The planes of a chunk, and the element to start with.
#[derive(Clone, Copy)]
pub(super) struct Planes<'p> {
    pub(super) bytes: &'p [u8],
    pub(super) count: usize,
    pub(super) element_nbytes: usize,
    pub(super) first_element: usize,
}

impl<'p> Planes<'p> {
    /// One byte of each element, from the first element wanted to the last of the chunk.
    pub(super) fn plane(&self, index: usize) -> &'p [u8] {
        &self.bytes[index * self.count + self.first_element..(index + 1) * self.count]
    }

    /// The same planes, starting at a later element.
    pub(super) fn skip(self, elements: usize) -> Self {
        Self { first_element: self.first_element + elements, ..self }
    }
}
