//! Unlimited dimensions in NetCDF-4's sense: a dimension is as long as the longest of the variables that share it. The
//! file stores each variable as long as it was written; netCDF reads fill values beyond that.

use std::collections::HashMap;

use hyperslab_core::{Array, ByteOrder, Codec, Element, Fill, MAX_ELEMENT_COUNT, Segment};

/// NetCDF's fill values for variables without their own (`NC_FILL_BYTE` and so on): by width, signed and unsigned.
const INTEGERS: [(u64, i64, u64); 4] = [
    (1, -127, 255),
    (2, -32_767, 65_535),
    (4, -2_147_483_647, 4_294_967_295),
    (8, -9_223_372_036_854_775_806, u64::MAX - 1),
];
/// `NC_FILL_FLOAT`, `NC_FILL_DOUBLE`.
const FLOAT: f64 = 9.969_209_968_386_869e36;

/// Extends variables that end before their unlimited dimensions. `scales` has the dimensions of each array whose axes
/// all have one.
pub(crate) fn lengthen(arrays: &mut [Array], scales: &[Option<Vec<usize>>]) {
    let lengths = lengths(arrays, scales);
    if lengths.is_empty() {
        return;
    }
    for (array, scales) in arrays.iter_mut().zip(scales) {
        let (Some(shape), Some(scales)) = (&array.shape, scales) else { continue };
        let axes = shape.iter().zip(scales).zip(&array.max_shape);
        let axis = |((&length, scale), most): ((&u64, &usize), &Option<u64>)| {
            let known = lengths.get(scale).filter(|_| most.is_none());
            known.map_or(length, |&known| known.max(length))
        };
        let longer: Vec<u64> = axes.map(axis).collect();
        if longer.len() == shape.len() && longer != *shape && can_be_longer(array, &longer) {
            array.shape = Some(longer);
            array.fill = fill(array);
        }
    }
}

/// The length of each unlimited dimension: that of its longest variable.
fn lengths(arrays: &[Array], scales: &[Option<Vec<usize>>]) -> HashMap<usize, u64> {
    let mut lengths = HashMap::new();
    for (array, scales) in arrays.iter().zip(scales) {
        let shape = array.shape.as_deref().unwrap_or_default();
        for (&length, &scale) in shape.iter().zip(scales.iter().flatten()) {
            if arrays.get(scale).is_some_and(|scale| scale.max_shape.first() == Some(&None)) {
                let longest = lengths.entry(scale).or_insert(0);
                *longest = length.max(*longest);
            }
        }
    }
    lengths
}

/// Whether we read the array ourselves. Arrays that h5py reads for us keep the length that h5py sees.
fn can_be_longer(array: &Array, shape: &[u64]) -> bool {
    let decoded =
        |segment: &Segment| !segment.codecs.iter().any(|codec| matches!(codec, Codec::Unknown { .. }));
    let is_read = array.segments.as_ref().is_ok_and(|segments| segments.iter().all(decoded));
    let count = shape.iter().try_fold(1_u64, |count, &length| count.checked_mul(length));
    let is_sensible = count.is_some_and(|count| count <= MAX_ELEMENT_COUNT);
    is_read && is_sensible && array.virtual_mappings.is_empty()
}

/// The value beyond the end of a variable: its own fill value, otherwise netCDF's default for numbers.
fn fill(array: &Array) -> Fill {
    match (&array.fill, &array.element) {
        (Fill::Zero | Fill::Undefined, Element::Integer { nbytes, signed, order, .. }) => {
            let known = INTEGERS.iter().find(|known| known.0 == *nbytes);
            let bytes =
                known.map(|known| if *signed { known.1.to_le_bytes() } else { known.2.to_le_bytes() });
            let width = usize::try_from(*nbytes).unwrap_or(usize::MAX);
            let bytes = bytes.as_ref().and_then(|bytes| bytes.get(..width));
            bytes.map_or(array.fill.clone(), |bytes| ordered(bytes.to_vec(), *order))
        }
        (Fill::Zero | Fill::Undefined, Element::Float { nbytes, order, .. }) => match nbytes {
            #[allow(clippy::cast_possible_truncation)] // a float of four bytes
            4 => ordered((FLOAT as f32).to_le_bytes().to_vec(), *order),
            8 => ordered(FLOAT.to_le_bytes().to_vec(), *order),
            _ => array.fill.clone(),
        },
        (fill, _) => fill.clone(),
    }
}

fn ordered(mut bytes: Vec<u8>, order: ByteOrder) -> Fill {
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    Fill::Value(bytes)
}
