//! NetCDF-4's conventions on top of HDF5: dimension scales name dimensions ("NetCDF-4 file format", appendix of the
//! netCDF user's guide; "HDF5 Dimension Scale Specification").

use std::collections::HashMap;

use hyperslab_core::{Array, Attribute, ByteOrder, Element, Tree, Value};

use super::sizes::Sizes;
use super::text;
use super::unlimited;
use crate::cursor::Cursor;

/// Attributes that hold dimensions and bookkeeping. NetCDF-4's libraries hide them.
pub const HIDDEN: &[&str] = &[
    "CLASS",
    "NAME",
    "REFERENCE_LIST",
    "DIMENSION_LIST",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_NCProperties",
    "_nc3_strict",
    "_Codecs",
];

/// The start of the `NAME` of a dimension scale that is only a dimension and not a variable.
pub const DIMENSION_ONLY: &str = "This is a netCDF dimension but not a netCDF variable.";

/// The start of the name of an array that is named like a dimension but is not its coordinate.
pub const NON_COORDINATE_PREFIX: &str = "_nc4_non_coord_";

/// Attributes that only NetCDF-4's libraries write: on the root group since netCDF 4.4.1, on dimensions before.
const MARKS: &[&str] = &["_NCProperties", "_nc3_strict", "_Netcdf4Dimid", "_Netcdf4Coordinates"];

/// Whether NetCDF-4's conventions apply to a file, not just HDF5's.
pub fn is_netcdf4(tree: &Tree) -> bool {
    let is_marked = |attributes: &[Attribute]| {
        attributes.iter().any(|attribute| MARKS.contains(&attribute.name.as_str()))
    };
    tree.groups.first().is_some_and(|root| is_marked(&root.attributes))
        || tree.arrays.iter().any(|array| is_marked(&array.attributes))
}

/// The address of an array's header, and the first name that leads to the array.
#[derive(Clone, Debug)]
pub(crate) struct ArrayNames {
    /// The header.
    pub address: u64,
    /// The name.
    pub name: String,
}

/// Sets the names of dimensions for each array whose axes all have one. Extends NetCDF-4 variables to the length of
/// their unlimited dimensions.
pub(crate) fn name_dimensions(tree: &mut Tree, names: &[ArrayNames], sizes: Sizes) {
    let is_netcdf4 = is_netcdf4(tree);
    let arrays = &mut tree.arrays;
    let found = Scales::new(arrays, names, sizes);
    let scales: Vec<_> = arrays.iter().enumerate().map(|(number, array)| found.of(array, number)).collect();
    for (array, scales) in arrays.iter_mut().zip(&scales) {
        let name = |&scale: &usize| names.get(scale).map(|names| names.name.clone());
        array.dimensions = scales.as_ref().and_then(|scales| scales.iter().map(name).collect());
    }
    if is_netcdf4 {
        unlimited::lengthen(arrays, &scales);
    }
}

/// The array numbers of a file's dimension scales, by what leads to them.
struct Scales {
    sizes: Sizes,
    by_address: HashMap<u64, usize>,
    by_number: HashMap<i64, usize>,
}

impl Scales {
    fn new(arrays: &[Array], names: &[ArrayNames], sizes: Sizes) -> Self {
        let by_address = names.iter().enumerate().map(|(number, names)| (names.address, number)).collect();
        let numbered = arrays.iter().enumerate().filter(|(_, array)| is_scale(array));
        let by_number = numbered.filter_map(|(number, array)| {
            let numbers = integers(value(array, "_Netcdf4Dimid")?)?;
            Some((*numbers.first()?, number))
        });
        Self { sizes, by_address, by_number: by_number.collect() }
    }

    /// The dimension of each axis of an array, if all axes have one.
    fn of(&self, array: &Array, number: usize) -> Option<Vec<usize>> {
        let ndim = array.shape.as_ref()?.len();
        if let Some(list) = value(array, "DIMENSION_LIST") {
            return self.listed(list, ndim);
        }
        if let Some(numbers) = value(array, "_Netcdf4Coordinates").and_then(integers) {
            let known = numbers.iter().map(|number| self.by_number.get(number).copied());
            return known.collect::<Option<Vec<_>>>().filter(|known| known.len() == ndim);
        }
        (ndim == 1 && is_scale(array)).then(|| vec![number])
    }

    /// A list of references for each axis. The last one counts, as in netCDF-C.
    fn listed(&self, list: &Value, ndim: usize) -> Option<Vec<usize>> {
        let scale = |references: &Vec<u8>| {
            let last = references.chunks_exact(self.sizes.offset.max(1)).next_back()?;
            let mut cursor = Cursor::new("DIMENSION_LIST", 0, last);
            let address = self.sizes.address(&mut cursor).ok()??;
            self.by_address.get(&address).copied()
        };
        list.heap.iter().map(scale).collect::<Option<Vec<_>>>().filter(|known| known.len() == ndim)
    }
}

fn value<'a>(array: &'a Array, name: &str) -> Option<&'a Value> {
    let attribute = array.attributes.iter().find(|attribute| attribute.name == name)?;
    attribute.value.as_ref().ok()
}

/// Whether an array is a dimension scale.
fn is_scale(array: &Array) -> bool {
    value(array, "CLASS").and_then(string).is_some_and(|class| class == "DIMENSION_SCALE")
}

fn string(value: &Value) -> Option<String> {
    match value.element {
        Element::FixedString { .. } => Some(text::until_zero(&value.bytes)),
        Element::VlenString { .. } => value.heap.first().map(|bytes| text::until_zero(bytes)),
        _ => None,
    }
}

/// Ordinary integers of up to eight bytes.
fn integers(value: &Value) -> Option<Vec<i64>> {
    let Element::Integer { nbytes: nbytes @ 1..=8, order, .. } = value.element else { return None };
    let width = usize::try_from(nbytes).ok()?;
    let number = |bytes: &[u8]| {
        let fold = |number: i64, byte: &u8| number << 8 | i64::from(*byte);
        if order == ByteOrder::Big { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
    };
    Some(value.bytes.chunks_exact(width).map(number).collect())
}
