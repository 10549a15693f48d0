//! From an array's layout to its segments.

use hyperslab_core::{ByteRange, Codec, Element, Fill, Manifest, Segment, StoredChunk, Unreadable};

use super::layout::{ChunkedLayout, Layout};
use crate::segment;

/// What an array's segments need besides the chunks themselves.
#[derive(Clone, Debug)]
pub(crate) struct Storage {
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its elements.
    pub element: Element,
    /// Its filters.
    pub codecs: Vec<Codec>,
    /// Its fill value.
    pub fill: Fill,
}

impl Storage {
    /// The segment of a layout that needs no index.
    pub fn plain(&self, layout: &Layout, file_length: u64) -> Result<Vec<Segment>, Unreadable> {
        let nbytes = segment::array_nbytes(&self.shape, &self.element).ok_or_else(segment::too_large)?;
        let manifest = match layout {
            Layout::Compact(bytes) => compact(bytes, nbytes)?,
            Layout::Contiguous { address, length } => contiguous(*address, *length, nbytes, file_length)?,
            Layout::Chunked(_) | Layout::Virtual { .. } => Manifest::empty(),
        };
        self.segment(segment::one_chunk(&self.shape), Vec::new(), manifest).map(|segment| vec![segment])
    }

    /// The segment of chunks.
    pub fn chunks(
        &self,
        layout: &ChunkedLayout,
        found: Vec<StoredChunk>,
    ) -> Result<Vec<Segment>, Unreadable> {
        let (width, expected) = (layout.element_nbytes, self.element.nbytes());
        if width != expected {
            let problem = format!(
                "chunks with elements of {width} bytes in an array with elements of {expected} bytes"
            );
            return Err(Unreadable::damaged(problem));
        }
        let count = found.len() as u64;
        let manifest = Manifest::of_chunks(found);
        if manifest.chunk_count() < count {
            return Err(Unreadable::damaged("its index has two chunks at one position of the array"));
        }
        let mut segment = self.segment(layout.chunk_shape.clone(), self.codecs.clone(), manifest)?;
        segment.plain_edge_chunks = layout.plain_edge_chunks;
        Ok(vec![segment])
    }

    fn segment(
        &self,
        chunk_shape: Vec<u64>,
        codecs: Vec<Codec>,
        manifest: Manifest,
    ) -> Result<Segment, Unreadable> {
        segment::gridded(&self.shape, chunk_shape, &self.element, &self.fill, codecs, manifest)
    }
}

fn compact(bytes: &[u8], nbytes: u64) -> Result<Manifest, Unreadable> {
    let needed = usize::try_from(nbytes).ok().and_then(|nbytes| bytes.get(..nbytes));
    let needed = needed.ok_or_else(|| too_few(bytes.len() as u64, nbytes))?;
    Ok(Manifest::of_inline(needed.to_vec()))
}

fn too_few(stored: u64, nbytes: u64) -> Unreadable {
    Unreadable::damaged(format!("{stored} bytes are stored, but {nbytes} are needed"))
}

fn contiguous(
    address: Option<u64>,
    stored: Option<u64>,
    nbytes: u64,
    file_length: u64,
) -> Result<Manifest, Unreadable> {
    let Some(offset) = address.filter(|_| nbytes > 0) else { return Ok(Manifest::empty()) };
    if let Some(stored) = stored.filter(|&stored| stored < nbytes) {
        return Err(too_few(stored, nbytes));
    }
    if offset.checked_add(nbytes).is_none_or(|end| end > file_length) {
        let problem =
            format!("its {nbytes} bytes at offset {offset} reach past the end of the file, {file_length}");
        return Err(Unreadable::damaged(problem));
    }
    let range = ByteRange { offset, length: nbytes };
    Ok(Manifest::of_chunks(vec![segment::stored(0, 0, range)]))
}
