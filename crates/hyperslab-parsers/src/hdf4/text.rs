//! Text as HDF4 writes it.

use super::descriptors::small;
use crate::cursor::Cursor;
use crate::error::Error;

/// Text after its length in two bytes; a zero byte ends it early.
pub(super) fn text(cursor: &mut Cursor<'_>) -> Result<String, Error> {
    let length = cursor.uint_be(2)?;
    let bytes = cursor.take(usize::from(small(length)))?;
    Ok(until_zero(bytes))
}

/// Text up to a zero byte, if there is one.
pub(super) fn until_zero(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}
