//! Checks tables before anything is planned from them. Checksums prove nothing about who wrote the file.

use hyperslab_core::{Codec, Element, Fill, Link};

use super::tables::{StoredArray, StoredSegment, Tables};
use crate::error::Error;

/// Fails unless all numbers refer to something that exists, and segments lie within their arrays.
pub(super) fn tables(tables: &Tables, end: u64) -> Result<(), Error> {
    let groups_are_there = !tables.groups.is_empty()
        && tables.groups.iter().flat_map(|group| &group.links).all(|(_, link)| match link {
            Link::Group(number) => *number < tables.groups.len(),
            Link::Array(number) => *number < tables.arrays.len(),
            Link::Soft(_) | Link::External { .. } | Link::Unreadable(_) => true,
        });
    require(groups_are_there, "a link leads nowhere")?;
    let manifests_are_there = tables
        .manifests
        .iter()
        .all(|location| location.offset.checked_add(location.nbytes).is_some_and(|stop| stop <= end));
    require(manifests_are_there, "a manifest lies outside the file")?;
    tables.arrays.iter().try_for_each(|one| array(one, tables.manifests.len()))
}

fn require(is_so: bool, problem: &str) -> Result<(), Error> {
    if is_so { Ok(()) } else { Err(Error::invalid("references", 0, problem)) }
}

fn array(array: &StoredArray, manifest_count: usize) -> Result<(), Error> {
    let described = &array.described;
    element(&described.element)?;
    fill(&described.fill, &described.element)?;
    let Ok(segments) = &array.segments else { return Ok(()) };
    let shape = described.shape.as_deref().unwrap_or_default();
    require(described.shape.is_some() || segments.is_empty(), "an array without elements has chunks")?;
    require(
        described.dimensions.as_ref().is_none_or(|names| names.len() == shape.len())
            && described.max_shape.len() <= shape.len(),
        "the number of names or lengths differs from the number of axes",
    )?;
    for one in segments {
        segment(one, shape, manifest_count)?;
    }
    Ok(())
}

fn segment(segment: &StoredSegment, shape: &[u64], manifest_count: usize) -> Result<(), Error> {
    require(segment.manifest < manifest_count, "there is no such manifest")?;
    require(segment.axes.len() == segment.grid.shape().len(), "a segment and its grid differ in axes")?;
    let mut next = 0;
    for (axis, &source_length) in segment.axes.iter().zip(segment.grid.shape()) {
        let mut lies_well = axis.source.stop() <= source_length && axis.shown.len() == axis.source.len();
        if let Some(number) = axis.array_axis {
            lies_well &=
                number == next && shape.get(number).is_some_and(|&length| axis.shown.stop() <= length);
            next += 1;
        }
        require(lies_well, "a segment lies outside its array")?;
    }
    require(next == shape.len(), "a segment has fewer axes than its array")?;
    element(&segment.element)?;
    fill(&segment.fill, &segment.element)?;
    segment.codecs.iter().try_for_each(|one| codec(one, segment.axes.len()))
}

fn fill(fill: &Fill, element: &Element) -> Result<(), Error> {
    let is_one = match fill {
        Fill::Value(value) => value.len() as u64 == element.nbytes(),
        Fill::Zero | Fill::Undefined => true,
    };
    require(is_one, "a fill value is not an element")
}

fn codec(codec: &Codec, ndim: usize) -> Result<(), Error> {
    match codec {
        Codec::Transpose { order } => {
            let mut sorted = order.clone();
            sorted.sort_unstable();
            require(sorted.into_iter().eq(0..ndim), "a permutation does not fit the axes")
        }
        Codec::Delta { stored, decoded }
        | Codec::FixedScaleOffset { stored, decoded, .. }
        | Codec::Convert { stored, decoded } => element(stored).and_then(|()| element(decoded)),
        Codec::Quantize { decoded, .. } => element(decoded),
        _ => Ok(()),
    }
}

/// Checks that parts of elements lie within their elements.
fn element(one: &Element) -> Result<(), Error> {
    let nbits = one.nbytes().saturating_mul(8);
    match one {
        Element::Integer { bit_offset, precision, .. } => {
            let is_within = u64::from(*bit_offset) + u64::from(*precision) <= nbits && *precision > 0;
            require(is_within, "an integer has more bits than its bytes hold")
        }
        Element::Float { layout, .. } => {
            let sign = u64::from(layout.sign_bit);
            let exponent = u64::from(layout.exponent_start) + u64::from(layout.exponent_nbits);
            let mantissa = u64::from(layout.mantissa_start) + u64::from(layout.mantissa_nbits);
            require(
                sign < nbits && exponent <= nbits && mantissa <= nbits,
                "a float has more bits than its bytes hold",
            )
        }
        Element::Complex { part } => element(part),
        Element::Enumeration { base, members } => {
            let are_values = members.iter().all(|member| member.value.len() as u64 == base.nbytes());
            require(are_values, "a named value and its element differ in width")?;
            element(base)
        }
        Element::Compound { nbytes, fields } => fields.iter().try_for_each(|field| {
            let end = field.offset.checked_add(field.element.nbytes());
            require(end.is_some_and(|end| end <= *nbytes), "a field lies outside its element")?;
            element(&field.element)
        }),
        Element::Array { element: inner, .. } | Element::Vlen { element: inner, .. } => element(inner),
        _ => Ok(()),
    }
}
