//! Link and link information messages of new-style groups (HDF5 File Format Specification 3.0, IV.A.2.c and g).

use super::sizes::Sizes;
use super::text;
use crate::cursor::Cursor;
use crate::error::Error;

/// A name in a group, and where it leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedLink {
    /// The name.
    pub name: String,
    /// When it was created, relative to the group's other links, if the group tracks that.
    pub order: Option<u64>,
    /// Where it leads.
    pub target: Target,
}

/// Where a link leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// To the object with its header at this address.
    Object(u64),
    /// To a path of this file.
    Soft(String),
    /// To a path of another file.
    External {
        /// The file.
        file: String,
        /// The path.
        path: String,
    },
    /// A user-defined link, by its type. Only its writer knows where it leads.
    UserDefined(u8),
}

/// A link message, from an object header or a heap.
pub(crate) fn link(cursor: &mut Cursor<'_>, sizes: Sizes) -> Result<NamedLink, Error> {
    let version = cursor.u8()?;
    if version != 1 {
        return Err(Error::unsupported(format!("link message version {version}")));
    }
    let flags = cursor.u8()?;
    let kind = if flags & 0x08 == 0 { 0 } else { cursor.u8()? };
    let order = if flags & 0x04 == 0 { None } else { Some(cursor.u64()?) };
    cursor.skip(usize::from(flags & 0x10 != 0))?; // character set: names are read as UTF-8 either way
    let length = usize::try_from(cursor.uint(1 << (flags & 3))?).unwrap_or(usize::MAX);
    let name = String::from_utf8_lossy(cursor.take(length)?).into_owned();
    Ok(NamedLink { name, order, target: target(cursor, sizes, kind)? })
}

fn target(cursor: &mut Cursor<'_>, sizes: Sizes, kind: u8) -> Result<Target, Error> {
    if kind == 0 {
        return Ok(Target::Object(sizes.defined_address(cursor)?));
    }
    let length = usize::from(cursor.u16()?);
    let value = cursor.take(length)?;
    Ok(match kind {
        1 => Target::Soft(text::until_zero(value)),
        64 => external(value),
        _ => Target::UserDefined(kind),
    })
}

/// A byte of version and flags, the file, the path.
fn external(value: &[u8]) -> Target {
    let mut parts = value.get(1..).unwrap_or_default().splitn(2, |&byte| byte == 0);
    let mut part = || text::until_zero(parts.next().unwrap_or_default());
    Target::External { file: part(), path: part() }
}

/// The heap that holds a group's links or an object's attributes, and the B-tree of the hashes of their names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DenseStorage {
    /// The fractal heap.
    pub heap: u64,
    /// The B-tree.
    pub names: u64,
}

/// The contents of a link information or attribute information message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StorageInformation {
    /// Whether the creation order is tracked.
    pub ordered: bool,
    /// The storage of links or attributes that are not in the header.
    pub dense: Option<DenseStorage>,
}

/// The two messages differ only in the width of the largest creation index: 8 bytes for links, 2 for attributes.
pub(crate) fn storage(
    cursor: &mut Cursor<'_>,
    sizes: Sizes,
    index_nbytes: usize,
) -> Result<StorageInformation, Error> {
    let version = cursor.u8()?;
    if version != 0 {
        return Err(Error::unsupported(format!("link or attribute information version {version}")));
    }
    let ordered = cursor.u8()? & 1 != 0;
    cursor.skip(if ordered { index_nbytes } else { 0 })?;
    let (heap, names) = (sizes.address(cursor)?, sizes.address(cursor)?);
    let dense = heap.zip(names).map(|(heap, names)| DenseStorage { heap, names });
    Ok(StorageInformation { ordered, dense })
}
