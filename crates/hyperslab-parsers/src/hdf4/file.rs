//! What the steps of reading an HDF4 file share.

use std::cell::{Cell, RefCell};

use hyperslab_core::{Array, Segment, Unreadable};

use super::descriptors::Descriptors;
use crate::error::Error;
use crate::pages::Pages;

/// What a step reads: the file's bytes, its descriptors, and the other files found so far.
pub(super) struct File<'f> {
    pub(super) pages: &'f Pages<'f>,
    pub(super) descriptors: &'f Descriptors,
    pub(super) found: &'f Found,
}

/// What steps leave behind.
#[derive(Default)]
pub(super) struct Found {
    pub(super) other_files: RefCell<Vec<String>>,
    /// Bytes of objects read so far. The sum is bounded, because objects may share their bytes.
    pub(super) read_nbytes: Cell<u64>,
}

impl File<'_> {
    /// The number of another file in manifests.
    pub fn number_of(&self, name: String) -> u32 {
        let mut files = self.found.other_files.borrow_mut();
        let position = files.iter().position(|known| *known == name).unwrap_or_else(|| {
            files.push(name);
            files.len() - 1
        });
        u32::try_from(position).unwrap_or(u32::MAX - 1) + 1
    }

    /// Counts bytes of objects that were read or are about to be.
    pub fn spend(&self, nbytes: u64) -> Result<(), Error> {
        let limit = self.pages.file_length().saturating_mul(8).saturating_add(64 << 20);
        let spent = self.found.read_nbytes.get().saturating_add(nbytes);
        self.found.read_nbytes.set(spent.min(limit));
        if spent <= limit { Ok(()) } else { Err(Error::TooMany { what: "bytes of HDF4 objects", limit }) }
    }
}

/// An object that holds an array.
#[derive(Clone, Debug)]
pub(super) enum Source {
    /// The reference number of a Vgroup of class `Var0.0`.
    Variable(u16),
    /// A numeric data group, or an old scientific data group: tag and reference number.
    Group(u16, u16),
}

/// An array and its name, or why there is none.
pub(super) type Named = (String, Result<Array, Unreadable>);

/// An array's chunks. The outer error means that bytes are not held yet, the inner one concerns the array.
pub(super) type Segments = Result<Vec<Segment>, Unreadable>;
