//! Chunked elements: the table of chunks, and the chunks in it (`hchunks.h`).

use hyperslab_core::{Element, Fill, Manifest, Segment, StoredChunk, Unreadable};

use super::descriptors::small;
use super::file::{File, Segments};
use super::pieces::{self, Located, locate};
use super::special::{Chunked, Coder};
use super::vdata;
use crate::cursor::Cursor;
use crate::error::Error;
use crate::pieces::Pieces;
use crate::rounds::gather;
use crate::segment::{array_nbytes, gridded, stored};

const WHAT: &str = "an HDF4 chunk table";

/// One row of the table.
struct Entry {
    chunk_index: Vec<u64>,
    tag: u16,
    reference: u16,
}

/// The chunks of a chunked array.
pub(super) fn segments(
    file: &File<'_>,
    chunked: &Chunked,
    shape: &[u64],
    element: &Element,
    fill: &Fill,
) -> Result<Segments, Error> {
    let chunk_shape: Vec<u64> = chunked.axes.iter().map(|&(_, chunk)| chunk).collect();
    let (chunk_shape, element_nbytes) = match (chunk_shape.len().checked_sub(shape.len()), chunk_shape) {
        (Some(0), chunk_shape) => (chunk_shape, chunked.element_nbytes),
        _ => return Ok(Err(Unreadable::damaged("the chunks and the array have different axes"))),
    };
    if element_nbytes != element.nbytes() {
        let problem = format!("chunks of elements {element_nbytes} bytes wide do not fit the array");
        return Ok(Err(Unreadable::damaged(problem)));
    }
    let own_fill =
        if chunked.fill.len() as u64 == element.nbytes() { &Fill::Value(chunked.fill.clone()) } else { fill };
    let codecs = || chunked.coder.codecs(element_nbytes);
    let make = |manifest| gridded(shape, chunk_shape.clone(), element, own_fill, codecs(), manifest);
    let empty = match make(Manifest::empty()) {
        Ok(segment) => segment,
        Err(reason) => return Ok(Err(reason)),
    };
    let chunk_nbytes = array_nbytes(&chunk_shape, element).unwrap_or(u64::MAX);
    let entries = entries(file, chunked.table, chunk_shape.len())?;
    let found = gather(&entries, |entry| chunk(file, chunked, entry, chunk_nbytes))?;
    Ok(manifest(file, &empty, &entries, found)?.and_then(make).map(|segment| vec![segment]))
}

fn manifest(
    file: &File<'_>,
    empty: &Segment,
    entries: &[Entry],
    found: Vec<Option<Pieces>>,
) -> Result<Result<Manifest, Unreadable>, Error> {
    let mut chunks: Vec<StoredChunk> = Vec::new();
    let mut scattered = Vec::new();
    for (entry, pieces) in entries.iter().zip(found) {
        let Some(pieces) = pieces else { continue };
        let Ok(index) = empty.grid.linear_index(&entry.chunk_index) else {
            let problem =
                format!("the table lists chunk {:?}, which the array does not have", entry.chunk_index);
            return Ok(Err(Unreadable::damaged(problem)));
        };
        match pieces.range() {
            Some(range) => chunks.push(stored(index, pieces.file, range)),
            None => scattered.push((index, pieces)),
        }
    }
    let mut manifest = Manifest::of_chunks(chunks);
    let scattered =
        gather(scattered, |(index, pieces)| Ok((index, pieces::bytes(&pieces, file, "an HDF4 chunk")?)))?;
    for (index, bytes) in scattered {
        manifest.insert_inline(index, bytes);
    }
    Ok(Ok(manifest))
}

fn entries(file: &File<'_>, table: u16, ndim: usize) -> Result<Vec<Entry>, Error> {
    let table = vdata::read(file, table)?;
    let record_nbytes = 4 * ndim + 4;
    if !table.class.starts_with("_HDF_CHK_TBL_0") || table.record_nbytes != record_nbytes as u64 {
        return Err(Error::invalid(
            WHAT,
            0,
            format!("a Vdata of class {:?} is not a chunk table", table.class),
        ));
    }
    let bytes = table.records(file)?;
    let entry = |record: &[u8]| {
        let mut cursor = Cursor::new(WHAT, 0, record);
        let chunk_index: Result<Vec<u64>, Error> = (0..ndim).map(|_| cursor.uint_be(4)).collect();
        let tag = small(cursor.uint_be(2)?);
        Ok(Entry { chunk_index: chunk_index?, tag, reference: small(cursor.uint_be(2)?) })
    };
    bytes.chunks_exact(record_nbytes).map(entry).collect()
}

/// The stored bytes of a chunk. In a compressed array, each chunk is a compressed element.
fn chunk(
    file: &File<'_>,
    chunked: &Chunked,
    entry: &Entry,
    chunk_nbytes: u64,
) -> Result<Option<Pieces>, Error> {
    match locate(file, entry.tag, entry.reference)? {
        Located::Nothing => Ok(None),
        Located::Compressed(pieces, coder) if coder == chunked.coder => Ok(Some(pieces)),
        Located::Plain(pieces) if chunked.coder == Coder::None && pieces.nbytes() >= chunk_nbytes => {
            Ok(Some(pieces.truncated(chunk_nbytes)))
        }
        _ => Err(Error::invalid("an HDF4 chunk", 0, "it is stored differently from its array")),
    }
}
