//! The filter pipeline message as a chain of codecs (HDF5 File Format Specification 3.0, IV.A.2.l).

use hyperslab_core::{BitshuffleInner, Codec};

use super::text;
use crate::cursor::Cursor;
use crate::error::Error;

/// Names of registered filters that we cannot decode, for messages.
const REGISTERED: &[(u16, &str)] = &[
    (305, "lzo"),
    (32002, "mafisc"),
    (32003, "snappy"),
    (32005, "cbf"),
    (32006, "jpeg-xr"),
    (32009, "spdp"),
    (32010, "lpc-rice"),
    (32011, "ccsds-123"),
    (32012, "jpeg-ls"),
    (32013, "zfp"),
    (32014, "fpzip"),
    (32016, "b3d"),
    (32017, "sz"),
    (32018, "fcidecomp"),
    (32019, "jpeg"),
    (32020, "vbz"),
    (32021, "fapec"),
    (32022, "bitgroom"),
    (32023, "granular bitround"),
    (32024, "sz3"),
    (32025, "delta-rice"),
    (32027, "flac"),
    (32028, "sperr"),
];

/// A filter from the message, including parameters that only encoding needs, such as a compression level.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Filter {
    /// Its registered number.
    pub number: u16,
    /// Its name, if the message has one.
    pub name: String,
    /// Its client data.
    pub parameters: Vec<u32>,
}

/// The codec chain in encoding order. Parameters that a filter leaves out follow from the element's width.
pub(crate) fn codecs(filters: Vec<Filter>, element_nbytes: u64) -> Vec<Codec> {
    filters.into_iter().map(|filter| codec(filter, element_nbytes)).collect()
}

/// The filters of a message in encoding order.
pub(crate) fn read(cursor: &mut Cursor<'_>) -> Result<Vec<Filter>, Error> {
    let version = cursor.u8()?;
    let count = cursor.u8()?;
    match version {
        1 => cursor.skip(6)?,
        2 | 3 => {}
        _ => return Err(Error::unsupported(format!("filter pipeline message version {version}"))),
    }
    (0..count).map(|_| filter(cursor, version)).collect()
}

fn filter(cursor: &mut Cursor<'_>, version: u8) -> Result<Filter, Error> {
    let number = cursor.u16()?;
    let named = version == 1 || number >= 256;
    let name_length = if named { usize::from(cursor.u16()?) } else { 0 };
    cursor.skip(2)?; // flags: whether writing may go on without it
    let count = usize::from(cursor.u16()?);
    let padded = if version == 1 { name_length.next_multiple_of(8) } else { name_length };
    let name = text::until_zero(cursor.take(padded)?);
    let parameters = (0..count).map(|_| cursor.u32()).collect::<Result<_, _>>()?;
    cursor.skip(if version == 1 && count % 2 == 1 { 4 } else { 0 })?;
    if version == 3 {
        pass_extensions(cursor, number)?;
    }
    Ok(Filter { number, name, parameters })
}

/// What follows a filter's client data in version 3: blocks, each with a type, flags and a length, in ascending order
/// of types (`H5O__pline_decode` in HDF5's `H5Opline.c`). A block without flags may be skipped: for example, the
/// filter's settings in words, which the client data have as numbers. A block with a flag may hold more that decoding
/// needs.
///
/// No release has written this version yet, and an earlier draft had another layout. So what does not fit is
/// unsupported, not damaged.
fn pass_extensions(cursor: &mut Cursor<'_>, number: u16) -> Result<(), Error> {
    let unknown =
        || Error::unsupported("filter pipeline message version 3 without blocks in ascending order");
    let mut type_before = 0;
    for _ in 0..cursor.u16()? {
        let block = (cursor.u16(), cursor.u8(), cursor.u8(), cursor.u32());
        let (Ok(block_type), Ok(flags), Ok(0), Ok(nbytes)) = block else { return Err(unknown()) };
        let nbytes = usize::try_from(nbytes).unwrap_or(usize::MAX);
        if block_type <= type_before || nbytes > cursor.remaining() {
            return Err(unknown());
        }
        if flags != 0 {
            let block = format!("block {block_type} with flags {flags:#04x} of filter {number}");
            return Err(Error::unsupported(format!("{block} in a filter pipeline message")));
        }
        cursor.skip(nbytes)?;
        type_before = block_type;
    }
    Ok(())
}

fn codec(filter: Filter, element_nbytes: u64) -> Codec {
    let parameter = |position: usize| filter.parameters.get(position).copied();
    match filter.number {
        1 => Codec::Zlib,
        2 => Codec::Shuffle { element_nbytes: parameter(0).map_or(element_nbytes, u64::from) },
        3 => Codec::Fletcher32,
        4 => szip(&filter).unwrap_or_else(|| unknown(filter)),
        5 => Codec::Nbit { parameters: filter.parameters },
        6 => Codec::ScaleOffset { parameters: filter.parameters },
        307 => Codec::Bzip2,
        32000 => Codec::Lzf,
        32001 => Codec::Blosc,
        32004 => Codec::Lz4Hdf5,
        32008 => bitshuffle(&filter, element_nbytes).unwrap_or_else(|| unknown(filter)),
        32015 => Codec::Zstd,
        32026 => Codec::Blosc2,
        _ => unknown(filter),
    }
}

/// Client data as the library completes them: mask, pixels per block, bits per pixel, pixels per scan line.
fn szip(filter: &Filter) -> Option<Codec> {
    let [options, pixels_per_block, pixel_nbits, pixels_per_scanline, ..] = *filter.parameters else {
        return None;
    };
    Some(Codec::Szip { options, pixel_nbits, pixels_per_block, pixels_per_scanline })
}

/// Client data: two for the version, then the width of an element, elements per block, compression of blocks.
fn bitshuffle(filter: &Filter, element_nbytes: u64) -> Option<Codec> {
    let parameter = |position: usize| filter.parameters.get(position).copied();
    Some(Codec::Bitshuffle {
        element_nbytes: parameter(2).map_or(element_nbytes, u64::from),
        block_elements: u64::from(parameter(3).unwrap_or(0)),
        inner: match parameter(4).unwrap_or(0) {
            0 => BitshuffleInner::None,
            2 => BitshuffleInner::Lz4,
            3 => BitshuffleInner::Zstd,
            _ => return None,
        },
    })
}

fn unknown(filter: Filter) -> Codec {
    let registered = REGISTERED.iter().find(|(number, _)| *number == filter.number);
    let name = registered.map_or(filter.name, |(_, name)| (*name).to_string());
    let name = if name.trim().is_empty() { "without a name".to_owned() } else { name };
    Codec::Unknown { number: Some(u32::from(filter.number)), name }
}
