//! Images: arrays of one number type, stored in one piece.

use hyperslab_core::{
    Array, ByteOrder, ByteRange, Element, Fill, Manifest, Notes, Role, Segment, Unreadable, VirtualMappings,
};

use super::hdu::Hdu;
use crate::segment::{array_nbytes, gridded, one_chunk, stored, too_large};

/// The image of a primary or IMAGE HDU.
pub(super) fn plain(hdu: &Hdu) -> Result<Array, Unreadable> {
    let element = number_element(hdu.cards.integer("BITPIX"))?;
    if hdu.cards.naxis(0).is_none() {
        return Ok(Array { shape: None, ..array(hdu, Vec::new(), element, Ok(Vec::new()), &[]) });
    }
    let shape = hdu.cards.shape();
    let segments = segments(hdu, &shape, &element);
    Ok(array(hdu, shape, element, segments, &[]))
}

/// All of an HDU's data as one chunk.
pub(super) fn segments(hdu: &Hdu, shape: &[u64], element: &Element) -> Result<Vec<Segment>, Unreadable> {
    let nbytes = array_nbytes(shape, element).ok_or_else(too_large)?;
    if nbytes == 0 {
        return Ok(Vec::new());
    }
    let range = ByteRange::new(hdu.data_offset, nbytes)?;
    let manifest = Manifest::of_chunks(vec![stored(0, 0, range)]);
    Ok(vec![gridded(shape, one_chunk(shape), element, &Fill::Zero, Vec::new(), manifest)?])
}

/// An array with the cards of its HDU as attributes, except those that are one of `prefixes` and a number.
pub(super) fn array(
    hdu: &Hdu,
    shape: Vec<u64>,
    element: Element,
    segments: Result<Vec<Segment>, Unreadable>,
    prefixes: &[&str],
) -> Array {
    Array {
        max_shape: shape.iter().map(|&length| Some(length)).collect(),
        shape: Some(shape),
        element,
        fill: Fill::Zero,
        is_chunked: false,
        notes: Notes::default(),
        role: Role::default(),
        virtual_mappings: VirtualMappings::NONE,
        segments,
        dimensions: None,
        attributes: hdu.cards.attributes(prefixes),
    }
}

/// Section 4.4.1.1: 8 bits are unsigned, more bits are signed, negative values mean floats.
pub(super) fn number_element(bitpix: Option<i64>) -> Result<Element, Unreadable> {
    let element = match bitpix {
        Some(8) => Some(Element::integer(1, false, ByteOrder::Big)),
        Some(16) => Some(Element::integer(2, true, ByteOrder::Big)),
        Some(32) => Some(Element::integer(4, true, ByteOrder::Big)),
        Some(64) => Some(Element::integer(8, true, ByteOrder::Big)),
        Some(-32) => Element::float(4, ByteOrder::Big),
        Some(-64) => Element::float(8, ByteOrder::Big),
        _ => None,
    };
    element.ok_or_else(|| {
        Unreadable::damaged(format!("BITPIX {bitpix:?} is not one of the standard's six values"))
    })
}
