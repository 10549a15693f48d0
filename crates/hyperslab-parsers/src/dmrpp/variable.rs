//! A variable of a document as an array: its elements, its chunks, and the value of missing chunks.

use std::borrow::Cow;
use std::io::Read;

use hyperslab_core::{
    Array, ByteOrder, Checksum, ChunkGrid, Codec, Element, Fill, Manifest, Notes, Role, Segment, StoredChunk,
    Unreadable, VirtualMappings, known,
};

use super::linked::DATA_FILE;
use super::names::{Names, Scope};
use super::values::{element, fill, fixed_text, words};
use super::xml::{ChunkLocation, Node, numbers};
use super::{linked, values};
use crate::segment::{array_nbytes, gridded, one_chunk, stored, too_large};
use crate::zarr::base64::decoded;

/// How often text values may be repeated.
const MAX_WORDS: u64 = 1 << 22;

/// A variable. Fails if not even its shape or elements are known.
pub(super) fn array(
    node: &Node,
    names: &Names<'_>,
    scope: Scope<'_>,
    has_version: bool,
) -> Result<Array, Unreadable> {
    let (shape, dimensions) = names.shape(node, scope)?;
    let storage = Storage::of(node, has_version);
    let (element, held) = storage.element(names, scope, &shape)?;
    let fill = storage.fill(&element);
    let segments = match held {
        Some(bytes) => whole(&shape, &element, Manifest::of_inline(bytes), Vec::new()),
        None => storage.segments(&shape, &element, &fill),
    };
    Ok(Array {
        max_shape: shape.iter().map(|&length| Some(length)).collect(),
        shape: Some(shape),
        element,
        fill,
        is_chunked: storage.chunks.is_some_and(|chunks| chunks.child("chunkDimensionSizes").is_some()),
        notes: Notes::default(),
        segments,
        virtual_mappings: VirtualMappings::NONE,
        role: Role::Plain,
        dimensions,
        attributes: values::attributes(node),
    })
}

/// A single chunk for the whole array.
fn whole(
    shape: &[u64],
    element: &Element,
    manifest: Manifest,
    codecs: Vec<Codec>,
) -> Result<Vec<Segment>, Unreadable> {
    Ok(vec![gridded(shape, one_chunk(shape), element, &Fill::Undefined, codecs, manifest)?])
}

/// All elements in the document itself, in base64.
fn held_here(
    held: &Node,
    shape: &[u64],
    element: &Element,
    nbytes: u64,
    is_deflated: bool,
) -> Result<Vec<Segment>, Unreadable> {
    let bytes = decoded(&held.text).ok_or_else(|| Unreadable::damaged("damaged base64"))?;
    if !is_deflated && bytes.len() as u64 != nbytes {
        let problem = format!("{} of {nbytes} bytes are in the document", bytes.len());
        return Err(Unreadable::damaged(problem));
    }
    let codecs = if is_deflated { vec![Codec::known(&known::zlib)] } else { Vec::new() };
    whole(shape, element, Manifest::of_inline(bytes), codecs)
}

/// Where a variable's bytes are.
struct Storage<'n> {
    node: &'n Node,
    chunks: Option<&'n Node>,
    order: ByteOrder,
    has_version: bool,
}

impl<'n> Storage<'n> {
    fn of(node: &'n Node, has_version: bool) -> Self {
        let chunks = node.child("chunks");
        let order = match chunks.and_then(|chunks| chunks.attribute("byteOrder")) {
            Some("BE") => ByteOrder::Big,
            _ => ByteOrder::Little,
        };
        Self { node, chunks, order, has_version }
    }

    fn setting(&self, name: &str) -> Option<&'n str> {
        self.chunks.and_then(|chunks| chunks.attribute(name))
    }

    /// The locations of chunks. An array in one piece may have them without a `chunks` element.
    fn locations(&self) -> impl Iterator<Item = &'n ChunkLocation> {
        self.chunks.map(|chunks| &chunks.chunks).into_iter().flatten().chain(&self.node.chunks)
    }

    /// The type of the elements; and their bytes, if the type follows from them, as for text.
    fn element(
        &self,
        names: &Names<'_>,
        scope: Scope<'_>,
        shape: &[u64],
    ) -> Result<(Element, Option<Vec<u8>>), Unreadable> {
        if !matches!(self.node.name.as_str(), "String" | "URL" | "Url") {
            let offsets = numbers(self.setting("structOffset").unwrap_or_default());
            let offsets =
                offsets.ok_or_else(|| Unreadable::damaged("offsets of fields that are not numbers"))?;
            return Ok((element(self.node, names, scope, self.order, &offsets)?, None));
        }
        let marked = |node: &Node| node.child("FixedLengthStringArray").and_then(fixed_text);
        if let Some(element) = marked(self.node).or_else(|| self.chunks.and_then(marked)) {
            return Ok((element, None));
        }
        if let Some(listed) = self.node.child("vlsa") {
            return listed_words(listed, shape, names).map(|(element, bytes)| (element, Some(bytes)));
        }
        let text = |nbytes: u64| (crate::attribute::text_element(nbytes.max(1)), None);
        let mut locations = self.locations();
        match (self.node.child("compact"), locations.next(), locations.next()) {
            (Some(compact), _, _) if shape.is_empty() => {
                let bytes = decoded(&compact.text).ok_or_else(|| Unreadable::damaged("damaged base64"))?;
                let text = String::from_utf8_lossy(&bytes);
                words(&[text.as_bytes()]).map(|(element, bytes)| (element, Some(bytes))).ok_or_else(too_large)
            }
            (None, Some(location), None) if shape.is_empty() => Ok(text(location.range.length)),
            (None, None, _) => Ok(text(self.setting("fillValue").map_or(1, |text| text.len() as u64))),
            _ => Err(Unreadable::unsupported("text of variable length without a location in the document")),
        }
    }

    fn fill(&self, element: &Element) -> Fill {
        let marked = self.node.children("Attribute");
        let exact = marked
            .filter(|attribute| attribute.attribute("name") == Some("_FillValue"))
            .filter(|attribute| attribute.attribute("type").is_some_and(|kind| kind == self.node.name))
            .find_map(|attribute| attribute.child("Value").map(|value| value.text.as_str()));
        let given = self.setting("fillValue");
        given.and_then(|text| fill(element, text, exact)).map_or(Fill::Undefined, Fill::Value)
    }

    fn segments(&self, shape: &[u64], element: &Element, fill: &Fill) -> Result<Vec<Segment>, Unreadable> {
        let nbytes = array_nbytes(shape, element).ok_or_else(too_large)?;
        if nbytes == 0 {
            return Ok(Vec::new());
        }
        let sizes = self.chunks.and_then(|chunks| chunks.child("chunkDimensionSizes"));
        if let Some(pieces) = linked::blocks(&[self.chunks, Some(self.node)])? {
            if sizes.is_some_and(|sizes| numbers(&sizes.text).as_deref() != Some(shape)) {
                return Err(Unreadable::unsupported("linked blocks that are in chunks"));
            }
            return linked::segments(&pieces, shape, element, fill, self.codecs(element.nbytes()));
        }
        if let Some(held) = self.node.child("compact") {
            return held_here(held, shape, element, nbytes, false);
        }
        if let Some(held) = self.node.child("missingdata") {
            let is_deflated = nbytes != element.nbytes();
            return held_here(held, shape, element, nbytes, is_deflated);
        }
        if self.chunks.is_none() && self.node.chunks.is_empty() {
            return Err(Unreadable::unsupported("an array without bytes in the document"));
        }
        let codecs = self.codecs(element.nbytes());
        let chunk_shape = match sizes {
            None => one_chunk(shape),
            Some(sizes) => {
                let sizes = numbers(&sizes.text).filter(|sizes| sizes.len() == shape.len());
                sizes.ok_or_else(|| Unreadable::damaged("chunks of other dimensions than the array"))?.into()
            }
        };
        let grid = ChunkGrid::new(shape.to_vec(), chunk_shape.clone())?;
        let manifest = self.manifest(&grid)?;
        if manifest.chunk_count() < grid.chunk_count() && *fill == Fill::Undefined {
            return Err(Unreadable::unsupported("an array with missing chunks but no fill value"));
        }
        Ok(vec![gridded(shape, chunk_shape, element, fill, codecs, manifest)?])
    }

    /// The filters in encoding order. Documents without a version list them in any order.
    fn codecs(&self, element_nbytes: u64) -> Vec<Codec> {
        let mut filters: Vec<&str> =
            self.setting("compressionType").unwrap_or_default().split_whitespace().collect();
        if !self.has_version {
            let order = ["shuffle", "deflate", "fletcher32"];
            filters.sort_by_key(|filter| order.iter().position(|known| known == filter));
        }
        let codec = |name: &&str| match *name {
            "shuffle" => Codec::Shuffle { element_nbytes },
            "deflate" => Codec::known(&known::zlib),
            "fletcher32" => Codec::checksum(Checksum::Fletcher32),
            other => Codec::Unknown { number: None, name: other.to_owned() },
        };
        filters.iter().map(codec).collect()
    }

    fn manifest(&self, grid: &ChunkGrid) -> Result<Manifest, Unreadable> {
        let mut chunks = Vec::new();
        let index_of = |position: &[u64]| {
            let index = chunk_index(grid, position);
            index.ok_or_else(|| Unreadable::damaged(format!("a chunk at {position:?} of its array")))
        };
        for (position, range) in linked::chunks(&[self.chunks, Some(self.node)])? {
            chunks.push(stored(index_of(&position)?, DATA_FILE, range));
        }
        for location in self.locations() {
            let index = index_of(&location.position)?;
            let (range, filter_mask) = (location.range, location.filter_mask);
            chunks.push(StoredChunk { index, file: location.file.unwrap_or(DATA_FILE), range, filter_mask });
        }
        let count = chunks.len() as u64;
        let manifest = Manifest::of_chunks(chunks);
        if manifest.chunk_count() < count {
            return Err(Unreadable::damaged("two chunks at one position of their array"));
        }
        Ok(manifest)
    }
}

/// The linear index of the chunk whose first element is at `position`. An array in one piece has no position.
fn chunk_index(grid: &ChunkGrid, position: &[u64]) -> Option<u64> {
    if position.is_empty() {
        return (grid.chunk_count() == 1).then_some(0);
    }
    if position.len() != grid.shape().len() {
        return None;
    }
    let axes = position.iter().zip(grid.chunk_shape());
    let index =
        axes.map(|(&start, &length)| start.is_multiple_of(length).then(|| start.checked_div(length))?);
    grid.linear_index(&index.collect::<Option<Vec<u64>>>()?).ok()
}

/// The texts of a list, each repeated as often as the list says.
fn listed_words(listed: &Node, shape: &[u64], names: &Names<'_>) -> Result<(Element, Vec<u8>), Unreadable> {
    let expected = shape.iter().try_fold(1_u64, |product, &length| product.checked_mul(length));
    let expected = expected.filter(|&count| count <= MAX_WORDS).ok_or_else(too_large)?;
    let mut texts: Vec<Cow<'_, [u8]>> = Vec::new();
    for one in listed.children("v") {
        let count = one.attribute("c").map_or(Some(1), |text| text.trim().parse().ok());
        let room = expected.saturating_sub(texts.len() as u64);
        let count = count.filter(|&count: &u64| count <= room);
        let count = count.and_then(|count| usize::try_from(count).ok());
        let count = count.ok_or_else(|| Unreadable::damaged("more texts than the array has elements"))?;
        let text = match one.attribute("s") {
            None => Cow::Borrowed(one.text.as_bytes()),
            Some(nbytes) => Cow::Owned(inflated(&one.text, nbytes, names)?),
        };
        names.spend(text.len().saturating_mul(count))?;
        texts.extend(std::iter::repeat_n(text, count));
    }
    if texts.len() as u64 != expected {
        return Err(Unreadable::damaged("fewer texts than the array has elements"));
    }
    let texts: Vec<&[u8]> = texts.iter().map(|text| &**text).collect();
    let (element, bytes) = words(&texts).ok_or_else(too_large)?;
    names.spend(bytes.len())?;
    Ok((element, bytes))
}

/// A text of `s` bytes. Hyrax writes texts of more than 300 bytes deflated by zlib, in base64.
fn inflated(text: &str, nbytes: &str, names: &Names<'_>) -> Result<Vec<u8>, Unreadable> {
    let told = || Unreadable::damaged(format!("a text of {nbytes:?} bytes"));
    let nbytes: u64 = nbytes.trim().parse().map_err(|_| told())?;
    names.spend(usize::try_from(nbytes).unwrap_or(usize::MAX))?;
    let deflated = decoded(text).ok_or_else(|| Unreadable::damaged("damaged base64 of a text"))?;
    let mut bytes = Vec::new();
    let mut decoder = flate2::read::ZlibDecoder::new(&*deflated).take(nbytes.saturating_add(1));
    let problem = match decoder.read_to_end(&mut bytes) {
        Ok(_) if bytes.len() as u64 == nbytes => return Ok(bytes),
        Ok(_) => "it has fewer".to_owned(),
        Err(error) => error.to_string(),
    };
    Err(Unreadable::damaged(format!("a deflated text of {nbytes} bytes: {problem}")))
}
