//! Fractal heaps: dense links, dense attributes, shared messages (HDF5 File Format Specification 3.0, III.G).

use std::collections::{HashMap, HashSet};

use hyperslab_core::ByteRange;

use super::btree2;
use super::lookup3;
use super::sizes::Sizes;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const HEADER: &str = "fractal heap";
const DIRECT: &str = "direct block of a fractal heap";
const INDIRECT: &str = "indirect block of a fractal heap";
const HUGE: &str = "huge object of a fractal heap";
/// Most rows of a doubling table: beyond, block sizes exceed 2^64.
const MAX_ROWS: u32 = 64;
/// Record types of the B-tree of huge objects: unfiltered, found by a number.
const HUGE_RECORDS: &[u8] = &[1];

/// A heap, with what was learnt of it so far.
#[derive(Debug)]
pub(crate) struct FractalHeap {
    shape: Shape,
    /// Direct blocks whose checksums were right.
    verified: HashSet<u64>,
    /// Children of the indirect blocks seen.
    indirect: HashMap<u64, Vec<Option<u64>>>,
    huge: Option<HugeObjects>,
}

/// What the header says, and what follows from it.
#[derive(Debug)]
struct Shape {
    address: u64,
    sizes: Sizes,
    id_nbytes: usize,
    filtered: bool,
    checked: bool,
    huge_tree: Option<u64>,
    max_managed: u64,
    /// Blocks of a row.
    width: u64,
    /// Bytes of a block of the first row.
    start: u64,
    /// Bytes of the largest direct block.
    max_direct: u64,
    offset_nbytes: usize,
    root: Option<u64>,
    /// Rows of the root, 0 where it is a direct block.
    root_rows: u32,
}

/// Huge objects by their numbers.
#[derive(Debug)]
struct HugeObjects {
    walk: btree2::Walk,
    ranges: HashMap<u64, ByteRange>,
    complete: bool,
}

/// Where a managed object lies.
struct Place {
    block: u64,
    block_nbytes: u64,
    offset: u64,
}

impl FractalHeap {
    /// Read the heap's header.
    pub fn read(pages: &Pages<'_>, sizes: Sizes, address: u64) -> Result<Self, Error> {
        let shape = Shape::read(pages, sizes, address)?;
        if let Some(offset) = shape.root {
            pages.want(ByteRange { offset, length: shape.root_nbytes() });
        }
        let walk = |tree| btree2::Walk::new(tree, sizes, HUGE_RECORDS);
        let huge = shape.huge_tree.map(walk);
        let huge = huge.map(|walk| HugeObjects { walk, ranges: HashMap::new(), complete: false });
        Ok(Self { shape, verified: HashSet::new(), indirect: HashMap::new(), huge })
    }

    /// Bytes of an object's identifier.
    pub fn id_nbytes(&self) -> usize {
        self.shape.id_nbytes
    }

    /// The object with this identifier: where it is in the file, and its bytes.
    pub fn object(&mut self, pages: &Pages<'_>, id: &[u8]) -> Result<(u64, Vec<u8>), Error> {
        let mut cursor = Cursor::new("identifier in a fractal heap", self.shape.address, id);
        let first = cursor.u8()?;
        match first >> 4 & 3 {
            0 => self.managed(pages, &mut cursor),
            1 => self.huge_object(pages, &mut cursor),
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

    fn managed(&mut self, pages: &Pages<'_>, cursor: &mut Cursor<'_>) -> Result<(u64, Vec<u8>), Error> {
        if self.shape.filtered {
            return Err(Error::unsupported("a fractal heap with filters"));
        }
        let offset = cursor.uint(self.shape.offset_nbytes)?;
        let length = cursor.uint(self.shape.length_nbytes())?;
        let place = self.place(pages, offset)?;
        let within = offset.checked_sub(place.offset);
        let fits = within
            .and_then(|within| within.checked_add(length))
            .is_some_and(|stop| stop <= place.block_nbytes);
        let start = within.and_then(|within| within.checked_add(place.block)).filter(|_| fits);
        let start = start.ok_or_else(|| cursor.invalid("an object reaches past its block"))?;
        self.verify(pages, &place)?;
        Ok((start, pages.bytes(DIRECT, start, length)?.into_owned()))
    }

    /// The checksum of a direct block is computed with itself as zero.
    fn verify(&mut self, pages: &Pages<'_>, place: &Place) -> Result<(), Error> {
        if !self.shape.checked || self.verified.contains(&place.block) {
            return Ok(());
        }
        let mut bytes = pages.bytes(DIRECT, place.block, place.block_nbytes)?.into_owned();
        let mut cursor = Cursor::new(DIRECT, place.block, &bytes);
        cursor.signature(b"FHDB")?;
        cursor.skip(1 + self.shape.sizes.offset + self.shape.offset_nbytes)?;
        let start = cursor.place();
        let found = cursor.u32()?;
        bytes.iter_mut().skip(start).take(4).for_each(|byte| *byte = 0);
        let computed = lookup3::lookup3(&bytes);
        if !lookup3::is_right(found, computed) {
            return Err(Error::Checksum { what: DIRECT, offset: place.block, found, computed });
        }
        self.verified.insert(place.block);
        Ok(())
    }

    /// Descend through indirect blocks to the direct block that holds an offset of the heap.
    fn place(&mut self, pages: &Pages<'_>, offset: u64) -> Result<Place, Error> {
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
            block = self.child(pages, block, rows, row, column)?;
            start = start.saturating_add(from);
            nbytes = self.shape.row_nbytes(row);
            rows = if nbytes <= self.shape.max_direct { 0 } else { self.shape.rows_of(nbytes, rows) };
        }
        Ok(Place { block, block_nbytes: nbytes, offset: start })
    }

    fn child(
        &mut self,
        pages: &Pages<'_>,
        block: u64,
        rows: u32,
        row: u32,
        column: u64,
    ) -> Result<u64, Error> {
        if !self.indirect.contains_key(&block) {
            let children = self.shape.indirect(pages, block, rows)?;
            self.indirect.insert(block, children);
        }
        let number = u64::from(row).saturating_mul(self.shape.width).saturating_add(column);
        let children = self.indirect.get(&block);
        let child = usize::try_from(number).ok().and_then(|number| children?.get(number).copied().flatten());
        child.ok_or_else(|| Error::invalid(INDIRECT, block, format!("its block {number} was never made")))
    }

    fn huge_object(&mut self, pages: &Pages<'_>, cursor: &mut Cursor<'_>) -> Result<(u64, Vec<u8>), Error> {
        if self.shape.filtered {
            return Err(Error::unsupported("a huge object in a fractal heap with filters"));
        }
        let sizes = self.shape.sizes;
        let direct = cursor.remaining() >= sizes.offset + sizes.length;
        let range = if direct {
            let offset = sizes.defined_address(cursor)?;
            ByteRange { offset, length: sizes.length(cursor)? }
        } else {
            let number = cursor.uint(sizes.length.min(cursor.remaining()))?;
            self.huge_range(pages, number)?
        };
        Ok((range.offset, pages.bytes(HUGE, range.offset, range.length)?.into_owned()))
    }

    fn huge_range(&mut self, pages: &Pages<'_>, number: u64) -> Result<ByteRange, Error> {
        let missing =
            || Error::invalid(HEADER, self.shape.address, format!("it has no huge object {number}"));
        let huge = self.huge.as_mut().ok_or_else(missing)?;
        if !huge.complete {
            let (sizes, ranges) = (self.shape.sizes, &mut huge.ranges);
            huge.walk.resume(pages, &mut |record| {
                let mut cursor = Cursor::new(HUGE, 0, record);
                let offset = sizes.defined_address(&mut cursor)?;
                let length = sizes.length(&mut cursor)?;
                ranges.insert(sizes.length(&mut cursor)?, ByteRange { offset, length });
                Ok(())
            })?;
            huge.complete = true;
        }
        huge.ranges.get(&number).copied().ok_or_else(missing)
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
        let filtered = filters_nbytes > 0;
        let extra = if filtered { filters_nbytes + sizes.length as u64 + 4 } else { 0 };
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
        let powers = width.is_power_of_two() && start.is_power_of_two() && max_direct.is_power_of_two();
        if !powers || max_direct < start || root_rows > MAX_ROWS || offset_nbytes > 8 || id_nbytes == 0 {
            return Err(cursor.invalid("its doubling table makes no sense"));
        }
        Ok(Self {
            address,
            sizes,
            id_nbytes,
            filtered,
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

    /// Bytes of the root, a direct block or an indirect one.
    fn root_nbytes(&self) -> u64 {
        if self.root_rows == 0 { self.start } else { self.indirect_nbytes(self.root_rows) }
    }

    /// Bytes of an indirect block of so many rows.
    fn indirect_nbytes(&self, rows: u32) -> u64 {
        let head = (5 + self.sizes.offset + self.offset_nbytes) as u64;
        let entries = u64::from(rows).saturating_mul(self.width).saturating_mul(self.sizes.offset as u64);
        head.saturating_add(entries).saturating_add(lookup3::CHECKSUM_NBYTES as u64)
    }

    /// Bytes of a managed object's length: what the largest direct block or the largest object needs.
    fn length_nbytes(&self) -> usize {
        let block = self.max_direct.trailing_zeros().div_ceil(8);
        let object = self.max_managed.max(1).ilog2() / 8 + 1;
        block.min(object) as usize
    }

    /// Bytes of a block in a row: the first two rows are alike, then each doubles.
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

    /// Rows of an indirect block that covers so many bytes; always fewer than its parent's, or none.
    fn rows_of(&self, nbytes: u64, parent_rows: u32) -> u32 {
        let first = self.width.saturating_mul(self.start);
        let doublings = nbytes.checked_div(first).and_then(u64::checked_ilog2).unwrap_or(0);
        doublings.saturating_add(1).min(parent_rows.saturating_sub(1))
    }

    /// Addresses of an indirect block's children, row by row.
    fn indirect(&self, pages: &Pages<'_>, address: u64, rows: u32) -> Result<Vec<Option<u64>>, Error> {
        let count = u64::from(rows).saturating_mul(self.width);
        let bytes = pages.bytes(INDIRECT, address, self.indirect_nbytes(rows))?;
        let mut cursor = Cursor::new(INDIRECT, address, lookup3::checked(INDIRECT, address, &bytes)?);
        cursor.signature(b"FHIB")?;
        cursor.skip(1 + self.sizes.offset + self.offset_nbytes)?;
        (0..count).map(|_| self.sizes.address(&mut cursor)).collect()
    }
}
