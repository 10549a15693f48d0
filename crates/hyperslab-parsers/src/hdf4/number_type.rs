//! Number types: the element for a type number and a class (specification, section 6.2 and `hntdefs.h`).

use hyperslab_core::{ByteOrder, Charset, Element, StringPadding};

use crate::error::Error;

/// Bits of a type number that tell how the writer's machine stored it.
const NATIVE: u16 = 0x1000;
const LITTLE: u16 = 0x4000;

/// The element for the four bytes of a number type object: version, type, bits, class.
pub(super) fn of_object(bytes: &[u8]) -> Result<Element, Error> {
    let &[_, number, _, class] = bytes else {
        return Err(Error::invalid("an HDF4 number type", 0, "it does not have four bytes"));
    };
    let order = match class {
        0 | 1 => Some(ByteOrder::Big),
        4 => Some(ByteOrder::Little),
        _ => None,
    };
    let element = element(u16::from(number), order.unwrap_or(ByteOrder::Big))?;
    if order.is_none() && element.nbytes() > 1 {
        return Err(Error::unsupported(format!("the number format of machine class {class}")));
    }
    Ok(element)
}

/// The element of a Vdata field, whose flags are in the type number itself.
pub(super) fn of_field(number: u16) -> Result<Element, Error> {
    let order = if number & LITTLE == 0 { ByteOrder::Big } else { ByteOrder::Little };
    let element = element(number & 0x0fff, order)?;
    if number & NATIVE != 0 && element.nbytes() > 1 {
        return Err(Error::unsupported("the number format of an unnamed machine"));
    }
    Ok(element)
}

fn element(number: u16, order: ByteOrder) -> Result<Element, Error> {
    let element = match number {
        4 => Some(text(1)),
        5 => Element::float(4, order),
        6 => Element::float(8, order),
        20 | 22 | 24 | 26 => Some(Element::integer(1 << ((number - 20) / 2), true, order)),
        3 => Some(Element::integer(1, false, order)),
        21 | 23 | 25 | 27 => Some(Element::integer(1 << ((number - 21) / 2), false, order)),
        _ => None,
    };
    element.ok_or_else(|| Error::unsupported(format!("number type {number}")))
}

/// Characters.
pub(super) fn text(nbytes: u64) -> Element {
    Element::FixedString { nbytes, padding: StringPadding::NullPadded, charset: Charset::Ascii }
}

/// The SD interface's value for elements that were never written, if there is no `_FillValue`.
pub(super) fn default_fill(element: &Element) -> Vec<u8> {
    let (order, mut bytes) = match element {
        Element::Integer { nbytes: 1, order, .. } => (*order, (-127_i8).to_le_bytes().to_vec()),
        Element::Integer { nbytes: 2, order, .. } => (*order, (-32767_i16).to_le_bytes().to_vec()),
        Element::Integer { nbytes: 4, order, .. } => (*order, (-2_147_483_647_i32).to_le_bytes().to_vec()),
        Element::Float { nbytes: 4, order, .. } => (*order, 9.969_21e36_f32.to_le_bytes().to_vec()),
        Element::Float { order, .. } => (*order, 9.969_209_968_386_869e36_f64.to_le_bytes().to_vec()),
        _ => (ByteOrder::Little, vec![0; usize::try_from(element.nbytes()).unwrap_or_default()]),
    };
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}
