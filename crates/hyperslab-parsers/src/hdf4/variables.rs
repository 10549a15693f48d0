//! Arrays of the SD interface: one Vgroup for each variable, with its dimensions, attributes and data.

use hyperslab_core::{Array, Attribute, Element, Fill, Notes, Role, Unreadable, VirtualMappings};

use super::descriptors::tag;
use super::file::{File, Named};
use super::groups::{self, Vgroup};
use super::pieces::{self, Located, locate};
use super::{layout, number_type, vdata};
use crate::error::Error;
use crate::rounds::gather;
use crate::segment::array_nbytes;

/// The length of a dimension; `None` if it is unlimited.
struct Dimension {
    name: String,
    length: Option<u64>,
}

/// The array of a Vgroup of class `Var0.0`, and its name.
pub(super) fn named(file: &File<'_>, reference: u16) -> Result<Named, Error> {
    let vgroup = groups::read(file, reference)?;
    match array(file, &vgroup) {
        Err(error) if error.is_not_held() => Err(error),
        array => Ok((vgroup.name, array.map_err(Unreadable::from))),
    }
}

fn array(file: &File<'_>, vgroup: &Vgroup) -> Result<Array, Error> {
    let element = element(file, vgroup);
    let dimensions = dimensions(file, vgroup);
    let attributes = attributes(file, vgroup);
    let (located, trouble) = match located(file, vgroup) {
        Ok(located) => (located, None),
        Err(error) if error.is_not_held() => return Err(error),
        Err(error) => (Located::Nothing, Some(Unreadable::from(error))),
    };
    let (element, dimensions, attributes) = (element?, dimensions?, attributes?);
    let is_unlimited = dimensions.first().is_some_and(|dimension| dimension.length.is_none());
    let shape = shape(&dimensions, &located, &element);
    let fill = fill(&element, &attributes);
    let segments = match trouble {
        Some(reason) => Err(reason),
        None => layout::segments(file, &located, &shape, &element, &fill)?,
    };
    let is_fixed = |axis: usize| axis > 0 || !is_unlimited;
    let names = dimensions.into_iter().map(|dimension| dimension.name).collect();
    Ok(Array {
        max_shape: shape.iter().enumerate().map(|(axis, &length)| is_fixed(axis).then_some(length)).collect(),
        shape: Some(shape),
        element,
        fill,
        segments,
        is_chunked: matches!(located, Located::Chunked(_)),
        notes: Notes::default(),
        role: Role::default(),
        virtual_mappings: VirtualMappings::NONE,
        dimensions: Some(names),
        attributes,
    })
}

fn member(vgroup: &Vgroup, wanted: u16) -> Option<u16> {
    vgroup.members.iter().rev().find(|(tag, _)| *tag == wanted).map(|&(_, reference)| reference)
}

fn element(file: &File<'_>, vgroup: &Vgroup) -> Result<Element, Error> {
    let reference = member(vgroup, tag::NUMBER_TYPE).ok_or_else(|| {
        Error::invalid("an HDF4 variable", 0, format!("{} has no number type", vgroup.name))
    })?;
    let (_, bytes) = pieces::element(file, "an HDF4 number type", tag::NUMBER_TYPE, reference)?;
    number_type::of_object(&bytes)
}

/// Before the SD interface, data were in Vdata of class `Data0.0`.
fn located(file: &File<'_>, vgroup: &Vgroup) -> Result<Located, Error> {
    if let Some(reference) = member(vgroup, tag::DATA) {
        return locate(file, tag::DATA, reference);
    }
    let tables = vgroup.members.iter().filter(|(tag, _)| *tag == tag::VDATA);
    let tables = gather(tables, |&(_, reference)| vdata::read(file, reference))?;
    if tables.iter().any(|table| table.class == "Data0.0") {
        return Err(Error::unsupported("data in a Vdata (class Data0.0)"));
    }
    Ok(Located::Nothing)
}

/// An unlimited dimension is as long as its data.
fn shape(dimensions: &[Dimension], located: &Located, element: &Element) -> Vec<u64> {
    let known: Vec<u64> = dimensions.iter().filter_map(|dimension| dimension.length).collect();
    let row_nbytes = array_nbytes(&known, element).unwrap_or(u64::MAX);
    let records = match located {
        Located::Plain(pieces) => pieces.nbytes().checked_div(row_nbytes).unwrap_or(0),
        Located::Chunked(chunked) => chunked.axes.first().map_or(0, |&(length, _)| length),
        Located::Compressed { .. } | Located::Nothing => 0,
    };
    dimensions.iter().map(|dimension| dimension.length.unwrap_or(records)).collect()
}

fn dimensions(file: &File<'_>, vgroup: &Vgroup) -> Result<Vec<Dimension>, Error> {
    let members = vgroup.members.iter().filter(|(tag, _)| *tag == tag::VGROUP);
    let dimensions = gather(members, |&(_, reference)| {
        let inner = groups::read(file, reference)?;
        match inner.class.as_str() {
            "UDim0.0" => Ok(Some(Dimension { name: inner.name, length: None })),
            "Dim0.0" => {
                let length = Some(length(file, &inner)?);
                Ok(Some(Dimension { name: inner.name, length }))
            }
            _ => Ok(None),
        }
    })?;
    Ok(dimensions.into_iter().flatten().collect())
}

/// Stored as a value (`DimVal0.1`), or in older files as the number of records (`DimVal0.0`).
fn length(file: &File<'_>, dimension: &Vgroup) -> Result<u64, Error> {
    let tables = dimension.members.iter().filter(|(tag, _)| *tag == tag::VDATA);
    for table in gather(tables, |&(_, reference)| vdata::read(file, reference))? {
        match table.class.as_str() {
            "DimVal0.1" => return table.first_number(file),
            "DimVal0.0" => return Ok(table.record_count),
            _ => (),
        }
    }
    Err(Error::invalid("an HDF4 dimension", 0, format!("{} has no length", dimension.name)))
}

/// The attributes among a Vgroup's members.
pub(super) fn attributes(file: &File<'_>, vgroup: &Vgroup) -> Result<Vec<Attribute>, Error> {
    let members = vgroup.members.iter().filter(|(tag, _)| *tag == tag::VDATA);
    let attributes = gather(members, |&(_, reference)| {
        let table = vdata::read(file, reference)?;
        if table.class != "Attr0.0" {
            return Ok(None);
        }
        match table.attribute(file) {
            Err(error) if !error.is_not_held() => {
                Ok(Some(Attribute { name: table.name.clone(), value: Err(error.into()) }))
            }
            attribute => attribute.map(Some),
        }
    })?;
    Ok(attributes.into_iter().flatten().collect())
}

/// `_FillValue` if it is one element of the array's type, otherwise the library's default.
fn fill(element: &Element, attributes: &[Attribute]) -> Fill {
    let value = attributes.iter().find(|attribute| attribute.name == "_FillValue");
    let value = value.and_then(|attribute| attribute.value.as_ref().ok());
    let value =
        value.filter(|value| value.element == *element && value.bytes.len() as u64 == element.nbytes());
    Fill::Value(value.map_or_else(|| number_type::default_fill(element), |value| value.bytes.clone()))
}
