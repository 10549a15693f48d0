//! Follows the pointers in elements: to text and sequences of variable length, and to the data of references (HDF5 File
//! Format Specification 3.0, IV.A.2.d and III.E).

use std::borrow::Cow;

use hyperslab_core::Element;

use super::cache_image;
use super::global_heap::Collections;
use super::sizes::Sizes;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;
use crate::rounds::settle;

const WHAT: &str = "variable-length value";
/// The most pointers in one element.
const MAX_POINTERS: usize = 1 << 20;
/// Bytes of values that are always allowed, however small the file is.
const MIN_LIMIT: u64 = 64 << 20;

/// The values that the pointers in decoded elements lead to: one entry for each pointer, in order, empty for null.
///
/// Pointers inside a sequence follow right after it. The bytes of a sequence are its elements as stored; those of a
/// region reference are the array's address and the region.
pub fn resolve(pages: &mut Pages<'_>, element: &Element, bytes: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
    let sizes = cache_image::start(pages)?.sizes;
    let mut collections = Collections::default();
    settle(pages, |pages| values(&mut collections, pages, sizes, element, bytes))
}

/// The same, in one step of a walk. Notes everything that is missing before it gives up.
pub(crate) fn values(
    collections: &mut Collections,
    pages: &Pages<'_>,
    sizes: Sizes,
    element: &Element,
    bytes: &[u8],
) -> Result<Vec<Vec<u8>>, Error> {
    let limit = pages.file_length().saturating_mul(4).max(MIN_LIMIT);
    let mut following =
        Following { collections, pages, sizes, limit, nbytes: 0, missed: None, found: Vec::new() };
    following.all(element, bytes)?;
    following.missed.map_or(Ok(following.found), Err)
}

/// What has been found so far.
struct Following<'f, 'p> {
    collections: &'f mut Collections,
    pages: &'f Pages<'p>,
    sizes: Sizes,
    /// The most bytes of values. Pointers may share them.
    limit: u64,
    nbytes: u64,
    missed: Option<Error>,
    found: Vec<Vec<u8>>,
}

impl Following<'_, '_> {
    fn all(&mut self, element: &Element, bytes: &[u8]) -> Result<(), Error> {
        let mut pointers = Vec::new();
        collect(element, 0, &mut pointers)?;
        let width = usize::try_from(element.nbytes()).unwrap_or(usize::MAX);
        if pointers.is_empty() || width == 0 {
            return Ok(());
        }
        for one in bytes.chunks_exact(width) {
            for field in &pointers {
                self.follow(field, one.get(field.start..).unwrap_or_default())?;
            }
        }
        Ok(())
    }

    fn follow(&mut self, field: &PointerField<'_>, pointer: &[u8]) -> Result<(), Error> {
        let value = match field.read(pointer, self.sizes)? {
            None => Ok(Vec::new()),
            Some(Pointer { address, index, nbytes }) => {
                let object = self.collections.object(self.pages, self.sizes, address, index);
                object.and_then(|bytes| checked(bytes, address, index, nbytes))
            }
        };
        let value = match value {
            Err(error) if error.is_not_held() => {
                self.missed = Some(error);
                return Ok(());
            }
            value => value?,
        };
        self.nbytes = self.nbytes.saturating_add(value.len() as u64);
        if self.nbytes > self.limit {
            return Err(Error::TooMany { what: "bytes of variable-length values", limit: self.limit });
        }
        match field.sequence.filter(|inner| inner.has_pointers()) {
            None => self.found.push(value),
            Some(inner) => {
                self.found.push(value.clone());
                self.all(inner, &value)?;
            }
        }
        Ok(())
    }
}

/// The bytes of an object. They must have the size of the elements that its pointer claims.
fn checked(bytes: Cow<'_, [u8]>, address: u64, index: u32, nbytes: Option<u64>) -> Result<Vec<u8>, Error> {
    match nbytes.filter(|&nbytes| nbytes != bytes.len() as u64) {
        None => Ok(bytes.into_owned()),
        Some(nbytes) => {
            let problem =
                format!("object {index} has {} bytes, an element that it holds has {nbytes}", bytes.len());
            Err(Error::invalid(WHAT, address, problem))
        }
    }
}

/// The target of a pointer.
struct Pointer {
    /// The address of the collection.
    address: u64,
    /// The number of the object in it.
    index: u32,
    /// The size that the pointer claims.
    nbytes: Option<u64>,
}

/// The position of a pointer in an element.
struct PointerField<'e> {
    start: usize,
    /// Whether it starts with a length. A region reference does not.
    has_length: bool,
    /// The element type of a sequence.
    sequence: Option<&'e Element>,
}

impl PointerField<'_> {
    /// A pointer with length 0 or without an address leads nowhere.
    fn read(&self, bytes: &[u8], sizes: Sizes) -> Result<Option<Pointer>, Error> {
        let mut cursor = Cursor::new(WHAT, 0, bytes);
        let length = if self.has_length { Some(u64::from(cursor.u32()?)) } else { None };
        let address = sizes.address(&mut cursor)?;
        let index = cursor.u32()?;
        if let (Some(length @ 1..), None) = (length, address) {
            return Err(cursor.invalid(format!("an element of length {length} without an address")));
        }
        // Address 0, before the base address is added, is the superblock. No collection is there.
        let address = address.filter(|&address| address != sizes.base && length != Some(0));
        let width = self.sequence.map_or(1, Element::nbytes);
        let nbytes = length.map(|length| length.saturating_mul(width));
        Ok(address.map(|address| Pointer { address, index, nbytes }))
    }
}

/// The pointers in one element that starts at `start`.
fn collect<'e>(element: &'e Element, start: u64, pointers: &mut Vec<PointerField<'e>>) -> Result<(), Error> {
    let (has_length, sequence) = match element {
        Element::VlenString { .. } => (true, None),
        Element::Vlen { element, .. } => (true, Some(&**element)),
        Element::RegionReference { .. } => (false, None),
        Element::Compound { fields, .. } => {
            let pointing = fields.iter().filter(|field| field.element.has_pointers());
            let mut each = pointing.map(|field| (start.saturating_add(field.offset), &field.element));
            return each.try_for_each(|(start, element)| collect(element, start, pointers));
        }
        Element::Array { shape, element } if element.has_pointers() => {
            let count = shape.iter().fold(1_u64, |count, &length| count.saturating_mul(length));
            return (0..count).try_for_each(|number| {
                let within = number.saturating_mul(element.nbytes());
                collect(element, start.saturating_add(within), pointers)
            });
        }
        _ => return Ok(()),
    };
    if pointers.len() >= MAX_POINTERS {
        return Err(Error::TooMany { what: "pointers in one element", limit: MAX_POINTERS as u64 });
    }
    pointers.push(PointerField { start: usize::try_from(start).unwrap_or(usize::MAX), has_length, sequence });
    Ok(())
}
