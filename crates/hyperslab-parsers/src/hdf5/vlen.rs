//! Where in an element its pointers to variable-length values are.

use hyperslab_core::Element;

use super::global_heap::Pointer;
use super::sizes::Sizes;
use crate::error::Error;

/// Most pointers in one element.
const MAX_POINTERS: usize = 1 << 20;

/// All pointers of some elements, in order; none for elements of fixed length.
pub(crate) fn pointers(element: &Element, bytes: &[u8], sizes: Sizes) -> Result<Vec<Pointer>, Error> {
    let mut places = Vec::new();
    collect(element, 0, &mut places)?;
    let width = usize::try_from(element.nbytes()).unwrap_or(usize::MAX);
    if places.is_empty() || width == 0 {
        return Ok(Vec::new());
    }
    let mut found = Vec::new();
    for element in bytes.chunks_exact(width) {
        for &(start, length) in &places {
            let raw = start.checked_add(length).and_then(|stop| element.get(start..stop));
            found.extend(Pointer::read_all(raw.unwrap_or_default(), sizes)?);
        }
    }
    Ok(found)
}

/// Starts and lengths of the pointers in one element that starts at `start`.
fn collect(element: &Element, start: u64, places: &mut Vec<(usize, usize)>) -> Result<(), Error> {
    match element {
        Element::VlenString { nbytes, .. } => push(start, *nbytes, places),
        Element::Vlen { nbytes, element } if !has_pointers(element) => push(start, *nbytes, places),
        Element::Vlen { .. } => {
            Err(Error::unsupported("variable-length values within variable-length values"))
        }
        Element::Compound { fields, .. } => {
            let pointing = fields.iter().filter(|field| has_pointers(&field.element));
            let mut each = pointing.map(|field| (start.saturating_add(field.offset), &field.element));
            each.try_for_each(|(start, element)| collect(element, start, places))
        }
        Element::Array { shape, element } if has_pointers(element) => {
            let count = shape.iter().fold(1_u64, |count, &length| count.saturating_mul(length));
            (0..count).try_for_each(|number| {
                let within = number.saturating_mul(element.nbytes());
                collect(element, start.saturating_add(within), places)
            })
        }
        _ => Ok(()),
    }
}

fn push(start: u64, nbytes: u64, places: &mut Vec<(usize, usize)>) -> Result<(), Error> {
    if places.len() >= MAX_POINTERS {
        return Err(Error::TooMany { what: "pointers in one element", limit: MAX_POINTERS as u64 });
    }
    let number = |value: u64| usize::try_from(value).unwrap_or(usize::MAX);
    places.push((number(start), number(nbytes)));
    Ok(())
}

/// Whether an element holds pointers to variable-length values.
pub(crate) fn has_pointers(element: &Element) -> bool {
    match element {
        Element::VlenString { .. } | Element::Vlen { .. } => true,
        Element::Compound { fields, .. } => fields.iter().any(|field| has_pointers(&field.element)),
        Element::Array { element, .. } => has_pointers(element),
        _ => false,
    }
}
