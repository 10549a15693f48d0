//! The linked list of blocks of data descriptors, which tell where each object is (specification, section 2.2).

use std::collections::{HashMap, HashSet};

use hyperslab_core::ByteRange;

use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;
use crate::rounds::settle;

const WHAT: &str = "a block of HDF4 data descriptors";
const MAGIC: [u8; 4] = [0x0e, 0x03, 0x13, 0x01];
const DESCRIPTOR_NBYTES: u64 = 12;
/// Nothing larger is fetched before it is needed.
const SMALL: u64 = 64 << 10;

/// The tags that we know, without the bit for special elements.
pub(super) mod tag {
    /// No object.
    pub const NULL: u16 = 1;
    /// Blocks, and tables of blocks, of linked-block elements.
    pub const LINKED: u16 = 20;
    /// Encoded bytes of a compressed element.
    pub const COMPRESSED: u16 = 40;
    /// A chunk.
    pub const CHUNK: u16 = 61;
    /// A number type.
    pub const NUMBER_TYPE: u16 = 106;
    /// A raster image group.
    pub const RASTER_GROUP: u16 = 306;
    /// An old scientific data group.
    pub const OLD_GROUP: u16 = 700;
    /// Rank, dimensions and number types.
    pub const DIMENSIONS: u16 = 701;
    /// The data.
    pub const DATA: u16 = 702;
    /// Scales of the dimensions.
    pub const SCALES: u16 = 703;
    /// Labels.
    pub const LABELS: u16 = 704;
    /// Units.
    pub const UNITS: u16 = 705;
    /// Formats for printing.
    pub const FORMATS: u16 = 706;
    /// The maximum and the minimum.
    pub const EXTREMES: u16 = 707;
    /// The name of the coordinate system.
    pub const COORDINATES: u16 = 708;
    /// An old group and the equivalent new one.
    pub const SAME_GROUP: u16 = 710;
    /// A numeric data group.
    pub const NUMERIC_GROUP: u16 = 720;
    /// Scale and offset.
    pub const CALIBRATION: u16 = 731;
    /// The fill value.
    pub const FILL: u16 = 732;
    /// The description of a Vdata.
    pub const VDATA: u16 = 1962;
    /// The records of a Vdata.
    pub const RECORDS: u16 = 1963;
    /// A Vgroup.
    pub const VGROUP: u16 = 1965;
}

/// One object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Descriptor {
    /// The tag, without the bit for special elements.
    pub tag: u16,
    pub reference: u16,
    /// Whether the bytes tell where the data are instead of being the data.
    pub is_special: bool,
    /// `None` for an object without data.
    pub range: Option<ByteRange>,
}

/// All descriptors of a file.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    list: Vec<Descriptor>,
    positions: HashMap<(u16, u16), usize>,
}

/// Follows the list from the file's start. Each block takes a round, unless it is held already.
pub(super) fn read(pages: &mut Pages<'_>) -> Result<Descriptors, Error> {
    let magic = settle(pages, |pages| Ok(pages.bytes("the HDF4 signature", 0, 4)?.to_vec()));
    if magic.as_deref() != Ok(&MAGIC) {
        return match magic {
            Err(error @ Error::Fetch(_)) => Err(error),
            _ => Err(Error::UnknownFormat { reason: "the file does not start as HDF4 files do".into() }),
        };
    }
    let limit = pages.file_length() / DESCRIPTOR_NBYTES;
    let mut descriptors = Descriptors::default();
    let mut seen = HashSet::new();
    let mut next = MAGIC.len() as u64;
    while next != 0 {
        if !seen.insert(next) {
            return Err(Error::Cycle { what: WHAT, offset: next });
        }
        let (following, block) = settle(pages, |pages| block(pages, next))?;
        if descriptors.list.len() as u64 + block.len() as u64 > limit {
            return Err(Error::TooMany { what: "HDF4 data descriptors in a file of this length", limit });
        }
        for descriptor in block {
            descriptors.add(descriptor);
        }
        next = following;
    }
    Ok(descriptors)
}

fn block(pages: &Pages<'_>, offset: u64) -> Result<(u64, Vec<Descriptor>), Error> {
    let head = pages.bytes(WHAT, offset, 6)?;
    let mut cursor = Cursor::new(WHAT, offset, &head);
    let count = cursor.uint_be(2)?;
    let next = cursor.uint_be(4)?;
    let bytes = pages.bytes(WHAT, offset.saturating_add(6), count * DESCRIPTOR_NBYTES)?;
    let mut cursor = Cursor::new(WHAT, offset, &bytes);
    let mut descriptors = Vec::new();
    for _ in 0..count {
        let tag = small(cursor.uint_be(2)?);
        let reference = small(cursor.uint_be(2)?);
        let (offset, length) = (cursor.uint_be(4)?, cursor.uint_be(4)?);
        let absent = u64::from(u32::MAX);
        let range = (offset != absent && length != absent).then_some(ByteRange { offset, length });
        let is_special = tag & 0xc000 == 0x4000;
        let tag = if is_special { tag & 0x3fff } else { tag };
        if tag != tag::NULL {
            descriptors.push(Descriptor { tag, reference, is_special, range });
        }
    }
    Ok((next, descriptors))
}

/// From a number of two bytes.
pub(super) fn small(value: u64) -> u16 {
    u16::try_from(value).unwrap_or(u16::MAX)
}

impl Descriptors {
    fn add(&mut self, descriptor: Descriptor) {
        self.positions.entry((descriptor.tag, descriptor.reference)).or_insert(self.list.len());
        self.list.push(descriptor);
    }

    /// The object with this tag and reference number.
    pub fn get(&self, tag: u16, reference: u16) -> Option<Descriptor> {
        self.positions.get(&(tag, reference)).and_then(|&position| self.list.get(position)).copied()
    }

    /// All objects with this tag, in the file's order.
    pub fn with_tag(&self, tag: u16) -> impl Iterator<Item = Descriptor> {
        self.list.iter().copied().filter(move |descriptor| descriptor.tag == tag)
    }

    /// Fetches all small objects that describe something, in the first round.
    pub fn want_metadata(&self, pages: &Pages<'_>) {
        for descriptor in &self.list {
            let is_data = matches!(descriptor.tag, tag::DATA | tag::COMPRESSED | tag::CHUNK | tag::LINKED);
            let is_metadata = descriptor.is_special || (!is_data && describes(descriptor.tag));
            let file_length = pages.file_length();
            let within = |range: &ByteRange| range.length <= SMALL && range.end() <= file_length;
            if let Some(range) = descriptor.range.filter(|range| is_metadata && within(range)) {
                pages.want(range);
            }
        }
    }
}

fn describes(tag: u16) -> bool {
    use tag::{FILL, NUMBER_TYPE, OLD_GROUP, RECORDS, VDATA, VGROUP};
    matches!(tag, NUMBER_TYPE | OLD_GROUP..=FILL | VDATA | RECORDS | VGROUP)
}
