//! Links and attributes in a heap with a B-tree as its index (HDF5 File Format Specification 3.0, III.A.2 and G).

use super::btree2;
use super::file::File;
use super::header::{Message, kind};
use super::links::DenseStorage;
use super::sizes::Sizes;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const LINK_RECORD: &str = "B-tree record of a link";
const ATTRIBUTE_RECORD: &str = "B-tree record of an attribute";
/// Bytes of the hash before a link's identifier.
const HASH_NBYTES: usize = 4;
/// Bytes of an attribute's identifier in its heap.
const ATTRIBUTE_ID_NBYTES: usize = 8;

/// The creation order of attributes that do not track it.
const UNTRACKED: u16 = u16::MAX;

/// What to read from dense storage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dense {
    /// Link messages.
    Links,
    /// Attribute messages.
    Attributes,
}

/// A walk through dense storage. Call `resume` until it succeeds.
#[derive(Debug)]
pub(crate) struct DenseWalk {
    what: Dense,
    heap: u64,
    walk: btree2::Walk,
    records: Vec<Vec<u8>>,
    complete: bool,
}

impl DenseWalk {
    /// A walk through this storage.
    pub fn new(what: Dense, storage: DenseStorage, sizes: Sizes) -> Self {
        let types: &'static [u8] = if what == Dense::Links { &[5] } else { &[8] };
        let walk = btree2::Walk::new(storage.names, sizes, types);
        Self { what, heap: storage.heap, walk, records: Vec::new(), complete: false }
    }

    /// All messages of the storage. Notes everything that is missing before it gives up.
    pub fn messages(&mut self, file: &mut File, pages: &Pages<'_>) -> Result<Vec<Message>, Error> {
        let heap = file.heap(pages, self.heap).map(|_| ());
        if !self.complete {
            let records = &mut self.records;
            self.walk.resume(pages, &mut |record| {
                records.push(record.to_vec());
                Ok(())
            })?;
            self.complete = true;
        }
        heap?;
        let (mut missed, mut messages) = (None, Vec::new());
        for record in &self.records {
            match self.message(file, pages, record) {
                Ok(message) => messages.push(message),
                Err(error) if error.is_not_held() => missed = Some(error),
                Err(error) => return Err(error),
            }
        }
        missed.map_or(Ok(messages), Err)
    }

    fn message(&self, file: &mut File, pages: &Pages<'_>, record: &[u8]) -> Result<Message, Error> {
        match self.what {
            Dense::Links => self.link(file, pages, record),
            Dense::Attributes => self.attribute(file, pages, record),
        }
    }

    fn link(&self, file: &mut File, pages: &Pages<'_>, record: &[u8]) -> Result<Message, Error> {
        let mut cursor = Cursor::new(LINK_RECORD, self.heap, record);
        cursor.skip(HASH_NBYTES)?;
        let id = cursor.take(file.heap(pages, self.heap)?.id_nbytes())?;
        let (offset, body) = file.heap_object(pages, self.heap, id)?;
        Ok(Message { kind: kind::LINK, shared: false, order: None, offset, body })
    }

    /// Identifier, message flags, creation order. The identifier of a shared attribute belongs to the shared heap.
    fn attribute(&self, file: &mut File, pages: &Pages<'_>, record: &[u8]) -> Result<Message, Error> {
        let mut cursor = Cursor::new(ATTRIBUTE_RECORD, self.heap, record);
        let id = cursor.take(ATTRIBUTE_ID_NBYTES)?;
        let shared = cursor.u8()? & 2 != 0;
        let order = u16::try_from(cursor.u32()?).ok().filter(|&order| order != UNTRACKED);
        let (offset, body) = match file.shared_heap(kind::ATTRIBUTE).filter(|_| shared) {
            Some(heap) => file.heap_object(pages, heap, id)?,
            None if shared => {
                return Err(cursor.invalid("a shared attribute in a file without shared attributes"));
            }
            None => file.heap_object(pages, self.heap, id)?,
        };
        Ok(Message { kind: kind::ATTRIBUTE, shared: false, order, offset, body })
    }
}
