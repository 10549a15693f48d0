//! The dataspace message: an array's shape (HDF5 File Format Specification 3.0, IV.A.2.b).

use super::sizes::{Sizes, all_ones};
use crate::cursor::Cursor;
use crate::error::Error;

/// The maximum number of axes: the library's own limit (`H5S_MAX_RANK`).
pub(crate) const MAX_NDIM: u8 = 32;

/// The type of a dataspace with axes, in messages of version 2.
const SIMPLE: u8 = 1;
/// The type of a dataspace without elements.
const NULL: u8 = 2;

/// A shape and its limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Dataspace {
    /// Empty for a scalar; `None` if there are no elements at all.
    pub shape: Option<Vec<u64>>,
    /// `None` for an unlimited axis.
    pub max_shape: Vec<Option<u64>>,
}

impl Dataspace {
    /// From the body of a message.
    pub fn read(cursor: &mut Cursor<'_>, sizes: Sizes) -> Result<Self, Error> {
        let version = cursor.u8()?;
        let ndim = cursor.u8()?;
        let flags = cursor.u8()?;
        if ndim > MAX_NDIM {
            return Err(cursor.invalid(format!("{ndim} axes")));
        }
        let null = match version {
            1 => {
                cursor.skip(5)?;
                false
            }
            2 => {
                let kind = cursor.u8()?;
                if kind > 2 || kind != SIMPLE && ndim > 0 {
                    return Err(cursor.invalid(format!("{ndim} axes of a dataspace of type {kind}")));
                }
                kind == NULL
            }
            _ => return Err(Error::unsupported(format!("dataspace message version {version}"))),
        };
        let shape = lengths(cursor, sizes, ndim)?;
        let unlimited = all_ones(sizes.length);
        let max_shape: Vec<Option<u64>> = if flags & 1 == 0 {
            shape.iter().copied().map(Some).collect()
        } else {
            let limits = lengths(cursor, sizes, ndim)?;
            limits.into_iter().map(|limit| (limit != unlimited).then_some(limit)).collect()
        };
        for (axis, (&length, &limit)) in shape.iter().zip(&max_shape).enumerate() {
            if let Some(limit) = limit.filter(|&limit| length > limit) {
                let problem = format!("axis {axis} has length {length}, but its maximum is {limit}");
                return Err(cursor.invalid(problem));
            }
        }
        Ok(Self { shape: (!null).then_some(shape), max_shape })
    }

    /// The number of elements. Fails if no memory could hold them.
    pub fn element_count(&self) -> Option<u64> {
        let Some(shape) = &self.shape else { return Some(0) };
        shape.iter().try_fold(1_u64, |product, &length| product.checked_mul(length))
    }
}

fn lengths(cursor: &mut Cursor<'_>, sizes: Sizes, ndim: u8) -> Result<Vec<u64>, Error> {
    (0..ndim).map(|_| sizes.length(cursor)).collect()
}
