//! Special elements: data elsewhere, in blocks, compressed or in chunks (specification, section 10; `hfile_priv.h`).

use super::descriptors::{Descriptor, small};
use super::file::File;
use super::text::until_zero;
use crate::cursor::Cursor;
use crate::error::Error;
use hyperslab_core::{ByteRange, Codec, known};

const WHAT: &str = "the header of an HDF4 special element";
const MAX_NDIM: u64 = 32; // H4_MAX_VAR_DIMS

/// The content of a special element's header.
#[derive(Clone, Debug)]
pub(super) enum Special {
    /// In blocks listed by a chain of tables.
    Linked { length: u64, block_nbytes: u64, blocks_per_table: u64, table: u16 },
    /// In another file.
    External { range: ByteRange, file: String },
    /// Compressed. The encoded bytes have their own descriptor.
    Compressed { reference: u16, coder: Coder },
    /// In chunks, listed by a Vdata.
    Chunked(Chunked),
}

/// The content of a chunked element's header.
#[derive(Clone, Debug)]
pub(super) struct Chunked {
    pub table: u16,
    pub element_nbytes: u64,
    /// Lengths along each axis: of the array, and of a chunk.
    pub axes: Vec<(u64, u64)>,
    pub fill: Vec<u8>,
    pub coder: Coder,
}

/// How bytes are encoded: a code of `hcomp.h`, with the header's parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coder {
    None,
    RunLength,
    Nbit { sign_extended: bool, filled_with_ones: bool, first_bit: u32, nbits: u32 },
    SkippingHuffman { element_nbytes: u32 },
    Deflate,
    Szip { line_pixels: u32, options: u32, pixel_nbits: u8, block_pixels: u8 },
    Other(u64),
}

/// HDF 4.2r1 and later set this in libsz's option mask: the data have a header.
const SZIP_HAS_HEADER: u32 = 0x1_0000;

impl Coder {
    /// The codec chain for elements of this many bytes.
    pub fn codecs(self, element_nbytes: u64) -> Vec<Codec> {
        let unknown = |name: String| Codec::Unknown { number: None, name };
        vec![match self {
            Self::None => return Vec::new(),
            Self::RunLength => Codec::known(&known::run_length),
            Self::Nbit { sign_extended, filled_with_ones, first_bit, nbits } => {
                let width = u32::try_from(element_nbytes).unwrap_or(u32::MAX);
                let flags = [sign_extended, filled_with_ones].map(u32::from);
                Codec::with(&known::nbit_hdf4, [width, first_bit, nbits, flags[0], flags[1]])
            }
            Self::SkippingHuffman { element_nbytes } => {
                Codec::with(&known::skipping_huffman, [element_nbytes])
            }
            Self::Deflate => Codec::known(&known::zlib),
            Self::Szip { line_pixels, options, pixel_nbits, block_pixels } => {
                let has_header = u32::from(options & SZIP_HAS_HEADER != 0);
                let (options, width) = (options & !SZIP_HAS_HEADER, u32::from(pixel_nbits));
                let parameters = [options, width, u32::from(block_pixels), line_pixels, has_header];
                Codec::with(&known::szip_hdf4, parameters)
            }
            Self::Other(7) => unknown("JPEG".into()),
            Self::Other(12) => unknown("HDF4 IMCOMP".into()),
            Self::Other(other) => unknown(format!("HDF4 coder {other}")),
        }]
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
    let file = until_zero(cursor.take(name_nbytes)?);
    Ok(Special::External { range: ByteRange { offset, length }, file })
}

/// The model comes first. The standard model has no parameters.
fn coder(cursor: &mut Cursor<'_>) -> Result<Coder, Error> {
    cursor.skip(2)?;
    Ok(match cursor.uint_be(2)? {
        0 => Coder::None,
        1 => Coder::RunLength,
        2 => {
            cursor.skip(4)?; // the number type, which is the array's
            let (sign_extended, filled_with_ones) = (cursor.uint_be(2)? != 0, cursor.uint_be(2)? != 0);
            Coder::Nbit {
                sign_extended,
                filled_with_ones,
                first_bit: u32_be(cursor)?,
                nbits: u32_be(cursor)?,
            }
        }
        3 => Coder::SkippingHuffman { element_nbytes: u32_be(cursor)? },
        4 => Coder::Deflate,
        5 => {
            cursor.skip(4)?; // pixels of the whole
            let (line_pixels, options) = (u32_be(cursor)?, u32_be(cursor)?);
            Coder::Szip { line_pixels, options, pixel_nbits: cursor.u8()?, block_pixels: cursor.u8()? }
        }
        other => Coder::Other(other),
    })
}

fn u32_be(cursor: &mut Cursor<'_>) -> Result<u32, Error> {
    cursor.uint_be(4).map(|value| u32::try_from(value).unwrap_or(u32::MAX)) // four bytes fit
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
    let mut chunks_coder = Coder::None;
    if flag & 0xff == 3 {
        cursor.skip(2 + 4)?;
        chunks_coder = coder(cursor)?;
    }
    Ok(Chunked { table, element_nbytes, axes, fill, coder: chunks_coder })
}
