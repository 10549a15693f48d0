//! Vdata: records of typed fields. Attributes, lengths of dimensions and chunk tables are Vdata (section 9.3.2).

use hyperslab_core::{Attribute, Element, Value};

use super::descriptors::{small, tag};
use super::file::File;
use super::text::text;
use super::{number_type, pieces};
use crate::cursor::Cursor;
use crate::error::Error;

const WHAT: &str = "an HDF4 Vdata";

/// A field: its type number, and how many values a record has.
#[derive(Clone, Debug)]
pub(super) struct Field {
    pub number: u16,
    pub order: u16,
}

/// The description of a Vdata.
#[derive(Clone, Debug)]
pub(super) struct Vdata {
    reference: u16,
    pub name: String,
    pub class: String,
    pub record_count: u64,
    pub record_nbytes: u64,
    pub fields: Vec<Field>,
}

/// The Vdata with a reference number.
pub(super) fn read(file: &File<'_>, reference: u16) -> Result<Vdata, Error> {
    let (offset, bytes) = pieces::element(file, WHAT, tag::VDATA, reference)?;
    let mut cursor = Cursor::new(WHAT, offset, &bytes);
    cursor.skip(2)?; // interlace: irrelevant for the single fields and whole records that we read
    let record_count = cursor.uint_be(4)?;
    let record_nbytes = cursor.uint_be(2)?;
    let count = cursor.uint_be(2)?;
    let numbers = column(&mut cursor, count)?;
    column(&mut cursor, count)?; // widths in memory
    column(&mut cursor, count)?; // offsets in the record
    let orders = column(&mut cursor, count)?;
    for _ in 0..count {
        text(&mut cursor)?;
    }
    let (name, class) = (text(&mut cursor)?, text(&mut cursor)?);
    let fields = numbers.into_iter().zip(orders).map(|(number, order)| Field { number, order }).collect();
    Ok(Vdata { reference, name, class, record_count, record_nbytes, fields })
}

fn column(cursor: &mut Cursor<'_>, count: u64) -> Result<Vec<u16>, Error> {
    (0..count).map(|_| cursor.uint_be(2).map(small)).collect()
}

impl Vdata {
    /// The bytes of all records.
    pub fn records(&self, file: &File<'_>) -> Result<Vec<u8>, Error> {
        let length = self.record_count.saturating_mul(self.record_nbytes);
        if length == 0 {
            return Ok(Vec::new());
        }
        let (offset, mut bytes) = pieces::element(file, WHAT, tag::RECORDS, self.reference)?;
        let length = usize::try_from(length).unwrap_or(usize::MAX);
        if bytes.len() < length {
            return Err(Error::invalid(
                WHAT,
                offset,
                format!("only {} of {length} bytes are there", bytes.len()),
            ));
        }
        bytes.truncate(length);
        Ok(bytes)
    }

    /// The first value, a four-byte integer. The length of a dimension is stored in this way.
    pub fn first_number(&self, file: &File<'_>) -> Result<u64, Error> {
        let bytes = self.records(file)?;
        let little = self.fields.first().is_some_and(|field| field.number & 0x4000 != 0);
        let mut first = bytes.get(..4).unwrap_or_default().to_vec();
        if little {
            first.reverse();
        }
        Ok(first.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// The attribute of a Vdata of class `Attr0.0`.
    pub fn attribute(&self, file: &File<'_>) -> Result<Attribute, Error> {
        let no_field = || Error::invalid(WHAT, 0, format!("attribute {:?} has no field", self.name));
        let field = self.fields.first().ok_or_else(no_field);
        let value = match field.and_then(|field| Ok((field, number_type::of_field(field.number)?))) {
            Ok((field, element)) => Ok(self.value(field, element, self.records(file)?)),
            Err(error) => Err(error.into()),
        };
        Ok(Attribute { name: self.name.clone(), value })
    }

    fn value(&self, field: &Field, element: Element, mut bytes: Vec<u8>) -> Value {
        if matches!(element, Element::FixedString { .. }) {
            if bytes.is_empty() {
                bytes.push(0);
            }
            let element = number_type::text(bytes.len() as u64);
            return Value { element, shape: Some(Vec::new()), bytes, heap: Vec::new() };
        }
        let count = self.record_count.saturating_mul(u64::from(field.order));
        Value { element, shape: Some(vec![count]), bytes, heap: Vec::new() }
    }
}
