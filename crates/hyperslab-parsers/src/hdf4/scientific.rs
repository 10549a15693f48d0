//! Arrays of the older DFSD interface: groups of tags, without names of their own (section 7).

use std::collections::HashSet;

use hyperslab_core::{Array, Attribute, Element, Fill, Notes, Role, VirtualMappings};

use super::annotations::Annotations;
use super::descriptors::{small, tag};
use super::file::{File, Named, Source};
use super::pieces::{self, Located, locate};
use super::{layout, number_type};
use crate::cursor::Cursor;
use crate::error::Error;
use crate::rounds::gather;
use crate::segment::{gridded, one_chunk, stored};
use hyperslab_core::{ByteRange, Manifest, Segment, Unreadable};

/// All groups, each array once. Old groups that are linked to a new one describe the same array.
pub(super) fn sources(file: &File<'_>) -> Result<Vec<Source>, Error> {
    let links = gather(file.descriptors.with_tag(tag::SAME_GROUP), |descriptor| {
        let (_, bytes) = pieces::element(file, "an HDF4 link", tag::SAME_GROUP, descriptor.reference)?;
        let mut cursor = Cursor::new("an HDF4 link", 0, &bytes);
        cursor.skip(6)?; // the new group, and the old one's tag
        Ok(small(cursor.uint_be(2)?))
    })?;
    let known: HashSet<u16> = links.into_iter().collect();
    let new = file.descriptors.with_tag(tag::NUMERIC_GROUP);
    let old =
        file.descriptors.with_tag(tag::OLD_GROUP).filter(|descriptor| !known.contains(&descriptor.reference));
    Ok(new.chain(old).map(|descriptor| Source::Group(descriptor.tag, descriptor.reference)).collect())
}

/// Rank, lengths, and the number types of the data and of each scale.
struct Dimensions {
    shape: Vec<u64>,
    number_types: Vec<u16>,
}

/// The array of a group, then the scales of its dimensions that have values. Dimensions are numbered from 0 here;
/// [`number`] renumbers them for the whole file.
pub(super) fn arrays(file: &File<'_>, tag: u16, reference: u16) -> Result<Vec<Named>, Error> {
    let (_, bytes) = pieces::element(file, "an HDF4 data group", tag, reference)?;
    let mut cursor = Cursor::new("an HDF4 data group", 0, &bytes);
    let mut members = Vec::new();
    while cursor.remaining() >= 4 {
        members.push((small(cursor.uint_be(2)?), small(cursor.uint_be(2)?)));
    }
    let member = |wanted: u16| members.iter().rev().find(|(tag, _)| *tag == wanted).map(|&(_, it)| it);
    let described =
        member(tag::DIMENSIONS).ok_or_else(|| Error::invalid("an HDF4 data group", 0, "no dimensions"));
    let dimensions = dimensions(file, described?)?;
    let element = element(file, dimensions.number_types.first())?;
    let annotations = Annotations::of(file, &element, &member)?;
    let fill = annotations.fill.clone().unwrap_or_else(|| number_type::default_fill(&element));
    let located =
        member(tag::DATA).map_or(Ok(Located::Nothing), |reference| locate(file, tag::DATA, reference))?;
    let segments = layout::segments(file, &located, &dimensions.shape, &element, &Fill::Value(fill.clone()))?;
    let names = (0..dimensions.shape.len()).map(fake_name).collect();
    let is_chunked = matches!(located, Located::Chunked(_));
    let array = made(dimensions.shape.clone(), element, fill, segments, names, annotations.of_data());
    let array = Array { is_chunked, ..array };
    let mut arrays = vec![(format!("Data-Set-{reference}"), Ok(array))];
    arrays.extend(scales(file, &dimensions, &annotations, member(tag::SCALES))?);
    Ok(arrays)
}

fn fake_name(number: usize) -> String {
    format!("fakeDim{number}")
}

/// Numbers the dimensions of a group's arrays after those of earlier groups, as the SD interface names them.
pub(super) fn number(arrays: &mut [Named], count: &mut usize) {
    let first = *count;
    for (name, array) in arrays {
        let Ok(array) = array else { continue };
        let mut ndim = 0;
        for dimension in array.dimensions.iter_mut().flatten() {
            let axis: usize = dimension.trim_start_matches("fakeDim").parse().unwrap_or_default();
            let numbered = fake_name(first.saturating_add(axis));
            if name == dimension {
                name.clone_from(&numbered);
            }
            *dimension = numbered;
            ndim = axis + 1;
        }
        *count = (*count).max(first.saturating_add(ndim));
    }
}

fn dimensions(file: &File<'_>, reference: u16) -> Result<Dimensions, Error> {
    const WHAT: &str = "the dimensions of an HDF4 array";
    let (offset, bytes) = pieces::element(file, WHAT, tag::DIMENSIONS, reference)?;
    let mut cursor = Cursor::new(WHAT, offset, &bytes);
    let ndim = cursor.uint_be(2)?;
    let shape: Result<Vec<u64>, Error> = (0..ndim).map(|_| cursor.uint_be(4)).collect();
    let shape = shape?;
    let mut number_types = Vec::new();
    while cursor.remaining() >= 4 {
        cursor.skip(2)?; // the tag: always a number type
        number_types.push(small(cursor.uint_be(2)?));
    }
    Ok(Dimensions { shape, number_types })
}

fn element(file: &File<'_>, reference: Option<&u16>) -> Result<Element, Error> {
    const WHAT: &str = "an HDF4 number type";
    let reference = reference.ok_or_else(|| Error::invalid(WHAT, 0, "an array without one"))?;
    let (_, bytes) = pieces::element(file, WHAT, tag::NUMBER_TYPE, *reference)?;
    number_type::of_object(&bytes)
}

/// One byte for each axis tells whether it has a scale; then the values of the scales follow.
fn scales(
    file: &File<'_>,
    dimensions: &Dimensions,
    annotations: &Annotations,
    reference: Option<u16>,
) -> Result<Vec<Named>, Error> {
    let Some(reference) = reference else { return Ok(Vec::new()) };
    let Located::Plain(pieces) = locate(file, tag::SCALES, reference)? else { return Ok(Vec::new()) };
    let Some(range) = pieces.range() else { return Ok(Vec::new()) };
    let ndim = dimensions.shape.len() as u64;
    let flags = file.pages.bytes("the scales of an HDF4 array", range.offset, ndim.min(range.length))?;
    let mut offset = range.offset.saturating_add(ndim);
    let mut arrays = Vec::new();
    for (axis, (&length, &flag)) in dimensions.shape.iter().zip(flags.iter()).enumerate() {
        if flag == 0 {
            continue;
        }
        let element = element(file, dimensions.number_types.get(axis + 1))?;
        let nbytes = element.nbytes().saturating_mul(length);
        let fill = number_type::default_fill(&element);
        let segments =
            scale(ByteRange { offset, length: nbytes }, length, &element, &Fill::Value(fill.clone()));
        let attributes = annotations.of_axis(axis);
        let array = made(vec![length], element, fill, segments, vec![fake_name(axis)], attributes);
        arrays.push((fake_name(axis), Ok(array)));
        offset = offset.saturating_add(nbytes);
    }
    Ok(arrays)
}

fn scale(range: ByteRange, length: u64, element: &Element, fill: &Fill) -> Result<Vec<Segment>, Unreadable> {
    if length == 0 {
        return Ok(Vec::new());
    }
    let range = ByteRange::new(range.offset, range.length)?;
    let manifest = Manifest::of_chunks(vec![stored(0, 0, range)]);
    Ok(vec![gridded(&[length], one_chunk(&[length]), element, fill, Vec::new(), manifest)?])
}

fn made(
    shape: Vec<u64>,
    element: Element,
    fill: Vec<u8>,
    segments: Result<Vec<Segment>, Unreadable>,
    names: Vec<String>,
    attributes: Vec<Attribute>,
) -> Array {
    let max_shape = shape.iter().map(|&length| Some(length)).collect();
    Array {
        shape: Some(shape),
        max_shape,
        element,
        fill: Fill::Value(fill),
        segments,
        is_chunked: false,
        notes: Notes::default(),
        role: Role::default(),
        virtual_mappings: VirtualMappings::NONE,
        dimensions: Some(names),
        attributes,
    }
}
