//! Fractal heaps: dense links, dense attributes, shared messages (HDF5 File Format Specification 3.0, III.G).

use std::collections::{HashMap, HashSet};

use hyperslab_core::ByteRange;

use super::btree2;
use super::budget::Budget;
use super::heap_filters::{Filtered, HeapFilters};
use super::lookup3;
use super::sizes::Sizes;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const HEADER: &str = "fractal heap";
const DIRECT: &str = "direct block of a fractal heap";
const INDIRECT: &str = "indirect block of a fractal heap";
const HUGE: &str = "huge object of a fractal heap";
/// The most rows of a doubling table. With more, block sizes exceed 2^64.
const MAX_ROWS: u32 = 64;
/// Record types of the B-tree of huge objects that are found by number: plain and filtered.
const HUGE_RECORDS: &[u8] = &[1];
const FILTERED_HUGE_RECORDS: &[u8] = &[2];
/// Bytes of a filter mask.
const MASK_NBYTES: usize = 4;

/// A heap, and what we learned about it so far.
#[derive(Debug)]
pub(crate) struct FractalHeap {
    shape: Shape,
    /// Direct blocks whose checksums were verified.
    verified: HashSet<u64>,
    /// Children of the indirect blocks seen so far.
    indirect: HashMap<u64, Vec<Option<Block>>>,
    /// Filtered blocks and huge objects after decoding, by address and length.
    decoded: HashMap<(u64, u64), Vec<u8>>,
    huge: Option<HugeObjects>,
}

/// The location of a block, and how it is stored if the heap has filters.
#[derive(Clone, Copy, Debug)]
struct Block {
    address: u64,
    filtered: Option<Filtered>,
}

/// A huge object: its location, its length, and how it is stored if the heap has filters.
#[derive(Clone, Copy, Debug)]
struct Huge {
    address: u64,
    nbytes: u64,
    filtered: Option<Filtered>,
}

/// The contents of the header, and what follows from them.
#[derive(Debug)]
struct Shape {
    address: u64,
    sizes: Sizes,
    id_nbytes: usize,
    filters: Option<HeapFilters>,
    checked: bool,
    huge_tree: Option<u64>,
    max_managed: u64,
    /// The number of blocks in a row.
    width: u64,
    /// Bytes of a block of the first row.
    start: u64,
    /// Bytes of the largest direct block.
    max_direct: u64,
    offset_nbytes: usize,
    root: Option<Block>,
    /// The number of rows of the root; 0 if it is a direct block.
    root_rows: u32,
}

/// Huge objects by number.
#[derive(Debug)]
struct HugeObjects {
    walk: btree2::Walk,
    objects: HashMap<u64, Huge>,
    complete: bool,
}

/// The block that holds a managed object.
struct BlockLocation {
    block: Block,
    block_nbytes: u64,
    offset: u64,
}

impl FractalHeap {
    /// Reads the heap's header.
    pub fn read(pages: &Pages<'_>, sizes: Sizes, address: u64) -> Result<Self, Error> {
        let shape = Shape::read(pages, sizes, address)?;
        if let Some(root) = shape.root {
            pages.want(ByteRange { offset: root.address, length: shape.root_nbytes(root) });
        }
        let records = if shape.filters.is_some() { FILTERED_HUGE_RECORDS } else { HUGE_RECORDS };
        let walk = |tree| btree2::Walk::new(tree, sizes, records);
        let huge = shape.huge_tree.map(walk);
        let huge = huge.map(|walk| HugeObjects { walk, objects: HashMap::new(), complete: false });
        let (verified, indirect, decoded) = (HashSet::new(), HashMap::new(), HashMap::new());
        Ok(Self { shape, verified, indirect, decoded, huge })
    }

    /// Bytes of an object's identifier.
    pub fn id_nbytes(&self) -> usize {
        self.shape.id_nbytes
    }

    /// The object with this identifier: its offset in the file, and its bytes. Decoded bytes count against the budget.
    pub fn object(
        &mut self,
        pages: &Pages<'_>,
        budget: &mut Budget,
        id: &[u8],
    ) -> Result<(u64, Vec<u8>), Error> {
        let mut cursor = Cursor::new("identifier in a fractal heap", self.shape.address, id);
        let first = cursor.u8()?;
        match first >> 4 & 3 {
            0 => self.managed(pages, budget, &mut cursor),
            1 => self.huge_object(pages, budget, &mut cursor),
            2 => self.tiny(&mut cursor, first),
            kind => Err(cursor.invalid(format!("object of type {kind}"))),
        }
    }

    /// The object is in its identifier. Identifiers of more than 17 bytes have a length of 12 bits.
    fn tiny(&self, cursor: &mut Cursor<'_>, first: u8) -> Result<(u64, Vec<u8>), Error> {
        let mut length = usize::from(first & 0x0f);
        if self.shape.id_nbytes > 17 {
            length = length << 8 | usize::from(cursor.u8()?);
        }
        Ok((self.shape.address, cursor.take(length + 1)?.to_vec()))
    }

    fn managed(
        &mut self,
        pages: &Pages<'_>,
        budget: &mut Budget,
        cursor: &mut Cursor<'_>,
    ) -> Result<(u64, Vec<u8>), Error> {
        let offset = cursor.uint(self.shape.offset_nbytes)?;
        let length = cursor.uint(self.shape.length_nbytes())?;
        let location = self.location(pages, offset)?;
        let within = offset.checked_sub(location.offset);
        let stop = within.and_then(|within| within.checked_add(length));
        let range = within.zip(stop.filter(|&stop| stop <= location.block_nbytes));
        let (within, stop) = range.ok_or_else(|| cursor.invalid("an object reaches past its block"))?;
        let address = location.block.address;
        if let Some(filtered) = location.block.filtered {
            let bytes = self.decoded(pages, budget, DIRECT, (address, location.block_nbytes), filtered)?;
            let object = usize::try_from(within).ok().zip(usize::try_from(stop).ok());
            let object = object.and_then(|(within, stop)| bytes.get(within..stop)).unwrap_or_default();
            return Ok((address, object.to_vec()));
        }
        let start = address.checked_add(within);
        let start = start.ok_or_else(|| cursor.invalid("an object beyond 2^64"))?;
        if !self.verified.contains(&address) {
            let bytes = pages.bytes(DIRECT, address, location.block_nbytes)?;
            self.shape.verify(address, &bytes)?;
            self.verified.insert(address);
        }
        Ok((start, pages.bytes(DIRECT, start, length)?.into_owned()))
    }

    /// Decodes what filters made shorter. `whole` has the address and the length before filtering.
    fn decoded(
        &mut self,
        pages: &Pages<'_>,
        budget: &mut Budget,
        what: &'static str,
        whole: (u64, u64),
        filtered: Filtered,
    ) -> Result<&[u8], Error> {
        let (address, nbytes) = whole;
        if !self.decoded.contains_key(&whole) {
            let stored = pages.bytes(what, address, filtered.nbytes)?;
            budget.spend(usize::try_from(nbytes).unwrap_or(usize::MAX))?;
            let filters = self.shape.filters.as_ref();
            let filters = filters.ok_or_else(|| Error::invalid(what, address, "its heap has no filters"))?;
            let bytes = filters.decode(what, address, &stored, filtered.mask, nbytes)?;
            if what == DIRECT {
                self.shape.verify(address, &bytes)?;
            }
            self.decoded.insert(whole, bytes);
        }
        Ok(self.decoded.get(&whole).map(Vec::as_slice).unwrap_or_default())
    }

    /// Descends through indirect blocks to the direct block that holds an offset of the heap.
    fn location(&mut self, pages: &Pages<'_>, offset: u64) -> Result<BlockLocation, Error> {
        let address = self.shape.address;
        let problem = |problem: &str| Error::invalid(HEADER, address, problem);
        let root = self.shape.root.ok_or_else(|| problem("it has no root block"))?;
        let (mut block, mut rows, mut start) = (root, self.shape.root_rows, 0_u64);
        let mut nbytes = self.shape.start;
        while rows > 0 {
            let within = offset.saturating_sub(start);
            let (row, column, from) = self
                .shape
                .cell(within)
                .filter(|cell| cell.0 < rows)
                .ok_or_else(|| problem("an object past its end"))?;
            block = self.child(pages, block.address, rows, row, column)?;
            start = start.saturating_add(from);
            nbytes = self.shape.row_nbytes(row);
            rows = if nbytes <= self.shape.max_direct { 0 } else { self.shape.rows_of(nbytes, rows) };
        }
        Ok(BlockLocation { block, block_nbytes: nbytes, offset: start })
    }

    fn child(
        &mut self,
        pages: &Pages<'_>,
        block: u64,
        rows: u32,
        row: u32,
        column: u64,
    ) -> Result<Block, Error> {
        if !self.indirect.contains_key(&block) {
            let children = self.shape.indirect(pages, block, rows)?;
            self.indirect.insert(block, children);
        }
        let number = u64::from(row).saturating_mul(self.shape.width).saturating_add(column);
        let children = self.indirect.get(&block);
        let child = usize::try_from(number).ok().and_then(|number| children?.get(number).copied().flatten());
        child.ok_or_else(|| Error::invalid(INDIRECT, block, format!("its block {number} was never made")))
    }

    fn huge_object(
        &mut self,
        pages: &Pages<'_>,
        budget: &mut Budget,
        cursor: &mut Cursor<'_>,
    ) -> Result<(u64, Vec<u8>), Error> {
        let sizes = self.shape.sizes;
        let is_filtered = self.shape.filters.is_some();
        let filtered_nbytes = if is_filtered { MASK_NBYTES + sizes.length } else { 0 };
        let huge = if cursor.remaining() >= sizes.offset + sizes.length + filtered_nbytes {
            Huge::read(cursor, sizes, is_filtered)?
        } else {
            let number = cursor.uint(sizes.length.min(cursor.remaining()))?;
            self.huge(pages, number)?
        };
        let Some(filtered) = huge.filtered else {
            return Ok((huge.address, pages.bytes(HUGE, huge.address, huge.nbytes)?.into_owned()));
        };
        let bytes = self.decoded(pages, budget, HUGE, (huge.address, huge.nbytes), filtered)?;
        Ok((huge.address, bytes.to_vec()))
    }

    fn huge(&mut self, pages: &Pages<'_>, number: u64) -> Result<Huge, Error> {
        let missing =
            || Error::invalid(HEADER, self.shape.address, format!("it has no huge object {number}"));
        let huge = self.huge.as_mut().ok_or_else(missing)?;
        if !huge.complete {
            let (sizes, objects) = (self.shape.sizes, &mut huge.objects);
            let is_filtered = self.shape.filters.is_some();
            huge.walk.resume(pages, &mut |record| {
                let mut cursor = Cursor::new(HUGE, 0, record);
                let object = Huge::read(&mut cursor, sizes, is_filtered)?;
                objects.insert(sizes.length(&mut cursor)?, object);
                Ok(())
            })?;
            huge.complete = true;
        }
        huge.objects.get(&number).copied().ok_or_else(missing)
    }
}

impl Huge {
    /// Address and length; with filters, also their mask and the length before filtering.
    fn read(cursor: &mut Cursor<'_>, sizes: Sizes, is_filtered: bool) -> Result<Self, Error> {
        let address = sizes.defined_address(cursor)?;
        let nbytes = sizes.length(cursor)?;
        if !is_filtered {
            return Ok(Self { address, nbytes, filtered: None });
        }
        let filtered = Some(Filtered { nbytes, mask: cursor.u32()? });
        Ok(Self { address, nbytes: sizes.length(cursor)?, filtered })
    }
}

impl Shape {
    fn read(pages: &Pages<'_>, sizes: Sizes, address: u64) -> Result<Self, Error> {
        let plain = (22 + 12 * sizes.length + 3 * sizes.offset) as u64;
        let start = pages.bytes(HEADER, address, plain)?;
        let mut cursor = Cursor::new(HEADER, address, &start);
        cursor.signature(b"FRHP")?;
        let version = cursor.u8()?;
        if version != 0 {
            return Err(Error::unsupported(format!("fractal heap version {version}")));
        }
        let id_nbytes = usize::from(cursor.u16()?);
        let filters_nbytes = u64::from(cursor.u16()?);
        let extra = match filters_nbytes {
            0 => 0,
            _ => filters_nbytes + (sizes.length + MASK_NBYTES) as u64,
        };
        let all = pages.bytes(HEADER, address, plain + extra + lookup3::CHECKSUM_NBYTES as u64)?;
        lookup3::checked(HEADER, address, &all)?;
        let checked = cursor.u8()? & 2 != 0;
        let max_managed = u64::from(cursor.u32()?);
        cursor.skip(sizes.length)?; // next number of a huge object
        let huge_tree = sizes.address(&mut cursor)?;
        cursor.skip(9 * sizes.length + sizes.offset)?; // free space and statistics
        let width = u64::from(cursor.u16()?);
        let (start, max_direct) = (sizes.length(&mut cursor)?, sizes.length(&mut cursor)?);
        let offset_nbytes = usize::from(cursor.u16()?).div_ceil(8);
        cursor.skip(2)?; // rows at the start
        let root = sizes.address(&mut cursor)?;
        let root_rows = u32::from(cursor.u16()?);
        let behind = all.get(cursor.position()..).filter(|_| filters_nbytes > 0);
        let filtering = behind.map(|bytes| filtering(cursor.offset(), bytes, sizes, filters_nbytes));
        let (root_filtered, filters) = filtering.transpose()?.unzip();
        let root_filtered = root_filtered.filter(|_| root_rows == 0);
        let root = root.map(|address| Block { address, filtered: root_filtered });
        let powers = width.is_power_of_two() && start.is_power_of_two() && max_direct.is_power_of_two();
        if !powers || max_direct < start || root_rows > MAX_ROWS || offset_nbytes > 8 || id_nbytes == 0 {
            return Err(cursor.invalid("its doubling table makes no sense"));
        }
        Ok(Self {
            address,
            sizes,
            id_nbytes,
            filters,
            checked,
            huge_tree,
            max_managed,
            width,
            start,
            max_direct,
            offset_nbytes,
            root,
            root_rows,
        })
    }

    /// Bytes of the root in the file, a direct block or an indirect one.
    fn root_nbytes(&self, root: Block) -> u64 {
        match (root.filtered, self.root_rows) {
            (Some(filtered), 0) => filtered.nbytes,
            (None, 0) => self.start,
            (_, rows) => self.indirect_nbytes(rows),
        }
    }

    /// The checksum of a direct block is computed with zeros in place of the checksum itself.
    fn verify(&self, address: u64, block: &[u8]) -> Result<(), Error> {
        if !self.checked {
            return Ok(());
        }
        let mut cursor = Cursor::new(DIRECT, address, block);
        cursor.signature(b"FHDB")?;
        cursor.skip(1 + self.sizes.offset + self.offset_nbytes)?;
        let start = cursor.position();
        let found = cursor.u32()?;
        let mut bytes = block.to_vec();
        bytes.iter_mut().skip(start).take(4).for_each(|byte| *byte = 0);
        let computed = lookup3::lookup3(&bytes);
        if !lookup3::is_right(found, computed) {
            return Err(Error::Checksum { what: DIRECT, offset: address, found, computed });
        }
        Ok(())
    }

    /// Bytes of an indirect block with this many rows.
    fn indirect_nbytes(&self, rows: u32) -> u64 {
        let head = (5 + self.sizes.offset + self.offset_nbytes) as u64;
        let filtered_nbytes = (self.sizes.length + MASK_NBYTES) as u64;
        let addresses = u64::from(rows).saturating_mul(self.sizes.offset as u64);
        let filtered = u64::from(rows.min(self.filtered_rows())).saturating_mul(filtered_nbytes);
        let entries = addresses.saturating_add(filtered).saturating_mul(self.width);
        head.saturating_add(entries).saturating_add(lookup3::CHECKSUM_NBYTES as u64)
    }

    /// How many rows of an indirect block have filtered blocks: the rows of direct blocks.
    fn filtered_rows(&self) -> u32 {
        let doublings = self.max_direct.trailing_zeros().saturating_sub(self.start.trailing_zeros());
        if self.filters.is_some() { doublings.saturating_add(2) } else { 0 }
    }

    /// Bytes of a managed object's length: enough for the largest direct block or the largest object.
    fn length_nbytes(&self) -> usize {
        let block = self.max_direct.trailing_zeros().div_ceil(8);
        let object = self.max_managed.max(1).ilog2() / 8 + 1;
        block.min(object) as usize
    }

    /// Bytes of a block in a row. The first two rows are equal, then the size doubles with each row.
    fn row_nbytes(&self, row: u32) -> u64 {
        self.start
            .checked_shl(row.saturating_sub(1))
            .filter(|nbytes| nbytes >> row.saturating_sub(1) == self.start)
            .unwrap_or(u64::MAX)
    }

    /// The row and column that hold an offset of an indirect block, and where that block starts.
    fn cell(&self, offset: u64) -> Option<(u32, u64, u64)> {
        let first = self.width.checked_mul(self.start)?;
        if offset < first {
            let column = offset.checked_div(self.start)?;
            return Some((0, column, column.checked_mul(self.start)?));
        }
        let row = offset.checked_div(first)?.checked_ilog2()?.checked_add(1)?;
        let row_start = first.checked_shl(row - 1)?;
        let nbytes = self.row_nbytes(row);
        let column = offset.checked_sub(row_start)?.checked_div(nbytes)?;
        Some((row, column, row_start.checked_add(column.checked_mul(nbytes)?)?))
    }

    /// How many rows an indirect block for this many bytes has: always fewer than its parent, or none.
    fn rows_of(&self, nbytes: u64, parent_rows: u32) -> u32 {
        let first = self.width.saturating_mul(self.start);
        let doublings = nbytes.checked_div(first).and_then(u64::checked_ilog2).unwrap_or(0);
        doublings.saturating_add(1).min(parent_rows.saturating_sub(1))
    }

    /// The children of an indirect block, row by row.
    fn indirect(&self, pages: &Pages<'_>, address: u64, rows: u32) -> Result<Vec<Option<Block>>, Error> {
        let bytes = pages.bytes(INDIRECT, address, self.indirect_nbytes(rows))?;
        let mut cursor = Cursor::new(INDIRECT, address, lookup3::checked(INDIRECT, address, &bytes)?);
        cursor.signature(b"FHIB")?;
        cursor.skip(1 + self.sizes.offset + self.offset_nbytes)?;
        let cells = (0..rows).flat_map(|row| (0..self.width).map(move |_| row));
        cells.map(|row| self.block(&mut cursor, row < self.filtered_rows())).collect()
    }

    fn block(&self, cursor: &mut Cursor<'_>, is_filtered: bool) -> Result<Option<Block>, Error> {
        let address = self.sizes.address(cursor)?;
        let filtered = if is_filtered {
            Some(Filtered { nbytes: self.sizes.length(cursor)?, mask: cursor.u32()? })
        } else {
            None
        };
        Ok(address.map(|address| Block { address, filtered }))
    }
}

/// The header's filters: how the root is stored if it is a direct block, and which filters there are.
fn filtering(
    offset: u64,
    bytes: &[u8],
    sizes: Sizes,
    filters_nbytes: u64,
) -> Result<(Filtered, HeapFilters), Error> {
    let mut cursor = Cursor::new(HEADER, offset, bytes);
    let filtered = Filtered { nbytes: sizes.length(&mut cursor)?, mask: cursor.u32()? };
    let message = cursor.take(usize::try_from(filters_nbytes).unwrap_or(usize::MAX))?;
    Ok((filtered, HeapFilters::read(offset, message)?))
}
