//! Tables: one array of compound elements, with a field for each column. FITS Standard 4.0, sections 7.2 and 7.3.

use hyperslab_core::{
    Array, ByteOrder, Charset, Element, Field, Fill, Notes, Role, StringPadding, Unreadable, VirtualMappings,
};

use super::hdu::{Content, Hdu};
use super::image;
use crate::attribute::boolean_element;

const MAX_COLUMN_COUNT: i64 = 999;
const STRUCTURE: [&str; 5] = ["TFIELDS", "TTYPE", "TFORM", "TDIM", "TBCOL"];

/// A BINTABLE. Columns of variable length lie in the heap; they are left out of the element and reported by name.
pub(super) fn binary(hdu: &Hdu) -> Content {
    let mut left_out = Vec::new();
    let array = binary_fields(hdu, &mut left_out).and_then(|fields| table(hdu, fields));
    Content { array: Some(array), left_out }
}

/// An ASCII TABLE. Its columns are returned as text.
pub(super) fn text(hdu: &Hdu) -> Result<Array, Unreadable> {
    let field = |number| {
        let form = hdu.cards.text(&format!("TFORM{number}")).unwrap_or_default().trim();
        let width = form.get(1..).and_then(|rest| rest.split('.').next()?.parse::<u64>().ok()).unwrap_or(1);
        let start = hdu.cards.integer(&format!("TBCOL{number}")).and_then(|start| u64::try_from(start).ok());
        let offset = start.and_then(|start| start.checked_sub(1));
        let offset = offset.ok_or_else(|| damaged(format!("TBCOL{number} is missing or invalid")))?;
        Ok(Field {
            name: column_name(hdu, number),
            offset,
            element: string(width, StringPadding::SpacePadded),
        })
    };
    let fields: Result<Vec<Field>, Unreadable> = (1..=column_count(hdu)?).map(field).collect();
    table(hdu, fields?)
}

fn table(hdu: &Hdu, fields: Vec<Field>) -> Result<Array, Unreadable> {
    let (Some(row_nbytes), Some(row_count)) = (hdu.cards.naxis(0), hdu.cards.naxis(1)) else {
        return Err(damaged("a table without two axes".into()));
    };
    let end = |field: &Field| field.offset.saturating_add(field.element.nbytes());
    if let Some(field) = fields.iter().find(|field| end(field) > row_nbytes) {
        return Err(damaged(format!("column {} reaches past its row's {row_nbytes} bytes", field.name)));
    }
    let element = Element::Compound { nbytes: row_nbytes, fields };
    let shape = vec![row_count];
    Ok(Array {
        segments: image::segments(hdu, &shape, &element),
        max_shape: vec![Some(row_count)],
        shape: Some(shape),
        element,
        fill: Fill::Zero,
        is_chunked: false,
        notes: Notes::default(),
        role: Role::default(),
        virtual_mappings: VirtualMappings::NONE,
        dimensions: None,
        attributes: hdu.cards.attributes(&STRUCTURE),
    })
}

/// A column of a binary table.
pub(super) struct Column {
    number: i64,
    pub name: String,
    repeat: u64,
    /// The letter of its type; `P` and `Q` are descriptors of data in the heap.
    pub code: char,
    /// The letter of the type in the heap.
    pub heap_code: Option<char>,
    /// Its offset in a row, in bytes.
    pub offset: u64,
    /// Width in bytes.
    pub nbytes: u64,
}

/// All columns, ordered by offset.
pub(super) fn columns(hdu: &Hdu) -> Result<Vec<Column>, Unreadable> {
    let mut columns = Vec::new();
    let mut offset = 0_u64;
    for number in 1..=column_count(hdu)? {
        let form = hdu.cards.text(&format!("TFORM{number}")).unwrap_or_default().trim();
        let invalid = || damaged(format!("TFORM{number} = {form:?} is invalid"));
        let (repeat, code, heap_code) = form_parts(form).ok_or_else(invalid)?;
        let nbytes = column_nbytes(repeat, code).ok_or_else(invalid)?;
        columns.push(Column {
            number,
            name: column_name(hdu, number),
            repeat,
            code,
            heap_code,
            offset,
            nbytes,
        });
        offset = offset.checked_add(nbytes).ok_or_else(|| damaged("a row too wide".into()))?;
    }
    Ok(columns)
}

fn binary_fields(hdu: &Hdu, left_out: &mut Vec<(String, Unreadable)>) -> Result<Vec<Field>, Unreadable> {
    let mut fields = Vec::new();
    for Column { number, name, repeat, code, offset, nbytes, .. } in columns(hdu)? {
        if matches!(code, 'P' | 'Q') {
            left_out.push((name, Unreadable::unsupported("a variable-length column")));
        } else if nbytes > 0 {
            let shape = hdu.cards.text(&format!("TDIM{number}")).and_then(dimensions);
            fields.push(Field { name, offset, element: column_element(repeat, code, shape) });
        }
    }
    Ok(fields)
}

fn column_count(hdu: &Hdu) -> Result<i64, Unreadable> {
    let count = hdu.cards.integer("TFIELDS").filter(|count| (0..=MAX_COLUMN_COUNT).contains(count));
    count.ok_or_else(|| damaged("TFIELDS is missing or invalid".into()))
}

fn damaged(problem: String) -> Unreadable {
    Unreadable::Damaged { problem }
}

fn column_name(hdu: &Hdu, number: i64) -> String {
    let name = hdu.cards.text(&format!("TTYPE{number}")).map(str::trim).filter(|name| !name.is_empty());
    name.map_or_else(|| format!("column{number}"), Into::into)
}

/// `rTa`: the repeat count (default 1), the letter of the type, and the letter after it.
fn form_parts(form: &str) -> Option<(u64, char, Option<char>)> {
    let digits = form.find(|character: char| !character.is_ascii_digit())?;
    let (repeat, rest) = form.split_at_checked(digits)?;
    let repeat = if repeat.is_empty() { 1 } else { repeat.parse().ok()? };
    let mut letters = rest.chars();
    Some((repeat, letters.next()?, letters.next()))
}

/// Table 18 of the standard.
pub(super) fn column_nbytes(repeat: u64, code: char) -> Option<u64> {
    let width = match code {
        'X' => return Some(repeat.div_ceil(8)),
        'L' | 'B' | 'A' => 1,
        'I' => 2,
        'J' | 'E' => 4,
        'K' | 'D' | 'C' | 'P' => 8,
        'M' | 'Q' => 16,
        _ => return None,
    };
    repeat.checked_mul(width)
}

fn column_element(repeat: u64, code: char, shape: Option<Vec<u64>>) -> Element {
    if code == 'A' {
        return strings(repeat, shape);
    }
    let count = if code == 'X' { repeat.div_ceil(8) } else { repeat };
    let element = cell_element(code);
    let shape =
        shape.filter(|shape| code != 'X' && product(shape) == Some(count)).unwrap_or_else(|| vec![count]);
    if count == 1 && shape.len() == 1 {
        element
    } else {
        Element::Array { shape, element: Box::new(element) }
    }
}

fn cell_element(code: char) -> Element {
    let order = ByteOrder::Big;
    let float = |nbytes| Element::float(nbytes, order).unwrap_or(Element::Bitfield { nbytes, order });
    match code {
        'L' => boolean_element(b'F', b'T'),
        'B' => Element::integer(1, false, order),
        'I' => Element::integer(2, true, order),
        'J' => Element::integer(4, true, order),
        'K' => Element::integer(8, true, order),
        'E' => float(4),
        'D' => float(8),
        'C' => Element::Complex { part: Box::new(float(4)) },
        'M' => Element::Complex { part: Box::new(float(8)) },
        _ => Element::Bitfield { nbytes: 1, order },
    }
}

/// With `TDIM`, the fastest axis is the width of a string, and the others form an array of strings.
fn strings(repeat: u64, shape: Option<Vec<u64>>) -> Element {
    let mut shape = shape.filter(|shape| product(shape) == Some(repeat)).unwrap_or_else(|| vec![repeat]);
    let width = shape.pop().unwrap_or(repeat);
    let element = string(width, StringPadding::NullPadded);
    if shape.is_empty() { element } else { Element::Array { shape, element: Box::new(element) } }
}

fn string(nbytes: u64, padding: StringPadding) -> Element {
    Element::FixedString { nbytes, padding, charset: Charset::Ascii }
}

fn product(shape: &[u64]) -> Option<u64> {
    shape.iter().try_fold(1_u64, |product, &length| product.checked_mul(length))
}

/// `(l,m,n)`, the fastest first, to C order.
fn dimensions(text: &str) -> Option<Vec<u64>> {
    let inner = text.trim().strip_prefix('(')?.strip_suffix(')')?;
    let mut shape: Vec<u64> =
        inner.split(',').map(|length| length.trim().parse().ok()).collect::<Option<_>>()?;
    shape.reverse();
    Some(shape)
}
