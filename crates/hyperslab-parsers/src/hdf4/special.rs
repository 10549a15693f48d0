//! Special elements: data elsewhere, in blocks, compressed or in chunks (specification, section 10;
//! `hfile_priv.h`).

use super::descriptors::{Descriptor, small};
use super::{File, groups};
use crate::cursor::Cursor;
use crate::error::Error;
use hyperslab_core::{ByteRange, Codec};

const WHAT: &str = "the header of an HDF4 special element";
const MAX_NDIM: u64 = 32; // H4_MAX_VAR_DIMS

/// What the header of a special element says.
#[derive(Clone, Debug)]
pub(super) enum Special {
    /// In blocks of a chain of tables.
    Linked { length: u64, block_nbytes: u64, blocks_per_table: u64, table: u16 },
    /// In another file.
    External { range: ByteRange, file: String },
    /// Compressed; the encoded bytes have their own descriptor.
    Compressed { reference: u16, coder: Coder },
    /// In chunks, listed by a Vdata.
    Chunked(Chunked),
}

/// What the header of a chunked element says.
#[derive(Clone, Debug)]
pub(super) struct Chunked {
    pub table: u16,
    pub element_nbytes: u64,
    /// Lengths along each axis: the whole, a chunk.
    pub axes: Vec<(u64, u64)>,
    pub fill: Vec<u8>,
    pub coder: Coder,
}

/// How bytes are encoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Coder(u64);

impl Coder {
    pub const NONE: Self = Self(0);

    /// The chain that decodes it; codes as in `hcomp.h`.
    pub fn codecs(self) -> Vec<Codec> {
        let unknown = |name: String| vec![Codec::Unknown { number: None, name }];
        match self.0 {
            0 => Vec::new(),
            1 => unknown("HDF4 run-length encoding".into()),
            2 => unknown("HDF4 n-bit".into()),
            3 => unknown("HDF4 skipping Huffman".into()),
            4 => vec![Codec::Zlib],
            5 => unknown("HDF4 szip".into()),
            7 => unknown("JPEG".into()),
            12 => unknown("HDF4 IMCOMP".into()),
            other => unknown(format!("HDF4 coder {other}")),
        }
    }
}

/// The header of a special element.
pub(super) fn read(file: &File<'_>, descriptor: Descriptor) -> Result<Special, Error> {
    let range = descriptor.range.ok_or_else(|| Error::invalid(WHAT, 0, "it has no bytes"))?;
    let bytes = file.pages.bytes(WHAT, range.offset, range.length)?;
    let mut cursor = Cursor::new(WHAT, range.offset, &bytes);
    match cursor.uint_be(2)? {
        1 => Ok(Special::Linked {
            length: cursor.uint_be(4)?,
            block_nbytes: cursor.uint_be(4)?,
            blocks_per_table: cursor.uint_be(4)?,
            table: small(cursor.uint_be(2)?),
        }),
        2 => external(&mut cursor),
        3 => {
            cursor.skip(2 + 4)?; // the header's version, the length of the decoded data
            Ok(Special::Compressed { reference: small(cursor.uint_be(2)?), coder: coder(&mut cursor)? })
        }
        5 => chunked(&mut cursor).map(Special::Chunked),
        other => Err(Error::unsupported(format!("HDF4 special element {other}"))),
    }
}

fn external(cursor: &mut Cursor<'_>) -> Result<Special, Error> {
    let (length, offset) = (cursor.uint_be(4)?, cursor.uint_be(4)?);
    let name_nbytes = usize::try_from(cursor.uint_be(4)?).unwrap_or(usize::MAX);
    let file = groups::until_zero(cursor.take(name_nbytes)?);
    Ok(Special::External { range: ByteRange { offset, length }, file })
}

/// The model comes first; the standard one has no parameters of its own. The coder's do not matter for
/// decoding.
fn coder(cursor: &mut Cursor<'_>) -> Result<Coder, Error> {
    cursor.skip(2)?;
    Ok(Coder(cursor.uint_be(2)?))
}

fn chunked(cursor: &mut Cursor<'_>) -> Result<Chunked, Error> {
    cursor.skip(4)?; // the length of what follows
    let version = cursor.u8()?;
    if version != 0 {
        return Err(Error::unsupported(format!("version {version} of HDF4 chunked elements")));
    }
    let flag = cursor.uint_be(4)?;
    cursor.skip(4 + 4)?; // logical lengths of the whole and of a chunk
    let element_nbytes = cursor.uint_be(4)?;
    cursor.skip(2)?; // the table's tag: always a Vdata
    let table = small(cursor.uint_be(2)?);
    cursor.skip(4)?; // for tables of tables, never used
    let ndim = cursor.uint_be(4)?;
    if ndim > MAX_NDIM {
        return Err(Error::TooMany { what: "dimensions of an HDF4 array", limit: MAX_NDIM });
    }
    let mut axes = Vec::new();
    for _ in 0..ndim {
        cursor.skip(4)?; // distribution, unlimited
        axes.push((cursor.uint_be(4)?, cursor.uint_be(4)?));
    }
    let fill_nbytes = usize::try_from(cursor.uint_be(4)?).unwrap_or(usize::MAX);
    let fill = cursor.take(fill_nbytes)?.to_vec();
    let mut chunks_coder = Coder::NONE;
    if flag & 0xff == 3 {
        cursor.skip(2 + 4)?;
        chunks_coder = coder(cursor)?;
    }
    Ok(Chunked { table, element_nbytes, axes, fill, coder: chunks_coder })
}
