//! Compressed images: a table with one row for each chunk, which the standard calls a tile (FITS Standard 4.0, section
//! 10).
//!
//! The bytes of a chunk are in the heap. One of three columns leads to them and tells how they are encoded. Chunks at
//! the image's end are stored cut. So each axis has a part in whole chunks and a rest, and the image has a segment for
//! each combination of parts.

use std::borrow::Cow;

use hyperslab_core::{
    Array, ByteOrder, ByteRange, ChunkGrid, Codec, Dither, Element, Fill, Manifest, Quantum, Segment,
    SegmentAxis, StoredChunk, Unreadable, known,
};

use super::hdu::Hdu;
use super::image;
use super::table::{Column, column_nbytes, columns};
use crate::error::Error;
use crate::pages::Pages;
use crate::segment::gridded;

const WHAT: &str = "the table of a compressed FITS image";
/// Cards that describe how the image is stored.
const STRUCTURE: [&str; 18] = [
    "TFIELDS", "TTYPE", "TFORM", "TDIM", "THEAP", "ZIMAGE", "ZSIMPLE", "ZTENSION", "ZEXTEND", "ZBITPIX",
    "ZNAXIS", "ZTILE", "ZCMPTYPE", "ZNAME", "ZVAL", "ZPCOUNT", "ZGCOUNT", "ZBLOCKED",
];
/// How many axes may have a cut chunk. There is a segment for each combination.
const MAX_CUT_AXES: usize = 8;
/// How many random numbers the dither uses. A chunk starts at the number of its row.
const RANDOM_COUNT: u64 = 10_000;

/// The result for one image. The outer error means that bytes are not held yet, or could not be fetched.
type Found<T> = Result<Result<T, Unreadable>, Error>;

/// The image that a table holds.
pub(super) fn image(pages: &Pages<'_>, hdu: &Hdu) -> Found<Array> {
    let described = image::number_element(hdu.cards.integer("ZBITPIX")).and_then(|element| {
        let mut shape = hdu.cards.axes("ZNAXIS", hdu.data_offset)?;
        shape.reverse();
        Ok((element, shape))
    });
    let (element, shape) = match described {
        Ok(described) => described,
        Err(reason) => return Ok(Err(reason)),
    };
    let segments = match Rows::read(pages, hdu)? {
        Ok(rows) => {
            let gzip_nbytes = first_gzip_nbytes(pages, &rows)?;
            segments(hdu, &rows, &shape, &element, gzip_nbytes)
        }
        Err(reason) => Err(reason),
    };
    Ok(Ok(image::array(hdu, shape, element, segments, &STRUCTURE)))
}

/// The decoded size of the first chunk, from gzip's last four bytes (RFC 1952), if it is a gzip stream. Old writers
/// coded integers of any width as 4 bytes, and no card tells.
fn first_gzip_nbytes(pages: &Pages<'_>, rows: &Rows<'_>) -> Result<Option<u64>, Error> {
    let Ok(Some(range)) = rows.range(0, "COMPRESSED_DATA") else { return Ok(None) };
    let Some(trailer) = range.end().checked_sub(4).filter(|&trailer| trailer >= range.offset) else {
        return Ok(None);
    };
    match pages.bytes(WHAT, trailer, 4) {
        Err(Error::Truncated { .. }) => Ok(None), // reading the chunk will report this
        bytes => Ok(Some(bytes?.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))),
    }
}

/// The table's rows, and the location of the heap.
struct Rows<'p> {
    bytes: Cow<'p, [u8]>,
    row_nbytes: usize,
    columns: Vec<Column>,
    heap: ByteRange,
}

impl<'p> Rows<'p> {
    fn read(pages: &'p Pages<'_>, hdu: &Hdu) -> Found<Self> {
        let columns = match columns(hdu) {
            Ok(columns) => columns,
            Err(reason) => return Ok(Err(reason)),
        };
        let lengths = (hdu.cards.naxis(0).unwrap_or(0), hdu.cards.naxis(1).unwrap_or(0));
        let width = columns.last().map_or(0, |last| last.offset.saturating_add(last.nbytes));
        let (Some(nbytes), Some(data_nbytes)) = (lengths.0.checked_mul(lengths.1), hdu.cards.data_nbytes())
        else {
            return Ok(Err(Unreadable::damaged("a table larger than any file")));
        };
        let heap_offset =
            hdu.cards.integer("THEAP").map_or(Some(nbytes), |offset| u64::try_from(offset).ok());
        let heap = heap_offset.and_then(|offset| {
            let length = data_nbytes.checked_sub(offset)?;
            ByteRange::new(hdu.data_offset.checked_add(offset)?, length).ok()
        });
        let (Some(heap), true) = (heap, width <= lengths.0 && lengths.0 > 0) else {
            return Ok(Err(Unreadable::damaged("a table whose columns or heap reach past its end")));
        };
        let bytes = match pages.bytes(WHAT, hdu.data_offset, nbytes) {
            Err(error @ Error::Truncated { .. }) => return Ok(Err(error.into())),
            bytes => bytes?,
        };
        let row_nbytes = usize::try_from(lengths.0).unwrap_or(usize::MAX);
        Ok(Ok(Self { bytes, row_nbytes, columns, heap }))
    }

    fn column(&self, name: &str) -> Option<&Column> {
        self.columns.iter().find(|column| column.name.eq_ignore_ascii_case(name))
    }

    fn field(&self, row: usize, column: &Column) -> Option<&[u8]> {
        let start = row.checked_mul(self.row_nbytes)?.checked_add(usize::try_from(column.offset).ok()?)?;
        self.bytes.get(start..start.checked_add(usize::try_from(column.nbytes).ok()?)?)
    }

    /// Where a column's descriptor leads; `None` if it is empty or there is no such column.
    fn range(&self, row: usize, name: &str) -> Result<Option<ByteRange>, Unreadable> {
        let Some(column) = self.column(name) else { return Ok(None) };
        let damaged =
            || Unreadable::damaged(format!("row {row} of column {name} does not point into the heap"));
        let field = self.field(row, column).ok_or_else(damaged)?;
        let (count, offset) = match (column.code, field.len()) {
            ('P', 8) | ('Q', 16) => field.split_at(field.len() / 2),
            _ => return Err(damaged()),
        };
        let length = column_nbytes(unsigned(count), column.heap_code.unwrap_or(' ')).ok_or_else(damaged)?;
        let offset = unsigned(offset);
        if length == 0 {
            return Ok(None);
        }
        let end = offset.checked_add(length).filter(|&end| end <= self.heap.length).ok_or_else(damaged)?;
        Ok(Some(ByteRange { offset: self.heap.offset + offset, length: end - offset }))
    }

    /// The number for a row, from a column or from a card for all rows.
    fn number(&self, hdu: &Hdu, row: usize, name: &str) -> Option<f64> {
        let Some(column) = self.column(name) else { return hdu.cards.number(name) };
        let field = self.field(row, column)?;
        match (column.code, field.len()) {
            ('D', 8) => field.first_chunk().map(|&bytes| f64::from_be_bytes(bytes)),
            ('E', 4) => field.first_chunk().map(|&bytes| f64::from(f32::from_be_bytes(bytes))),
            ('J', 4) => field.first_chunk().map(|&bytes| f64::from(i32::from_be_bytes(bytes))),
            _ => None,
        }
    }
}

fn unsigned(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, &byte| value << 8 | u64::from(byte))
}

/// How the image's chunks are encoded.
struct Coding {
    /// Gzip first, if some chunks use only gzip; then the image's own method.
    codecs: Vec<Codec>,
    /// The codecs that chunks in the column `COMPRESSED_DATA` skip.
    compressed_mask: u32,
    dither: Option<Dither>,
}

impl Coding {
    /// By sections 10.2, 10.3.1 and 10.4.
    fn of(hdu: &Hdu, rows: &Rows<'_>, element: &Element, has_wide_gzip: bool) -> Result<Self, Unreadable> {
        let has = |name: &str| rows.column(name).is_some() || hdu.cards.number(name).is_some();
        let is_float = matches!(element, Element::Float { .. });
        let is_scaled = has("ZSCALE");
        if is_scaled && !is_float {
            return Err(Unreadable::unsupported("a compressed image of scaled integers"));
        }
        let dither = match hdu.cards.text("ZQUANTIZ").map(str::trim) {
            _ if !is_scaled => None,
            None | Some("NO_DITHER") => Some(Dither::None),
            Some("SUBTRACTIVE_DITHER_1") => Some(Dither::Subtractive),
            Some("SUBTRACTIVE_DITHER_2") => Some(Dither::KeepingZeros),
            Some(other) => return Err(Unreadable::unsupported(format!("an image quantized by {other}"))),
        };
        let fallback = rows.column("GZIP_COMPRESSED_DATA").map(|_| Codec::known(&known::gzip));
        let compressed_mask = u32::from(fallback.is_some());
        let quantize =
            dither.map(|dither| Codec::Quantize { chunks: Vec::new(), dither, decoded: element.clone() });
        let encoded = if is_scaled { Element::integer(4, true, ByteOrder::Big) } else { element.clone() };
        let own = method(hdu, &encoded, has_wide_gzip)?;
        let codecs = fallback.into_iter().chain(quantize).chain(own).collect();
        Ok(Self { codecs, compressed_mask, dither })
    }

    /// The codec chain of the chunks in these rows.
    fn with_quanta(&self, quanta: Vec<Quantum>) -> Vec<Codec> {
        let mut codecs = self.codecs.clone();
        if let Some(Codec::Quantize { chunks, .. }) =
            codecs.iter_mut().find(|codec| matches!(codec, Codec::Quantize { .. }))
        {
            *chunks = quanta;
        }
        codecs
    }

    /// The bytes of a row, and the codecs that they skipped.
    fn chunk(&self, rows: &Rows<'_>, row: usize) -> Result<(ByteRange, u32), Unreadable> {
        let all = (1_u32 << self.codecs.len()) - 1;
        let columns = [
            ("COMPRESSED_DATA", self.compressed_mask),
            ("GZIP_COMPRESSED_DATA", all & !1),
            ("UNCOMPRESSED_DATA", all),
        ];
        for (name, mask) in columns {
            if let Some(range) = rows.range(row, name)? {
                return Ok((range, mask));
            }
        }
        Err(Unreadable::damaged(format!("row {row} of a compressed image has no bytes")))
    }
}

/// The codecs of `ZCMPTYPE`, over this element.
fn method(hdu: &Hdu, element: &Element, has_wide_gzip: bool) -> Result<Vec<Codec>, Unreadable> {
    match hdu.cards.text("ZCMPTYPE").map_or("of unnamed method", str::trim) {
        "NOCOMPRESS" => Ok(Vec::new()),
        "GZIP_1" if has_wide_gzip && matches!(element, Element::Integer { .. }) => {
            let coded = Element::integer(4, true, ByteOrder::Big);
            Ok(converted(coded, element).into_iter().chain([Codec::known(&known::gzip)]).collect())
        }
        "GZIP_1" => Ok(vec![Codec::known(&known::gzip)]),
        "GZIP_2" => Ok(vec![Codec::Shuffle { element_nbytes: element.nbytes() }, Codec::known(&known::gzip)]),
        "RICE_1" | "RICE_ONE" if !matches!(element, Element::Float { .. }) => {
            let positive =
                |name, default| u64::try_from(parameter(hdu, name).unwrap_or(default)).unwrap_or(0);
            let element_nbytes = positive("BYTEPIX", 4);
            let coded = Element::integer(element_nbytes, element_nbytes > 1, ByteOrder::Big);
            let narrow = |value| u32::try_from(value).unwrap_or(u32::MAX);
            let rice = Codec::with(&known::rice, [narrow(element_nbytes), narrow(positive("BLOCKSIZE", 32))]);
            Ok(converted(coded, element).into_iter().chain([rice]).collect())
        }
        "PLIO_1" if !matches!(element, Element::Float { .. }) => {
            let coded = Element::integer(4, true, ByteOrder::Big);
            Ok(converted(coded, element).into_iter().chain([Codec::known(&known::plio)]).collect())
        }
        other => Err(Unreadable::unsupported(format!("a compressed image ({other})"))),
    }
}

/// Integers that are coded wider or narrower than the image's elements.
fn converted(stored: Element, decoded: &Element) -> Option<Codec> {
    let decoded = decoded.clone();
    (stored != decoded).then_some(Codec::FixedScaleOffset { scale: 1.0, offset: 0.0, stored, decoded })
}

/// A parameter of the method: the `ZVALn` whose `ZNAMEn` is `name`.
fn parameter(hdu: &Hdu, name: &str) -> Option<i64> {
    let number = (1..100).take_while(|number| hdu.cards.text(&format!("ZNAME{number}")).is_some());
    let mut named =
        number.filter(|number| hdu.cards.text(&format!("ZNAME{number}")).map(str::trim) == Some(name));
    named.next().and_then(|number| hdu.cards.integer(&format!("ZVAL{number}")))
}

/// A part of an axis in chunks of one length.
#[derive(Clone, Copy)]
struct Part {
    origin: u64,
    length: u64,
    chunk_length: u64,
    first_chunk: u64,
}

/// The part of an axis in whole chunks, and the rest.
fn parts(length: u64, chunk_length: u64) -> Vec<Part> {
    let (count, rest) = (length / chunk_length, length % chunk_length);
    let origin = length - rest;
    let whole = Part { origin: 0, length: origin, chunk_length, first_chunk: 0 };
    let rest = Part { origin, length: rest, chunk_length: rest, first_chunk: count };
    [whole, rest].into_iter().filter(|part| part.length > 0).collect()
}

/// The lengths of chunks in C order: `ZTILEn`, by default rows of the image.
fn chunk_shape(hdu: &Hdu, shape: &[u64]) -> Result<Vec<u64>, Unreadable> {
    let axis = |(number, &length): (usize, &u64)| {
        let keyword = format!("ZTILE{number}");
        let default = if number == 1 { Some(length) } else { Some(1) };
        let found = hdu.cards.integer(&keyword).map_or(default, |found| u64::try_from(found).ok());
        let found = found
            .filter(|&found| found > 0)
            .ok_or_else(|| Unreadable::damaged(format!("{keyword} is invalid")))?;
        Ok(found.min(length))
    };
    let mut lengths = (1..).zip(shape.iter().rev()).map(axis).collect::<Result<Vec<u64>, Unreadable>>()?;
    lengths.reverse();
    Ok(lengths)
}

fn segments(
    hdu: &Hdu,
    rows: &Rows<'_>,
    shape: &[u64],
    element: &Element,
    gzip_nbytes: Option<u64>,
) -> Result<Vec<Segment>, Unreadable> {
    if shape.contains(&0) {
        return Ok(Vec::new());
    }
    let chunk_shape = chunk_shape(hdu, shape)?;
    let whole = ChunkGrid::new(shape.to_vec(), chunk_shape.clone())?;
    let row_count = (rows.bytes.len() / rows.row_nbytes) as u64;
    if whole.chunk_count() > row_count {
        return Err(Unreadable::damaged(format!("{row_count} rows for {} chunks", whole.chunk_count())));
    }
    let has_wide_gzip = gzip_nbytes == whole.chunk_element_count().checked_mul(4);
    let coding = Coding::of(hdu, rows, element, has_wide_gzip)?;
    let axes: Vec<Vec<Part>> =
        shape.iter().zip(&chunk_shape).map(|(&length, &chunk)| parts(length, chunk)).collect();
    if axes.iter().filter(|parts| parts.len() > 1).count() > MAX_CUT_AXES {
        return Err(Unreadable::unsupported(format!(
            "a compressed image with more than {MAX_CUT_AXES} axes cut by chunks"
        )));
    }
    let boxes = axes.iter().fold(vec![Vec::new()], |boxes: Vec<Vec<Part>>, parts| {
        boxes
            .iter()
            .flat_map(|before| parts.iter().map(|&part| [before.clone(), vec![part]].concat()))
            .collect()
    });
    boxes.iter().map(|parts| segment(hdu, rows, &coding, &whole, parts, element)).collect()
}

/// The chunks of one box of the image.
fn segment(
    hdu: &Hdu,
    rows: &Rows<'_>,
    coding: &Coding,
    whole: &ChunkGrid,
    parts: &[Part],
    element: &Element,
) -> Result<Segment, Unreadable> {
    let shape: Vec<u64> = parts.iter().map(|part| part.length).collect();
    let chunk_shape: Vec<u64> = parts.iter().map(|part| part.chunk_length).collect();
    let mut segment = gridded(&shape, chunk_shape, element, &Fill::Zero, Vec::new(), Manifest::empty())?;
    let (mut chunks, mut quanta) = (Vec::new(), Vec::new());
    for index in 0..segment.grid.chunk_count() {
        let inner = segment.grid.chunk_index(index)?;
        let outer: Vec<u64> = inner.iter().zip(parts).map(|(chunk, part)| chunk + part.first_chunk).collect();
        let row = whole.linear_index(&outer)?;
        let position = usize::try_from(row).unwrap_or(usize::MAX);
        let (range, filter_mask) = coding.chunk(rows, position)?;
        chunks.push(StoredChunk { index, file: 0, range, filter_mask });
        if coding.dither.is_some() {
            quanta.push(quantum(hdu, rows, position));
        }
    }
    let origin: Vec<u64> = parts.iter().map(|part| part.origin).collect();
    segment.axes = SegmentAxis::of_box(&origin, &shape, &vec![0; shape.len()])?;
    segment.codecs = coding.with_quanta(quanta);
    segment.manifest = Manifest::of_chunks(chunks).into();
    Ok(segment)
}

/// The scale of a row, and the start of its random numbers: section 10.2.1 counts rows and `ZDITHER0` from 1.
fn quantum(hdu: &Hdu, rows: &Rows<'_>, row: usize) -> Quantum {
    let number = |name| rows.number(hdu, row, name);
    let seed = hdu.cards.integer("ZDITHER0").and_then(|seed| u64::try_from(seed).ok()).unwrap_or(1);
    let start = (row as u64).wrapping_add(seed).wrapping_sub(1) % RANDOM_COUNT;
    #[allow(clippy::cast_possible_truncation)] // a 32-bit integer that was stored as a float
    let null = number("ZBLANK").map(|value| value as i32);
    Quantum {
        scale: number("ZSCALE").unwrap_or(1.0),
        zero: number("ZZERO").unwrap_or(0.0),
        null,
        dither_start: u32::try_from(start).unwrap_or(0),
    }
}
