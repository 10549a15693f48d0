//! Bytes of equal significance, one after another: what shuffled elements are taken from.

/// The planes of a chunk, and the element to begin with.
#[derive(Clone, Copy)]
pub(super) struct Planes<'p> {
    pub(super) bytes: &'p [u8],
    pub(super) count: usize,
    pub(super) element_nbytes: usize,
    pub(super) first_element: usize,
}

impl<'p> Planes<'p> {
    /// From the first element wanted to the chunk's last, one byte of each.
    pub(super) fn plane(&self, index: usize) -> &'p [u8] {
        &self.bytes[index * self.count + self.first_element..(index + 1) * self.count]
    }

    /// The same planes from a later element on.
    pub(super) fn skip(self, elements: usize) -> Self {
        Self { first_element: self.first_element + elements, ..self }
    }
}
