//! What the steps of a walk share about a file: its widths, its shared messages, and what was read already.

use std::borrow::Cow;
use std::collections::HashMap;

use super::budget::Budget;
use super::driver;
use super::fractal_heap::FractalHeap;
use super::global_heap::Collections;
use super::header::{self, Message, kind};
use super::lookup3;
use super::sizes::Sizes;
use super::superblock::Superblock;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const SHARED: &str = "shared message";
const TABLE: &str = "shared message table";
/// How often a shared message may lead to another shared message.
const MAX_INDIRECTIONS: usize = 4;
/// The location code for the heap of shared messages.
const IN_HEAP: u8 = 1;

/// State that lives as long as the walk. All of it follows from the file, so a repeated step finds it again.
#[derive(Debug)]
pub(crate) struct File {
    /// Widths and the base address.
    pub sizes: Sizes,
    /// Global heap collections.
    pub collections: Collections,
    /// How much metadata may still be read.
    pub budget: Budget,
    /// For each kind of message that is shared through a heap: the mask of types, and the heap.
    shared: Vec<(u16, u64)>,
    heaps: HashMap<u64, FractalHeap>,
    committed: HashMap<(u64, u16), Message>,
}

impl File {
    /// From the superblock and its extension.
    pub fn read(pages: &Pages<'_>, superblock: &Superblock) -> Result<Self, Error> {
        let sizes = superblock.sizes;
        let extension = superblock.extension.map(|address| header::messages(pages, sizes, address));
        let extension = extension.transpose()?.unwrap_or_default();
        driver::check(pages, superblock, &extension)?;
        let mut shared = Vec::new();
        for message in extension.iter().filter(|message| message.kind == kind::SHARED_TABLE) {
            shared = shared_table(pages, sizes, message)?;
        }
        let budget = Budget::new(pages.file_length());
        let (heaps, committed) = (HashMap::new(), HashMap::new());
        Ok(Self { sizes, collections: Collections::default(), budget, shared, heaps, committed })
    }

    /// A message as its object means it: the message itself, or the one it leads to.
    pub fn resolved<'m>(
        &mut self,
        pages: &Pages<'_>,
        message: &'m Message,
    ) -> Result<Cow<'m, Message>, Error> {
        if !message.shared {
            return Ok(Cow::Borrowed(message));
        }
        let mut found = self.leads_to(pages, message)?;
        for _ in 0..MAX_INDIRECTIONS {
            if !found.shared {
                return Ok(Cow::Owned(found));
            }
            found = self.leads_to(pages, &found)?;
        }
        Err(Error::Cycle { what: SHARED, offset: message.offset })
    }

    /// IV.A.2, "shared message": versions 1 to 3.
    fn leads_to(&mut self, pages: &Pages<'_>, message: &Message) -> Result<Message, Error> {
        let mut cursor = message.cursor(SHARED);
        let version = cursor.u8()?;
        let position = cursor.u8()?;
        match version {
            1 => cursor.skip(6 + self.sizes.length)?, // reserved; a name that we do not need
            2 | 3 => {}
            _ => return Err(Error::unsupported(format!("shared message version {version}"))),
        }
        if version == 3 && position == IN_HEAP {
            return self.in_heap(pages, message.kind, &mut cursor);
        }
        let address = self.sizes.defined_address(&mut cursor)?;
        self.in_header(pages, message.kind, address)
    }

    /// The object whose header holds a shared message; `None` if it is in the heap of shared messages.
    pub fn shared_address(&self, message: &Message) -> Result<Option<u64>, Error> {
        let mut cursor = message.cursor(SHARED);
        let (version, place) = (cursor.u8()?, cursor.u8()?);
        if version == 3 && place == IN_HEAP {
            return Ok(None);
        }
        cursor.skip(if version == 1 { 6 + self.sizes.length } else { 0 })?;
        self.sizes.defined_address(&mut cursor).map(Some)
    }

    /// A message in the header of another object, usually a committed datatype.
    fn in_header(&mut self, pages: &Pages<'_>, kind: u16, address: u64) -> Result<Message, Error> {
        if let Some(known) = self.committed.get(&(address, kind)) {
            return Ok(known.clone());
        }
        let messages = header::messages(pages, self.sizes, address)?;
        let found = messages.into_iter().find(|message| message.kind == kind);
        let missing = || Error::invalid(SHARED, address, format!("no message of type {kind:#x} is there"));
        let found = found.ok_or_else(missing)?;
        self.budget.spend(found.body.len())?;
        self.committed.insert((address, kind), found.clone());
        Ok(found)
    }

    fn in_heap(&mut self, pages: &Pages<'_>, kind: u16, cursor: &mut Cursor<'_>) -> Result<Message, Error> {
        let id = cursor.take(8)?;
        let heap = self.shared_heap(kind);
        let heap =
            heap.ok_or_else(|| cursor.invalid(format!("messages of type {kind:#x} are not shared")))?;
        let (offset, body) = self.heap_object(pages, heap, id)?;
        Ok(Message { kind, shared: false, order: None, offset, body })
    }

    /// The heap for shared messages of a type.
    pub fn shared_heap(&self, kind: u16) -> Option<u64> {
        let bit = 1_u16.checked_shl(u32::from(kind)).unwrap_or(0);
        self.shared.iter().find(|(mask, _)| mask & bit != 0).map(|(_, heap)| *heap)
    }

    /// The fractal heap at an address.
    pub fn heap(&mut self, pages: &Pages<'_>, address: u64) -> Result<&mut FractalHeap, Error> {
        if !self.heaps.contains_key(&address) {
            let heap = FractalHeap::read(pages, self.sizes, address)?;
            self.heaps.insert(address, heap);
        }
        self.heaps.get_mut(&address).ok_or_else(|| Error::invalid(SHARED, address, "no heap"))
    }

    /// An object of the fractal heap at an address: its offset in the file, and its bytes.
    pub fn heap_object(
        &mut self,
        pages: &Pages<'_>,
        address: u64,
        id: &[u8],
    ) -> Result<(u64, Vec<u8>), Error> {
        self.heap(pages, address)?;
        let heap = self.heaps.get_mut(&address);
        let heap = heap.ok_or_else(|| Error::invalid(SHARED, address, "no heap"))?;
        heap.object(pages, &mut self.budget, id)
    }
}

/// The shared message table: for each index, its types and its heap (III.I, IV.A.2.p).
fn shared_table(pages: &Pages<'_>, sizes: Sizes, message: &Message) -> Result<Vec<(u16, u64)>, Error> {
    let mut cursor = message.cursor(TABLE);
    cursor.skip(1)?;
    let address = sizes.defined_address(&mut cursor)?;
    let count = usize::from(cursor.u8()?);
    let length = 4 + count * (14 + 2 * sizes.offset) + lookup3::CHECKSUM_NBYTES;
    let bytes = pages.bytes(TABLE, address, length as u64)?;
    let mut cursor = Cursor::new(TABLE, address, lookup3::checked(TABLE, address, &bytes)?);
    cursor.signature(b"SMTB")?;
    let mut indexes = Vec::new();
    for _ in 0..count {
        cursor.skip(2)?; // version, kind of index
        let mask = cursor.u16()?;
        cursor.skip(10)?; // least size, when a list becomes a tree and back, messages
        cursor.skip(sizes.offset)?; // the index itself
        if let Some(heap) = sizes.address(&mut cursor)? {
            indexes.push((mask, heap));
        }
    }
    Ok(indexes)
}
