//! `ValueHeap`: the values of variable length that a read has decoded; the elements in the output point to them.

use std::sync::Mutex;

use hyperslab_core::VALUE_POINTER_NBYTES;

/// The values that the elements of one read point to. The threads that decode chunks share it.
#[derive(Default)]
pub struct ValueHeap {
    parts: Mutex<Vec<Vec<u8>>>,
}

/// Where a value is: the number of a part, counted from 1, and the offset in it. All zeros mean the fill value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pointer {
    pub(crate) part: u32,
    pub(crate) nbytes: u32,
    pub(crate) offset: u64,
}

/// The width of a pointer, as a length in memory.
pub(crate) const POINTER_NBYTES: usize = 16;
const _: () = assert!(POINTER_NBYTES as u64 == VALUE_POINTER_NBYTES);

impl Pointer {
    pub(crate) fn bytes(self) -> [u8; POINTER_NBYTES] {
        let mut bytes = [0; POINTER_NBYTES];
        bytes[..4].copy_from_slice(&self.part.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.nbytes.to_le_bytes());
        bytes[8..].copy_from_slice(&self.offset.to_le_bytes());
        bytes
    }

    fn of(bytes: &[u8]) -> Option<Self> {
        let (part, rest) = bytes.split_first_chunk()?;
        let (nbytes, rest) = rest.split_first_chunk()?;
        let (part, nbytes) = (u32::from_le_bytes(*part), u32::from_le_bytes(*nbytes));
        Some(Self { part, nbytes, offset: u64::from_le_bytes(*rest.first_chunk()?) })
    }
}

impl ValueHeap {
    /// Adds an empty part and returns its number.
    pub(crate) fn reserve(&self) -> u32 {
        let mut parts = self.parts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        parts.push(Vec::new());
        u32::try_from(parts.len()).unwrap_or(u32::MAX)
    }

    /// Sets the bytes of a part.
    pub(crate) fn put(&self, part: u32, values: Vec<u8>) {
        let mut parts = self.parts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(held) = (part as usize).checked_sub(1).and_then(|index| parts.get_mut(index)) {
            *held = values;
        }
    }

    /// The value of each element, in order; `fill` for elements that were never written.
    pub fn resolve(&self, elements: &[u8], fill: &[u8]) -> Vec<Vec<u8>> {
        let parts = self.parts.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let value = |element: &[u8]| {
            let pointer = Pointer::of(element).filter(|pointer| pointer.part > 0);
            let Some(pointer) = pointer else { return fill.to_vec() };
            let index = pointer.part as usize - 1;
            let (start, nbytes) =
                (usize::try_from(pointer.offset).unwrap_or(usize::MAX), pointer.nbytes as usize);
            let value = parts.get(index).and_then(|part| part.get(start..start.checked_add(nbytes)?));
            value.unwrap_or_default().to_vec()
        };
        elements.chunks_exact(POINTER_NBYTES).map(value).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_lead_to_values() {
        let heap = ValueHeap::default();
        let (first, second) = (heap.reserve(), heap.reserve());
        heap.put(second, b"abc".to_vec());
        heap.put(first, b"de".to_vec());
        let pointer = |part, offset, nbytes| Pointer { part, nbytes, offset }.bytes();
        let elements =
            [pointer(second, 1, 2), [0; POINTER_NBYTES], pointer(first, 0, 2), pointer(first, 2, 0)];
        assert_eq!(heap.resolve(elements.as_flattened(), b"fill"), [&b"bc"[..], b"fill", b"de", b""]);
    }
}
