//! Attribute messages of all versions (HDF5 File Format Specification 3.0, IV.A.2.m).

use hyperslab_core::{Attribute, Element, Value, value_with_ieee_floats};

use super::dataspace::Dataspace;
use super::datatype;
use super::file::File;
use super::header::{Message, kind};
use super::text;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pages::Pages;

const WHAT: &str = "attribute";

/// An attribute. Its variable-length values may still be elsewhere.
#[derive(Clone, Debug)]
pub(crate) struct RawAttribute {
    /// The attribute so far.
    pub attribute: Attribute,
    /// When it was created, relative to the object's other attributes, if the object tracks that.
    pub order: Option<u32>,
}

impl RawAttribute {
    /// An attribute that cannot be read. Without a name, it stands for attributes that cannot be listed.
    pub fn failed(name: String, error: &Error) -> Self {
        let attribute = Attribute { name, value: Err(error.clone().into()) };
        Self { attribute, order: None }
    }

    /// From a message. Fails only if bytes are not held yet.
    pub fn read(file: &mut File, pages: &Pages<'_>, message: &Message) -> Result<Self, Error> {
        let mut name = String::new();
        let outcome = match file.resolved(pages, message) {
            Ok(message) => parts(file, pages, &mut message.cursor(WHAT), &mut name),
            Err(error) => Err(error),
        };
        match outcome {
            Ok(value) => {
                let attribute = Attribute { name, value: Ok(value) };
                Ok(Self { attribute, order: message.order.map(u32::from) })
            }
            Err(error) if error.is_not_held() => Err(error),
            Err(error) => Ok(Self::failed(name, &error)),
        }
    }
}

/// The attribute with IEEE floats in place of floats with another layout.
pub(crate) fn with_ieee_floats(attribute: Attribute) -> Attribute {
    Attribute { value: attribute.value.map(value_with_ieee_floats), ..attribute }
}

/// Lengths and flags before the name.
struct Head {
    version: u8,
    type_shared: bool,
    space_shared: bool,
    name_nbytes: usize,
    type_nbytes: usize,
    space_nbytes: usize,
}

impl Head {
    fn read(cursor: &mut Cursor<'_>) -> Result<Self, Error> {
        let version = cursor.u8()?;
        if !(1..=3).contains(&version) {
            return Err(Error::unsupported(format!("attribute message version {version}")));
        }
        let flags = cursor.u8()?;
        let flags = if version == 1 { 0 } else { flags }; // reserved in version 1
        let mut length = || cursor.u16().map(usize::from);
        let (name_nbytes, type_nbytes, space_nbytes) = (length()?, length()?, length()?);
        cursor.skip(usize::from(version == 3))?; // character set: names are read as UTF-8 either way
        let (type_shared, space_shared) = (flags & 1 != 0, flags & 2 != 0);
        Ok(Self { version, type_shared, space_shared, name_nbytes, type_nbytes, space_nbytes })
    }

    /// A part of the message. Version 1 pads each part to eight bytes.
    fn part<'c>(&self, cursor: &mut Cursor<'c>, nbytes: usize) -> Result<&'c [u8], Error> {
        let part = cursor.take(nbytes)?;
        let padding = nbytes.next_multiple_of(8) - nbytes;
        cursor.skip(if self.version == 1 { padding.min(cursor.remaining()) } else { 0 })?;
        Ok(part)
    }

    /// A datatype or dataspace within the message. It may itself be shared.
    fn message(
        &self,
        cursor: &mut Cursor<'_>,
        kind: u16,
        nbytes: usize,
        shared: bool,
    ) -> Result<Message, Error> {
        let offset = cursor.offset();
        let body = self.part(cursor, nbytes)?.to_vec();
        Ok(Message { kind, shared, order: None, offset, body })
    }
}

fn parts(
    file: &mut File,
    pages: &Pages<'_>,
    cursor: &mut Cursor<'_>,
    name: &mut String,
) -> Result<Value, Error> {
    let head = Head::read(cursor)?;
    *name = text::until_zero(head.part(cursor, head.name_nbytes)?);
    let datatype = head.message(cursor, kind::DATATYPE, head.type_nbytes, head.type_shared)?;
    let dataspace = head.message(cursor, kind::DATASPACE, head.space_nbytes, head.space_shared)?;
    let datatype = file.resolved(pages, &datatype)?;
    let element = datatype::element(&mut datatype.cursor("datatype of an attribute"), file.sizes)?;
    let dataspace = file.resolved(pages, &dataspace)?;
    let dataspace = Dataspace::read(&mut dataspace.cursor("dataspace of an attribute"), file.sizes)?;
    value(cursor, element, &dataspace)
}

fn value(cursor: &mut Cursor<'_>, element: Element, dataspace: &Dataspace) -> Result<Value, Error> {
    let nbytes = dataspace.element_count().and_then(|count| count.checked_mul(element.nbytes()));
    let nbytes = nbytes.and_then(|nbytes| usize::try_from(nbytes).ok());
    let nbytes = nbytes.ok_or_else(|| cursor.invalid("a value of more than 2^64 bytes"))?;
    let bytes = cursor.take(nbytes)?.to_vec();
    let shape = dataspace.shape.clone();
    Ok(Value { element, shape, bytes, heap: Vec::new() })
}
