//! The filter pipeline message as a chain of codecs (HDF5 File Format Specification 3.0, IV.A.2.l).

use hyperslab_core::{Checksum, Codec, KnownCodec, known};

use super::text;
use crate::cursor::Cursor;
use crate::error::Error;

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
    let number = u32::from(filter.number);
    let Some(codec) = KnownCodec::of_hdf5(number) else {
        let is_named = !filter.name.trim().is_empty();
        let name = if is_named { filter.name } else { "without a name".to_owned() };
        return Codec::Unknown { number: Some(number), name };
    };
    let unknown = || Codec::Unknown { number: Some(number), name: codec.name.to_owned() };
    match codec.name {
        "shuffle" => Codec::Shuffle { element_nbytes: width(&filter, 0, element_nbytes) },
        "fletcher32" => Codec::checksum(Checksum::Fletcher32),
        "szip" => szip(&filter).unwrap_or_else(unknown),
        "bitshuffle" => bitshuffle(&filter, element_nbytes).unwrap_or_else(unknown),
        _ if codec.has_parameters => Codec::with(codec, filter.parameters),
        _ if codec.is_decoded() => Codec::known(codec),
        _ => unknown(),
    }
}

/// The parameter that has the width of an element, which may be missing.
fn width(filter: &Filter, position: usize, element_nbytes: u64) -> u64 {
    filter.parameters.get(position).map_or(element_nbytes, |&width| u64::from(width))
}

/// Client data as the library completes them: mask, pixels per block, bits per pixel, pixels per scan line.
fn szip(filter: &Filter) -> Option<Codec> {
    let [options, pixels_per_block, pixel_nbits, pixels_per_scanline, ..] = *filter.parameters else {
        return None;
    };
    Some(Codec::with(&known::szip, [options, pixel_nbits, pixels_per_block, pixels_per_scanline]))
}

/// Client data: two for the version, then the width of an element, elements per block, compression of blocks.
fn bitshuffle(filter: &Filter, element_nbytes: u64) -> Option<Codec> {
    let parameter = |position: usize| filter.parameters.get(position).copied();
    let width = u32::try_from(width(filter, 2, element_nbytes)).ok()?;
    let inner = match parameter(4).unwrap_or(0) {
        0 => 0,
        2 => 1,
        3 => 2,
        _ => return None,
    };
    Some(Codec::with(&known::bitshuffle, [width, parameter(3).unwrap_or(0), inner]))
}
