//! The classic NetCDF formats: CDF-1, CDF-2 (64-bit offsets) and CDF-5 (64-bit data).
//!
//! We follow "The NetCDF Classic Format Specification" (NetCDF User's Guide, appendix B). All numbers are big-endian. A
//! variable without the record dimension is stored in one piece. The records of other variables are interleaved, record
//! by record. We ignore the field `vsize`, which can overflow; sizes follow from the shapes.

mod header;
mod records;
#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic, clippy::cast_possible_truncation)]
mod tests;

use hyperslab_core::{Array, Attribute, Fill, Group, Link, Notes, Role, Tree, VirtualMappings};

use crate::error::Error;
use crate::pages::Pages;
use crate::rounds::settle;
use header::{Header, Variable};

/// The tree of a classic NetCDF file: one group, its variables, their chunks.
pub fn parse(pages: &mut Pages<'_>) -> Result<Tree, Error> {
    let header = settle(pages, header::read)?;
    let records = records::Records::of(&header, pages.file_length());
    let arrays = header.variables.iter().map(|variable| array(&header, &records, variable)).collect();
    let links = header.variables.iter().enumerate();
    let links = links.map(|(number, variable)| (variable.name.clone(), Link::Array(number))).collect();
    let root = Group { attributes: header.attributes.clone(), links };
    Ok(Tree { groups: vec![root], arrays, ..Tree::default() })
}

fn array(header: &Header, records: &records::Records, variable: &Variable) -> Array {
    let fill = fill(variable);
    let shape = records.shape(header, variable);
    let is_record = variable.is_record(header);
    let max_shape = shape.iter().enumerate();
    let max_shape = max_shape.map(|(axis, &length)| (axis > 0 || !is_record).then_some(length)).collect();
    let names = variable.dimensions.iter().filter_map(|&number| header.dimensions.get(number));
    Array {
        segments: records.segments(header, variable, &shape, &fill),
        is_chunked: false,
        notes: Notes::default(),
        role: Role::default(),
        virtual_mappings: VirtualMappings::NONE,
        shape: Some(shape),
        max_shape,
        element: variable.kind.element(),
        fill,
        dimensions: Some(names.map(|dimension| dimension.name.clone()).collect()),
        attributes: variable.attributes.clone(),
    }
}

/// `_FillValue` if it is one element of the variable's type, otherwise the library's default for the type.
fn fill(variable: &Variable) -> Fill {
    let element = variable.kind.element();
    let is_fill = |attribute: &&Attribute| attribute.name == "_FillValue";
    let value = variable.attributes.iter().find(is_fill).and_then(|attribute| attribute.value.as_ref().ok());
    match value {
        Some(value) if value.element == element && value.bytes.len() as u64 == element.nbytes() => {
            Fill::Value(value.bytes.clone())
        }
        _ => Fill::Value(variable.kind.default_fill()),
    }
}
