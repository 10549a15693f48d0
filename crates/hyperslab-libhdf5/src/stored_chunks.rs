//! Chunks of arrays as they are stored.

#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::array::Array;
use crate::library::Library;
use crate::owned::Owned;
use crate::problem::{Problem, refused};
use crate::properties::Layout;
use crate::space::Boxes;
use crate::space::is_inside;
use crate::table::Writing;
use crate::{Id, MOST_NDIM};

/// An array whose chunks are written as they are stored.
pub struct StoredChunks<'l> {
    array: Owned<Array<'l>>,
    writing: &'l Writing,
    /// The shape of the array.
    whole: Vec<u64>,
    /// The shape of a chunk.
    pub shape: Vec<u64>,
    /// Bytes of a decoded chunk; never 0.
    pub nbytes: usize,
    /// The numbers of the array's filters, in order.
    pub filters: Vec<c_int>,
}

impl Library {
    /// An array whose chunks are written as they are stored.
    pub fn stored_chunks(&self, id: Id) -> Result<StoredChunks<'_>, Problem> {
        let array = self.held_array(id)?;
        let writing = self.writing()?;
        let creation = array.creation().ok_or_else(|| refused("to tell the properties of an array"))?;
        if creation.layout() != Some(Layout::Chunked) {
            return Err(Problem::Misfit(format!("the array {id} has no chunks")));
        }
        let mut room = [0_u64; MOST_NDIM];
        let shape = creation.chunk_shape(&mut room).map(|shape| shape.to_vec());
        let shape = shape.ok_or_else(|| refused("to tell the chunks of an array"))?;
        let stored = array.stored_type().ok_or_else(|| refused("to tell the type of an array"))?;
        let width = stored.nbytes() as u64;
        let nbytes = shape.iter().try_fold(width, |all, length| all.checked_mul(*length));
        let nbytes = nbytes.and_then(|nbytes| usize::try_from(nbytes).ok()).filter(|nbytes| *nbytes > 0);
        let nbytes = nbytes.ok_or_else(|| refused("to tell the bytes of a chunk"))?;
        let space = array.space().ok_or_else(|| refused("to tell the shape of an array"))?;
        let whole = Boxes::of(space)?.shape().to_vec();
        let filters = creation.filters().ok_or_else(|| refused("to tell the filters of an array"))?;
        Ok(StoredChunks { array, writing, whole, shape, nbytes, filters })
    }
}

impl<'l> StoredChunks<'l> {
    /// The array.
    pub fn array(&self) -> &Array<'l> {
        &self.array
    }

    /// Whether the chunk that begins there is stored, or waits in libhdf5's cache until it is.
    pub fn has(&self, start: &[u64]) -> bool {
        let mut nbytes = 0;
        if start.len() != self.whole.len() {
            return false;
        }
        // SAFETY: the identifier is that of an array with as many axes as the start has entries, and the pointer is valid
        // for writes.
        let done = unsafe { (self.writing.chunk_nbytes)(self.array.id, start.as_ptr(), &raw mut nbytes) };
        done >= 0 && nbytes > 0
    }

    /// Writes a chunk, given where it begins in the array and which filters were skipped: a bit for each.
    pub fn write(&self, start: &[u64], bytes: &[u8], mask: u32) -> Result<(), Problem> {
        let one = [1_u64; MOST_NDIM]; // the first element must lie inside: libhdf5 would allow one chunk more
        if !is_inside(start, &one[..start.len().min(MOST_NDIM)], &self.whole) {
            return Err(Problem::Misfit(format!("an array of {:?} has no chunk at {start:?}", self.whole)));
        }
        let is_plain = (0..self.filters.len()).all(|place| mask & (1 << place.min(31)) != 0);
        if is_plain && bytes.len() != self.nbytes {
            let (nbytes, given) = (self.nbytes, bytes.len());
            return Err(Problem::Misfit(format!("a chunk without filters has {nbytes} bytes, not {given}")));
        }
        let write = self.writing.write_chunk;
        // SAFETY: the identifier is that of an array with as many axes as the start has entries, and the bytes outlive the
        // call. libhdf5 checks that a chunk begins there.
        let done =
            unsafe { write(self.array.id, 0, mask, start.as_ptr(), bytes.len(), bytes.as_ptr().cast()) };
        if done < 0 { Err(Problem::Refused(format!("the chunk at {start:?}"))) } else { Ok(()) }
    }
}
