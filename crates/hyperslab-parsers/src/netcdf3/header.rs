//! The header of a classic NetCDF file, read from a window at the start of the file that grows as needed.

use std::borrow::Cow;

use hyperslab_core::{Attribute, ByteOrder, Charset, Element, StringPadding, Value};

use crate::error::Error;
use crate::pages::Pages;

const WHAT: &str = "the NetCDF header";
const FIRST_WINDOW: u64 = 64 << 10;
/// `NC_MAX_VAR_DIMS`.
const MAX_NDIM: u64 = 1024;

/// A named length. 0 marks the record dimension.
#[derive(Clone, Debug)]
pub(super) struct Dimension {
    pub name: String,
    pub length: u64,
}

/// An external type (`NC_BYTE` and so on), by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind(u64);

/// A variable, from the header.
#[derive(Clone, Debug)]
pub(super) struct Variable {
    pub name: String,
    pub dimensions: Vec<usize>,
    pub attributes: Vec<Attribute>,
    pub kind: Kind,
    pub begin: u64,
}

/// The contents of the header.
#[derive(Clone, Debug)]
pub(super) struct Header {
    /// `None` if the file was being streamed: then the file's length gives the number.
    pub record_count: Option<u64>,
    pub dimensions: Vec<Dimension>,
    pub attributes: Vec<Attribute>,
    pub variables: Vec<Variable>,
    /// The length of the header itself. All variables start after it.
    pub nbytes: u64,
}

impl Variable {
    /// Whether the first dimension is the record dimension.
    pub fn is_record(&self, header: &Header) -> bool {
        self.dimensions
            .first()
            .and_then(|&number| header.dimensions.get(number))
            .is_some_and(|it| it.length == 0)
    }
}

impl Kind {
    /// The element of this type.
    pub fn element(self) -> Element {
        let order = ByteOrder::Big;
        match self.0 {
            2 => Element::FixedString {
                nbytes: 1,
                padding: StringPadding::NullPadded,
                charset: Charset::Ascii,
            },
            5 => float(4),
            6 => float(8),
            number => Element::integer(self.nbytes(), matches!(number, 1 | 3 | 4 | 10), order),
        }
    }

    /// Width of an element.
    pub fn nbytes(self) -> u64 {
        match self.0 {
            1 | 2 | 7 => 1,
            3 | 8 => 2,
            4 | 5 | 9 => 4,
            _ => 8,
        }
    }

    /// `NC_FILL_BYTE` and so on, as stored.
    pub fn default_fill(self) -> Vec<u8> {
        match self.0 {
            1 => (-127_i8).to_be_bytes().to_vec(),
            2 => vec![0],
            3 => (-32767_i16).to_be_bytes().to_vec(),
            4 => (-2_147_483_647_i32).to_be_bytes().to_vec(),
            5 => 9.969_21e36_f32.to_be_bytes().to_vec(),
            6 => 9.969_209_968_386_869e36_f64.to_be_bytes().to_vec(),
            7 => vec![255],
            8 => u16::MAX.to_be_bytes().to_vec(),
            9 => u32::MAX.to_be_bytes().to_vec(),
            10 => (-9_223_372_036_854_775_806_i64).to_be_bytes().to_vec(),
            _ => 18_446_744_073_709_551_614_u64.to_be_bytes().to_vec(),
        }
    }
}

fn float(nbytes: u64) -> Element {
    let opaque = Element::Opaque { nbytes, tag: String::new() };
    Element::float(nbytes, ByteOrder::Big).unwrap_or(opaque)
}

/// The header, from a window. If the window is too short, from a longer one.
pub(super) fn read(pages: &Pages<'_>) -> Result<Header, Error> {
    let mut length = FIRST_WINDOW.min(pages.file_length());
    loop {
        let bytes = pages.bytes(WHAT, 0, length)?;
        match (Window { pages, bytes, position: 0, wide: false, wide_offsets: false }).header() {
            Err(error) if error.is_not_held() => length = length.saturating_mul(4).min(pages.file_length()),
            header => return header,
        }
    }
}

struct Window<'p, 'a> {
    pages: &'p Pages<'a>,
    bytes: Cow<'p, [u8]>,
    position: usize,
    /// CDF-5: counts, lengths and sizes take eight bytes.
    wide: bool,
    /// CDF-2 and CDF-5: offsets of variables take eight bytes.
    wide_offsets: bool,
}

impl Window<'_, '_> {
    fn header(mut self) -> Result<Header, Error> {
        let magic = self.number(4)?;
        (self.wide, self.wide_offsets) = match magic {
            0x4344_4601 => (false, false),
            0x4344_4602 => (false, true),
            0x4344_4605 => (true, true),
            _ => {
                return Err(Error::UnknownFormat {
                    reason: "the file does not start as classic NetCDF files do".into(),
                });
            }
        };
        let streaming = if self.wide { u64::MAX } else { u64::from(u32::MAX) };
        let record_count = Some(self.count()?).filter(|&count| count != streaming);
        let dimensions = self.list(0x0A, Self::dimension)?;
        if dimensions.iter().filter(|dimension| dimension.length == 0).count() > 1 {
            return Err(self.invalid("two dimensions are the record dimension"));
        }
        let attributes = self.list(0x0C, Self::attribute)?;
        let variables = self.list(0x0B, Self::variable)?;
        let header = Header { record_count, dimensions, attributes, variables, nbytes: self.position as u64 };
        self.check_dimensions(&header)?;
        Ok(header)
    }

    fn check_dimensions(&self, header: &Header) -> Result<(), Error> {
        for variable in &header.variables {
            for (axis, &number) in variable.dimensions.iter().enumerate() {
                let dimension = header.dimensions.get(number);
                let name = &variable.name;
                match dimension {
                    None => {
                        return Err(
                            self.invalid(format!("{name} has dimension {number}, which does not exist"))
                        );
                    }
                    Some(dimension) if dimension.length == 0 && axis > 0 => {
                        return Err(self.invalid(format!("the record dimension of {name} is not its first")));
                    }
                    Some(_) => (),
                }
            }
        }
        Ok(())
    }

    fn list<T>(&mut self, tag: u64, item: impl Fn(&mut Self) -> Result<T, Error>) -> Result<Vec<T>, Error> {
        let found = self.number(4)?;
        let count = self.count()?;
        if found != tag && (found != 0 || count != 0) {
            return Err(self.invalid(format!("a list starts with {found}, not with {tag}")));
        }
        (0..count).map(|_| item(self)).collect() // every item takes bytes, so the file's length bounds the loop
    }

    fn dimension(&mut self) -> Result<Dimension, Error> {
        Ok(Dimension { name: self.name()?, length: self.count()? })
    }

    fn attribute(&mut self) -> Result<Attribute, Error> {
        let name = self.name()?;
        let kind = self.kind()?;
        let count = self.count()?;
        let nbytes =
            count.checked_mul(kind.nbytes()).ok_or_else(|| self.invalid("an attribute too large"))?;
        let bytes = self.padded(nbytes)?;
        let value = if kind == Kind(2) { text(bytes) } else { numbers(kind, count, bytes) };
        Ok(Attribute { name, value: Ok(value) })
    }

    fn variable(&mut self) -> Result<Variable, Error> {
        let name = self.name()?;
        let ndim = self.count()?;
        if ndim > MAX_NDIM {
            return Err(Error::TooMany { what: "dimensions of a NetCDF variable", limit: MAX_NDIM });
        }
        let mut dimensions = Vec::new();
        for _ in 0..ndim {
            dimensions.push(usize::try_from(self.count()?).unwrap_or(usize::MAX));
        }
        let attributes = self.list(0x0C, Self::attribute)?;
        let kind = self.kind()?;
        self.count()?; // vsize: it overflows, so it cannot be trusted
        let begin = self.number(if self.wide_offsets { 8 } else { 4 })?;
        Ok(Variable { name, dimensions, attributes, kind, begin })
    }

    fn kind(&mut self) -> Result<Kind, Error> {
        let number = self.number(4)?;
        if !(1..=11).contains(&number) {
            return Err(self.invalid(format!("type {number} is not one of the format's eleven")));
        }
        Ok(Kind(number))
    }

    fn name(&mut self) -> Result<String, Error> {
        let length = self.count()?;
        let bytes = self.padded(length)?;
        // some writers count a zero byte
        let text = bytes.split(|&byte| byte == 0).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(text).into_owned())
    }

    fn count(&mut self) -> Result<u64, Error> {
        self.number(if self.wide { 8 } else { 4 })
    }

    fn number(&mut self, width: usize) -> Result<u64, Error> {
        Ok(self.take(width)?.iter().fold(0, |value, &byte| value << 8 | u64::from(byte)))
    }

    /// Bytes, padded to a multiple of four.
    fn padded(&mut self, nbytes: u64) -> Result<Vec<u8>, Error> {
        let length = usize::try_from(nbytes).unwrap_or(usize::MAX);
        let bytes = self.take(length)?.to_vec();
        let padding = bytes.len().next_multiple_of(4) - bytes.len();
        self.take(padding)?;
        Ok(bytes)
    }

    fn take(&mut self, length: usize) -> Result<&[u8], Error> {
        let start = self.position;
        let stop = start.saturating_add(length);
        if stop > self.bytes.len() {
            return Err(self.lacking(length as u64, stop as u64));
        }
        self.position = stop;
        Ok(self.bytes.get(start..stop).unwrap_or_default())
    }

    /// The window is too short, or the file itself is.
    fn lacking(&self, length: u64, stop: u64) -> Error {
        let offset = self.position as u64;
        let file_length = self.pages.file_length();
        if stop > file_length {
            return Error::Truncated { what: WHAT, offset, length, file_length };
        }
        Error::NotHeld { offset }
    }

    fn invalid(&self, problem: impl Into<String>) -> Error {
        Error::invalid(WHAT, self.position as u64, problem)
    }
}

/// Text of an attribute. Empty text takes one zero byte, because no string type has 0 bytes.
fn text(mut bytes: Vec<u8>) -> Value {
    if bytes.is_empty() {
        bytes.push(0);
    }
    let nbytes = bytes.len() as u64;
    let element = Element::FixedString { nbytes, padding: StringPadding::NullPadded, charset: Charset::Utf8 };
    Value { element, shape: Some(Vec::new()), bytes, heap: Vec::new() }
}

fn numbers(kind: Kind, count: u64, bytes: Vec<u8>) -> Value {
    Value { element: kind.element(), shape: Some(vec![count]), bytes, heap: Vec::new() }
}
