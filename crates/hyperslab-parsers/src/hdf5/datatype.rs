//! The datatype message, all classes and versions 1 to 5 (HDF5 File Format Specification 3.0, IV.A.2.d).

use hyperslab_core::{ByteOrder, Charset, Element, Field, FloatLayout, Member, StringPadding};

use super::sizes::Sizes;
use super::text;
use crate::cursor::Cursor;
use crate::error::Error;

/// The deepest nesting of types.
const MAX_DEPTH: u64 = 64;
/// The tag of a time element. Only this tag tells that it is a time.
const TIME_TAG: &str = "HDF5 time";
/// The tag of references in HDF5 1.12's encoding. They are returned as stored.
const REVISED_REFERENCE_TAG: &str = "HDF5 revised reference";

/// Bytes of a pointer to the global heap besides the address: a length, and a number in the collection.
pub(crate) const POINTER_EXTRA_NBYTES: usize = 8;

/// The element that the body of a message describes.
pub(crate) fn element(cursor: &mut Cursor<'_>, sizes: Sizes) -> Result<Element, Error> {
    nested(cursor, sizes, MAX_DEPTH)
}

/// The eight bytes before a class's properties.
#[derive(Clone, Copy)]
struct Head {
    version: u8,
    class: u8,
    flags: u32,
    nbytes: u64,
}

impl Head {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let word = cursor.u32()?;
        let (version, class) = ((word >> 4 & 0x0f) as u8, (word & 0x0f) as u8);
        if !(1..=5).contains(&version) {
            return Err(Error::unsupported(format!("datatype message version {version}")));
        }
        let nbytes = u64::from(cursor.u32()?);
        if nbytes == 0 {
            return Err(cursor.invalid("an element of 0 bytes"));
        }
        Ok(Self { version, class, flags: word >> 8, nbytes })
    }

    fn order(&self) -> ByteOrder {
        if self.flags & 1 == 0 { ByteOrder::Little } else { ByteOrder::Big }
    }

    /// Bits of `flags`.
    fn bits(&self, start: u32, mask: u32) -> u32 {
        self.flags >> start & mask
    }

    fn member_count(&self) -> u32 {
        self.flags & 0xffff
    }
}

fn nested(cursor: &mut Cursor<'_>, sizes: Sizes, depth: u64) -> Result<Element, Error> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(Error::TooMany { what: "datatypes within datatypes", limit: MAX_DEPTH });
    };
    let head = Head::read(cursor)?;
    match head.class {
        0 => integer(cursor, head),
        1 => float(cursor, head),
        2 => time(cursor, head),
        3 => string(cursor, head),
        4 => bitfield(cursor, head),
        5 => opaque(cursor, head),
        6 => compound(cursor, head, sizes, depth),
        7 => reference(head, sizes),
        8 => enumeration(cursor, head, sizes, depth),
        9 => vlen(cursor, head, sizes, depth),
        10 => array(cursor, head, sizes, depth),
        11 => complex(cursor, head, sizes, depth),
        class => Err(Error::unsupported(format!("datatype class {class}"))),
    }
}

/// The first significant bit and the number of significant bits, within the element's width.
fn significant_bits(cursor: &mut Cursor<'_>, head: Head) -> Result<(u16, u16), Error> {
    let (bit_offset, precision) = (cursor.u16()?, cursor.u16()?);
    let stop = u64::from(bit_offset) + u64::from(precision);
    if precision == 0 || stop > head.nbytes.saturating_mul(8) {
        let problem = format!("bits {bit_offset} to {stop} of an element of {} bytes", head.nbytes);
        return Err(cursor.invalid(problem));
    }
    Ok((bit_offset, precision))
}

fn integer(cursor: &mut Cursor<'_>, head: Head) -> Result<Element, Error> {
    let (bit_offset, precision) = significant_bits(cursor, head)?;
    let signed = head.flags & 0x08 != 0;
    Ok(Element::Integer { nbytes: head.nbytes, signed, order: head.order(), bit_offset, precision })
}

fn bitfield(cursor: &mut Cursor<'_>, head: Head) -> Result<Element, Error> {
    significant_bits(cursor, head)?;
    Ok(Element::Bitfield { nbytes: head.nbytes, order: head.order() })
}

fn float(cursor: &mut Cursor<'_>, head: Head) -> Result<Element, Error> {
    let order = match (head.flags & 1, head.bits(6, 1)) {
        (1, 1) => ByteOrder::Vax,
        _ => head.order(),
    };
    let normalization = head.bits(4, 3);
    let (bit_offset, precision) = significant_bits(cursor, head)?;
    let layout = FloatLayout {
        bit_offset,
        precision,
        sign_bit: u8::try_from(head.bits(8, 0xff)).unwrap_or(u8::MAX),
        exponent_start: cursor.u8()?,
        exponent_nbits: cursor.u8()?,
        mantissa_start: cursor.u8()?,
        mantissa_nbits: cursor.u8()?,
        exponent_bias: cursor.u32()?,
        implied_one: normalization == 2,
    };
    check_float(cursor, layout, normalization)?;
    Ok(Element::Float { nbytes: head.nbytes, order, layout })
}

/// Checks that the parts of a float lie within its significant bits.
fn check_float(cursor: &Cursor<'_>, layout: FloatLayout, normalization: u32) -> Result<(), Error> {
    let stop = u32::from(layout.bit_offset) + u32::from(layout.precision);
    let within = |start: u8, nbits: u8| nbits > 0 && u32::from(start) + u32::from(nbits) <= stop;
    let sound = within(layout.exponent_start, layout.exponent_nbits)
        && within(layout.mantissa_start, layout.mantissa_nbits)
        && within(layout.sign_bit, 1)
        && normalization < 3;
    if sound { Ok(()) } else { Err(cursor.invalid("parts of a float lie outside it")) }
}

/// Times only define their precision. No library reads them as anything but bytes.
fn time(cursor: &mut Cursor<'_>, head: Head) -> Result<Element, Error> {
    cursor.skip(2)?;
    Ok(Element::Opaque { nbytes: head.nbytes, tag: TIME_TAG.into() })
}

fn padding(cursor: &Cursor<'_>, value: u32) -> Result<StringPadding, Error> {
    match value {
        0 => Ok(StringPadding::NullTerminated),
        1 => Ok(StringPadding::NullPadded),
        2 => Ok(StringPadding::SpacePadded),
        _ => Err(cursor.invalid(format!("string padding {value}"))),
    }
}

fn charset(cursor: &Cursor<'_>, value: u32) -> Result<Charset, Error> {
    match value {
        0 => Ok(Charset::Ascii),
        1 => Ok(Charset::Utf8),
        _ => Err(cursor.invalid(format!("character set {value}"))),
    }
}

fn string(cursor: &Cursor<'_>, head: Head) -> Result<Element, Error> {
    Ok(Element::FixedString {
        nbytes: head.nbytes,
        padding: padding(cursor, head.bits(0, 15))?,
        charset: charset(cursor, head.bits(4, 15))?,
    })
}

fn opaque(cursor: &mut Cursor<'_>, head: Head) -> Result<Element, Error> {
    let tag = cursor.take(head.bits(0, 0xff) as usize)?;
    Ok(Element::Opaque { nbytes: head.nbytes, tag: text::until_zero(tag) })
}

fn reference(head: Head, sizes: Sizes) -> Result<Element, Error> {
    match head.bits(0, 15) {
        0 if head.nbytes == sizes.offset as u64 => Ok(Element::ObjectReference { nbytes: head.nbytes }),
        1 if head.nbytes == (sizes.offset + 4) as u64 => Ok(Element::RegionReference { nbytes: head.nbytes }),
        // HDF5 1.12's own encoding of references, one for all kinds.
        2..=4 => Ok(Element::Opaque { nbytes: head.nbytes, tag: REVISED_REFERENCE_TAG.into() }),
        kind => Err(Error::unsupported(format!("references of type {kind} in {} bytes", head.nbytes))),
    }
}

/// A name that ends with a zero byte. Before version 3 it is padded to eight bytes.
fn name(cursor: &mut Cursor<'_>, head: Head) -> Result<String, Error> {
    let start = cursor.position();
    let name = text::zero_terminated(cursor)?;
    let length = cursor.position() - start;
    cursor.skip(if head.version < 3 { length.next_multiple_of(8) - length } else { 0 })?;
    Ok(name)
}

fn compound(cursor: &mut Cursor<'_>, head: Head, sizes: Sizes, depth: u64) -> Result<Element, Error> {
    let mut fields: Vec<Field> = Vec::new();
    if head.member_count() == 0 {
        return Err(cursor.invalid("a compound without fields"));
    }
    for _ in 0..head.member_count() {
        let field = field(cursor, head, sizes, depth)?;
        let stop = field.offset.checked_add(field.element.nbytes());
        if stop.is_none_or(|stop| stop > head.nbytes) {
            return Err(cursor.invalid(format!("field {:?} lies outside its compound", field.name)));
        }
        fields.push(field);
    }
    check_fields(cursor, &fields)?;
    Ok(Element::Compound { nbytes: head.nbytes, fields })
}

/// Checks that no two fields share bytes or a name.
fn check_fields(cursor: &Cursor<'_>, fields: &[Field]) -> Result<(), Error> {
    let mut positions: Vec<(u64, u64, &str)> =
        fields.iter().map(|field| (field.offset, field.element.nbytes(), &*field.name)).collect();
    positions.sort_unstable();
    for (one, next) in positions.iter().zip(positions.iter().skip(1)) {
        if one.0.saturating_add(one.1) > next.0 {
            return Err(cursor.invalid(format!("fields {:?} and {:?} overlap", one.2, next.2)));
        }
    }
    positions.sort_unstable_by_key(|position| position.2);
    if let Some((one, _)) = positions.iter().zip(positions.iter().skip(1)).find(|(one, next)| one.2 == next.2)
    {
        return Err(cursor.invalid(format!("two fields {:?}", one.2)));
    }
    Ok(())
}

fn field(cursor: &mut Cursor<'_>, head: Head, sizes: Sizes, depth: u64) -> Result<Field, Error> {
    let name = name(cursor, head)?;
    let offset = cursor.uint(if head.version < 3 { 4 } else { width_of(head.nbytes) })?;
    let shape = if head.version == 1 { field_shape(cursor)? } else { Vec::new() };
    let mut element = nested(cursor, sizes, depth)?;
    if !shape.is_empty() {
        element = Element::Array { shape, element: Box::new(element) };
    }
    Ok(Field { name, offset, element })
}

/// How many bytes a number takes: the width of field offsets in version 3 compounds.
fn width_of(number: u64) -> usize {
    (64 - number.leading_zeros()).div_ceil(8).max(1) as usize
}

/// Version 1 compounds have array fields of their own: up to four axes, and always room for four.
fn field_shape(cursor: &mut Cursor<'_>) -> Result<Vec<u64>, Error> {
    let ndim = usize::from(cursor.u8()?);
    if ndim > 4 {
        return Err(cursor.invalid(format!("a field of {ndim} axes")));
    }
    cursor.skip(11)?; // reserved, permutation, reserved
    let mut shape = (0..4).map(|_| cursor.u32().map(u64::from)).collect::<Result<Vec<_>, _>>()?;
    shape.truncate(ndim);
    Ok(shape)
}

fn enumeration(cursor: &mut Cursor<'_>, head: Head, sizes: Sizes, depth: u64) -> Result<Element, Error> {
    let base = nested(cursor, sizes, depth)?;
    if base.nbytes() != head.nbytes {
        return Err(cursor.invalid("an enumeration wider or narrower than its base"));
    }
    let mut names = Vec::new();
    for _ in 0..head.member_count() {
        names.push(name(cursor, head)?);
    }
    let width = usize::try_from(head.nbytes).unwrap_or(usize::MAX);
    let mut members = Vec::new();
    for name in names {
        members.push(Member { name, value: cursor.take(width)?.to_vec() });
    }
    Ok(Element::Enumeration { base: Box::new(base), members })
}

fn vlen(cursor: &mut Cursor<'_>, head: Head, sizes: Sizes, depth: u64) -> Result<Element, Error> {
    let expected = sizes.offset + POINTER_EXTRA_NBYTES;
    if head.nbytes != expected as u64 {
        return Err(cursor.invalid(format!("a heap pointer of {} bytes, not {expected}", head.nbytes)));
    }
    let element = nested(cursor, sizes, depth)?;
    match head.bits(0, 15) {
        0 => Ok(Element::Vlen { nbytes: head.nbytes, element: Box::new(element) }),
        1 => Ok(Element::VlenString {
            nbytes: head.nbytes,
            padding: padding(cursor, head.bits(4, 15))?,
            charset: charset(cursor, head.bits(8, 15))?,
        }),
        kind => Err(cursor.invalid(format!("variable-length type {kind}"))),
    }
}

fn array(cursor: &mut Cursor<'_>, head: Head, sizes: Sizes, depth: u64) -> Result<Element, Error> {
    let ndim = usize::from(cursor.u8()?);
    let old = head.version < 3;
    cursor.skip(if old { 3 } else { 0 })?;
    let shape = (0..ndim).map(|_| cursor.u32().map(u64::from)).collect::<Result<Vec<_>, _>>()?;
    cursor.skip(if old { 4 * ndim } else { 0 })?; // a permutation that is never used
    let element = Box::new(nested(cursor, sizes, depth)?);
    let array = Element::Array { shape, element };
    if array.nbytes() != head.nbytes {
        let problem = format!("an array of {} bytes in an element of {}", array.nbytes(), head.nbytes);
        return Err(cursor.invalid(problem));
    }
    Ok(array)
}

fn complex(cursor: &mut Cursor<'_>, head: Head, sizes: Sizes, depth: u64) -> Result<Element, Error> {
    let part = nested(cursor, sizes, depth)?;
    let complex = Element::Complex { part: Box::new(part) };
    if complex.nbytes() != head.nbytes {
        return Err(cursor.invalid("a complex number that does not have two equal parts"));
    }
    Ok(complex)
}
