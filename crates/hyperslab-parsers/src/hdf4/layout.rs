//! From the pieces of an object to the chunks of an array.

use hyperslab_core::{Element, Fill, Manifest, Unreadable};

use super::chunked;
use super::file::{File, Segments};
use super::pieces::{self, Located};
use crate::error::Error;
use crate::pieces::{addressed, grid_over};
use crate::segment::{array_nbytes, gridded, one_chunk, stored, too_large};

const WHAT: &str = "the data of an HDF4 array";
/// Smaller chunks are not worth a request each if all bytes fit into the metadata.
const LEAST_CHUNK_NBYTES: u64 = 512;

/// The chunks of an array whose data have been located.
pub(super) fn segments(
    file: &File<'_>,
    located: &Located,
    shape: &[u64],
    element: &Element,
    fill: &Fill,
) -> Result<Segments, Error> {
    let made = made(file, located, shape, element, fill);
    match made {
        Err(error) if error.is_not_held() => Err(error),
        Err(error) => Ok(Err(error.into())),
        Ok(segments) => Ok(segments),
    }
}

fn made(
    file: &File<'_>,
    located: &Located,
    shape: &[u64],
    element: &Element,
    fill: &Fill,
) -> Result<Segments, Error> {
    let Some(nbytes) = array_nbytes(shape, element) else {
        return Ok(Err(too_large()));
    };
    if nbytes == 0 {
        return Ok(Ok(Vec::new()));
    }
    match located {
        Located::Nothing => Ok(Ok(Vec::new())), // the array's fill value
        Located::Plain(pieces) if pieces.nbytes() < nbytes => {
            let problem = format!("{} bytes are stored, but the array has {nbytes}", pieces.nbytes());
            Ok(Err(Unreadable::damaged(problem)))
        }
        Located::Plain(pieces) => {
            let pieces = pieces.truncated(nbytes);
            let is_small = pieces.nbytes() <= pieces::MAX_INLINE_NBYTES;
            let least = if is_small { LEAST_CHUNK_NBYTES } else { 1 };
            let (chunk_shape, manifest) = match grid_over(&pieces, shape, element, least) {
                Some(chunk_shape) => (chunk_shape.clone(), addressed(&pieces, &chunk_shape, element)),
                None => (one_chunk(shape), Manifest::of_inline(pieces::bytes(&pieces, file, WHAT)?)),
            };
            Ok(gridded(shape, chunk_shape, element, fill, Vec::new(), manifest).map(|segment| vec![segment]))
        }
        Located::Compressed(pieces, coder) => {
            let manifest = match pieces.range() {
                Some(range) => Manifest::of_chunks(vec![stored(0, pieces.file, range)]),
                None => Manifest::of_inline(pieces::bytes(pieces, file, WHAT)?),
            };
            let segment =
                gridded(shape, one_chunk(shape), element, fill, coder.codecs(element.nbytes()), manifest);
            Ok(segment.map(|segment| vec![segment]))
        }
        Located::Chunked(chunked) => chunked::segments(file, chunked, shape, element, fill),
    }
}
