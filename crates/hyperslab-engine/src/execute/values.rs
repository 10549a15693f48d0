//! Chunks that hold values of variable length. The selected values go to the heap of the read, and pointers to them go to
//! the output.

use hyperslab_core::Segment;

use super::Job;
use crate::codecs::{Scratch, StoredValues};
use crate::error::Error;
use crate::read_error::ReadError;
use crate::scatter::{Target, index};
use crate::threads::ThreadMemory;
use crate::values::{POINTER_NBYTES, Pointer};

/// If a chunk decodes to more than this, its scratch memory is freed.
const MOST_KEPT_NBYTES: usize = 4 << 20;

impl Job<'_> {
    /// Decodes a chunk, keeps the selected values, and writes pointers to them where the elements belong.
    pub(super) fn put_values(
        &self,
        segment: &Segment,
        stored: StoredValues<'_>,
        bytes: &[u8],
        offset: u64,
        target: &mut Target<'_>,
        memory: &mut ThreadMemory,
    ) -> Result<(), ReadError> {
        let (chunk, count) = (target.read.chunk, index(target.read.chunk_element_count));
        let fault = |problem, target: &Target<'_>| {
            let name = self.file_name(segment, &target.read);
            self.chunk_error(segment, &target.read, &name, offset, problem)
        };
        let Some(heap) = self.execution.values.filter(|_| self.element_nbytes() == POINTER_NBYTES as u64)
        else {
            let feature = "reading elements instead of the values that they point to";
            return Err(fault(Error::Unsupported { codec: stored.framing.name(), feature }, target));
        };
        let values = stored.decode(chunk, bytes, count, &mut memory.scratch);
        let values = values.map_err(|problem| fault(problem, target))?;
        let (part, mut kept) = (heap.reserve(), Vec::new());
        target.rows(|row, out| {
            for (number, element) in (0..row.count).zip(out.chunks_exact_mut(POINTER_NBYTES)) {
                let value = values.get(index(row.chunk_offset + number * row.step));
                let nbytes = u32::try_from(value.len()).unwrap_or(u32::MAX); // the length has 4 bytes
                element.copy_from_slice(&Pointer { part, nbytes, offset: kept.len() as u64 }.bytes());
                kept.extend_from_slice(value);
            }
        });
        let decoded_nbytes = values.nbytes();
        heap.put(part, kept);
        if decoded_nbytes > MOST_KEPT_NBYTES {
            memory.scratch = Scratch::default();
        }
        Ok(())
    }
}
