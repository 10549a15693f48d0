//! Vgroups: a name, a class, and members by tag and reference number (specification, section 9.3.1).

use super::descriptors::{small, tag};
use super::{File, pieces};
use crate::cursor::Cursor;
use crate::error::Error;

const WHAT: &str = "an HDF4 Vgroup";

/// A Vgroup.
#[derive(Clone, Debug)]
pub(super) struct Vgroup {
    pub name: String,
    pub class: String,
    pub members: Vec<(u16, u16)>,
}

/// The Vgroup with a reference number.
pub(super) fn read(file: &File<'_>, reference: u16) -> Result<Vgroup, Error> {
    let (offset, bytes) = pieces::element(file, WHAT, tag::VGROUP, reference)?;
    let mut cursor = Cursor::new(WHAT, offset, &bytes);
    let count = cursor.uint_be(2)?;
    let mut tags = Vec::new();
    for _ in 0..count {
        tags.push(small(cursor.uint_be(2)?));
    }
    let mut members = Vec::new();
    for tag in tags {
        members.push((tag, small(cursor.uint_be(2)?)));
    }
    Ok(Vgroup { name: text(&mut cursor)?, class: text(&mut cursor)?, members })
}

/// Text behind two bytes of length; a zero byte ends it early.
pub(super) fn text(cursor: &mut Cursor<'_>) -> Result<String, Error> {
    let length = cursor.uint_be(2)?;
    let bytes = cursor.take(usize::from(small(length)))?;
    Ok(until_zero(bytes))
}

/// Text up to a zero byte, if there is one.
pub(super) fn until_zero(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes.split(|&byte| byte == 0).next().unwrap_or_default()).into_owned()
}

/// Parts of an object, read one after another: what one misses does not keep the others from saying what they
/// miss.
pub(super) fn gather<T, U>(
    items: impl IntoIterator<Item = T>,
    read: impl Fn(T) -> Result<U, Error>,
) -> Result<Vec<U>, Error> {
    let (mut gathered, mut missing) = (Vec::new(), None);
    for item in items {
        match read(item) {
            Ok(part) => gathered.push(part),
            Err(error) if error.is_not_held() => missing = Some(error),
            Err(error) => return Err(error),
        }
    }
    missing.map_or(Ok(gathered), Err)
}
