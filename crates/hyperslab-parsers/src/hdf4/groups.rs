//! Vgroups: a name, a class, and members by tag and reference number (specification, section 9.3.1).

use super::descriptors::{small, tag};
use super::file::File;
use super::pieces;
use super::text::text;
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
