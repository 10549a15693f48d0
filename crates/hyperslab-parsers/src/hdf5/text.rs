//! Names and paths: bytes that end with a zero.

use crate::cursor::Cursor;
use crate::error::Error;

/// Text up to the first zero byte, or all of it.
pub(crate) fn until_zero(bytes: &[u8]) -> String {
    let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

/// Text up to a zero byte. Skips the zero byte too.
pub(crate) fn zero_terminated(cursor: &mut Cursor<'_>) -> Result<String, Error> {
    let length = cursor.rest().iter().position(|&byte| byte == 0);
    let length = length.ok_or_else(|| cursor.invalid("a name without an end"))?;
    let name = String::from_utf8_lossy(cursor.take(length)?).into_owned();
    cursor.skip(1)?;
    Ok(name)
}
