//! Fill value messages of every version (HDF5 File Format Specification 3.0, IV.A.2.e and f).

use hyperslab_core::Fill;

use crate::cursor::Cursor;
use crate::error::Error;

/// The old message: a length and a value.
pub(crate) fn old(cursor: &mut Cursor<'_>) -> Result<Fill, Error> {
    value(cursor)
}

/// The message of versions 1 to 3.
pub(crate) fn new(cursor: &mut Cursor<'_>) -> Result<Fill, Error> {
    match cursor.u8()? {
        1 | 2 => {
            cursor.skip(2)?; // when space is allocated, when the fill value is written
            if cursor.u8()? == 0 { Ok(Fill::Undefined) } else { value(cursor) }
        }
        3 => match cursor.u8()? {
            flags if flags & 0x10 != 0 => Ok(Fill::Undefined),
            flags if flags & 0x20 != 0 => value(cursor),
            _ => Ok(Fill::Zero),
        },
        version => Err(Error::unsupported(format!("fill value message version {version}"))),
    }
}

/// A length of zero or less (-1 for undefined) means that no value follows.
fn value(cursor: &mut Cursor<'_>) -> Result<Fill, Error> {
    match cursor.u32()? {
        0 => Ok(Fill::Zero),
        length if length >= 1 << 31 => Ok(Fill::Undefined),
        length => {
            let length = usize::try_from(length).unwrap_or(usize::MAX);
            Ok(Fill::Value(cursor.take(length)?.to_vec()))
        }
    }
}
