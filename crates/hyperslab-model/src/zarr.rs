//! What zarr-python does for an access. It has a file for each chunk or shard, and no cache of its own.

use hyperslab_core::{ByteRange, ChunkGrid, ChunkState, Selection, Touch};

use crate::device::{Device, PageCacheSize, Unit};
use crate::error::ModelError;
use crate::operation::Operation;
use crate::request::{Purpose, Request, Watch};
use crate::stored::{Chunks, Stored};
use crate::variables::Variables;

/// Python reads a part of a file in whole blocks of this size. What is left it reads as one more block.
const BLOCK_NBYTES: u64 = 4096;
/// Parts of shards are cached by the numbers of their chunks. Whole shards and indexes have these bits.
const WHOLE_SHARD: u64 = 1 << 62;
const SHARD_INDEX: u64 = 1 << 61;
/// A shard's index has an entry for each of its chunks.
const MOST_CHUNKS_OF_SHARD: u64 = 1 << 24;
/// Bytes in a shard's index for each chunk, and bytes of the checksum.
const ENTRY_NBYTES: u64 = 16;
const CHECKSUM_NBYTES: u64 = 4;

/// A Zarr array, version 2 or 3, as zarr-python 3 accesses it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Zarr {
    /// The shape of shards in elements, a multiple of the chunk shape; `None` without shards.
    pub shard_shape: Option<Vec<u64>>,
    /// How parts of a shard are read by one request; `None` if each chunk has its own, as before zarr-python 3.3.
    pub joining: Option<Joining>,
    /// Whether a shard is read before it is overwritten wholly, as before zarr-python 3.2.
    pub reads_overwritten: bool,
}

/// Which ranges of a shard zarr-python reads by one request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Joining {
    /// How many bytes at most are between two of them.
    pub gap_nbytes: u64,
    /// How many bytes one request has at most, unless a single chunk has more.
    pub most_nbytes: u64,
}

impl Joining {
    /// Whether a request grows by one more range. Ranges come in the order of the file.
    fn takes(self, so_far: ByteRange, next: ByteRange) -> bool {
        next.offset.saturating_sub(so_far.end()) <= self.gap_nbytes
            && so_far.end().max(next.end()) - so_far.offset <= self.most_nbytes
    }
}

#[derive(Clone, Debug)]
pub(crate) struct OpenZarr {
    stored: Stored,
    shards: Option<Shards>,
    joining: Option<Joining>,
    reads_overwritten: bool,
    /// Chunks that were written.
    exists: Exists,
    device: Device,
}

#[derive(Clone, Debug)]
struct Shards {
    grid: ChunkGrid,
    /// The chunks of a shard, as a grid over one shard.
    chunks: ChunkGrid,
    /// The positions of these chunks in the order in which they are stored: zarr-python's Morton order.
    order: Vec<u64>,
}

#[derive(Clone, Debug)]
enum Exists {
    /// All chunks before this one.
    Before(u64),
    These(std::collections::HashSet<u64>),
}

impl Exists {
    fn has(&self, chunk: u64) -> bool {
        match self {
            Self::Before(stop) => chunk < *stop,
            Self::These(chunks) => chunks.contains(&chunk),
        }
    }

    fn add(&mut self, chunk: u64) {
        match self {
            Self::Before(stop) if chunk < *stop => {}
            Self::Before(stop) if chunk == *stop => *stop += 1,
            Self::Before(stop) => *self = Self::These((0..*stop).chain([chunk]).collect()),
            Self::These(chunks) => {
                chunks.insert(chunk);
            }
        }
    }
}

impl OpenZarr {
    pub fn new(stored: Stored, zarr: &Zarr, pages: PageCacheSize) -> Result<Self, ModelError> {
        let shards = zarr.shard_shape.as_ref().map(|shape| Shards::new(&stored, shape)).transpose()?;
        let exists = match &stored.chunks {
            Chunks::Missing => Exists::These(std::collections::HashSet::new()),
            Chunks::RowMajor => Exists::Before(stored.grid.chunk_count()),
            Chunks::Listed(manifest) => Exists::These(manifest.indices().collect()),
        };
        let (key_stop, most_nbytes) = match &shards {
            Some(_) => (u64::MAX, u64::MAX),
            None => (stored.grid.chunk_count(), stored.most_nbytes(Unit::Chunk)),
        };
        let device = Device::new(pages, Unit::Chunk, key_stop, most_nbytes);
        let Zarr { joining, reads_overwritten, .. } = *zarr;
        Ok(Self { stored, shards, joining, reads_overwritten, exists, device })
    }

    /// Lets the array grow along its first axis to this length.
    pub fn resize(&mut self, length: u64) -> Result<Variables, ModelError> {
        self.stored.grow(length)?;
        if let Some(shards) = &mut self.shards {
            *shards = Shards::new(&self.stored, shards.grid.chunk_shape())?;
        } else {
            self.device.grow(self.stored.grid.chunk_count());
        }
        Ok(Variables::default())
    }

    pub fn access(
        &mut self,
        operation: Operation,
        selection: &Selection,
        watch: &mut impl Watch,
    ) -> Result<Variables, ModelError> {
        let mut variables = Variables::default();
        let (chunk_grid, shards) = (self.stored.grid.clone(), self.shards.clone());
        match shards {
            None => chunk_grid.each_touch(selection, |touch| {
                self.chunk(operation, selection, touch, &mut variables, watch);
                Ok::<(), ModelError>(())
            })?,
            Some(shards) => {
                chunk_grid.each_touch(selection, |touch| {
                    variables.n_chunk += 1;
                    variables.n_memcpy += touch.run_count;
                    variables.s_memcpy += touch.element_count * self.stored.element_nbytes;
                    Ok::<(), ModelError>(())
                })?;
                shards.grid.each_touch(selection, |touch| {
                    self.shard(operation, selection, &shards, touch, &mut variables, watch)
                })?;
            }
        }
        variables.n_rrequest = variables.n_rdisk;
        variables.s_rrequest = variables.s_rdisk;
        variables.n_wrequest = variables.n_wdisk;
        variables.s_wrequest = variables.s_wdisk;
        Ok(variables)
    }

    fn chunk(
        &mut self,
        operation: Operation,
        selection: &Selection,
        touch: &Touch<'_>,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) {
        let chunk = touch.linear;
        variables.n_chunk += 1;
        variables.n_memcpy += touch.run_count;
        variables.s_memcpy += touch.element_count * self.stored.element_nbytes;
        if operation == Operation::Read || !is_complete(selection, touch) {
            self.read_file(chunk, chunk, self.nbytes_of(chunk), variables, watch);
        }
        if operation == Operation::Write {
            self.exists.add(chunk);
            self.write_file(chunk, chunk, self.stored.stored_nbytes(), variables, watch);
            variables.s_encode += self.encoded(1);
        }
    }

    fn shard(
        &mut self,
        operation: Operation,
        selection: &Selection,
        shards: &Shards,
        touch: &Touch<'_>,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) -> Result<(), ModelError> {
        let shard = touch.linear;
        let key = WHOLE_SHARD | shard;
        if operation == Operation::Write {
            // A write to a part of a shard reads the shard and rewrites it. A shard that reaches beyond the array is never
            // overwritten wholly.
            let is_whole = touch.element_count == shards.grid.chunk_element_count();
            if self.reads_overwritten || !is_whole || !is_complete(selection, touch) {
                let nbytes = self.shard_nbytes(shards, shard)?;
                self.read_file(shard, key, nbytes, variables, watch);
            }
            let touched = shards.touched(&self.stored, touch, selection)?;
            for &chunk in &touched {
                self.exists.add(chunk);
            }
            self.write_file(shard, key, self.shard_nbytes(shards, shard)?, variables, watch);
            variables.s_encode += self.encoded(touched.len() as u64);
            return Ok(());
        }
        let touched = shards.touched(&self.stored, touch, selection)?;
        if touched.len() as u64 == shards.chunks.chunk_count() {
            let nbytes = self.shard_nbytes(shards, shard)?;
            self.read_file(shard, key, nbytes, variables, watch);
            return Ok(());
        }
        let index_nbytes = shards.index_nbytes();
        let index_key = SHARD_INDEX | shard;
        if self.shard_nbytes(shards, shard)?.is_none() {
            variables.n_absent += 1;
            return Ok(());
        }
        variables.n_open += 1;
        variables.n_rindex += 1;
        variables.s_rindex += index_nbytes;
        self.device.read_file(index_key, index_nbytes, variables);
        let places = self.places(shards, shard)?;
        let end = places.last().map_or(0, |(_, range)| range.end());
        let range = ByteRange { offset: end, length: index_nbytes };
        watch.saw(Request { purpose: Purpose::ReadIndex, chunk: shard, range });
        for request in self.joined(&places, &touched) {
            self.read_parts(&places[request], &touched, end + index_nbytes, variables, watch);
        }
        Ok(())
    }

    /// The requests for the touched chunks of a shard, as positions in `places`. Each begins and ends with such a chunk.
    fn joined(&self, places: &[(u64, ByteRange)], touched: &[u64]) -> Vec<std::ops::Range<usize>> {
        let mut requests: Vec<std::ops::Range<usize>> = Vec::new();
        for (position, (chunk, range)) in places.iter().enumerate() {
            if touched.binary_search(chunk).is_err() {
                continue;
            }
            if let (Some(joining), Some(last)) = (self.joining, requests.last_mut()) {
                let offset = places[last.start].1.offset;
                let so_far = ByteRange { offset, length: places[last.end - 1].1.end() - offset };
                if joining.takes(so_far, *range) {
                    last.end = position + 1;
                    continue;
                }
            }
            requests.push(position..position + 1);
        }
        requests
    }

    /// Reads neighbouring chunks of a shard, which is a file of `file_nbytes`, by one request. Those that were not
    /// asked for come with the others.
    fn read_parts(
        &mut self,
        places: &[(u64, ByteRange)],
        touched: &[u64],
        file_nbytes: u64,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) {
        let ([(first, from), .., (_, to)] | [(first, from @ to)]) = places else { return };
        let whole = ByteRange { offset: from.offset, length: to.end() - from.offset };
        let range = in_blocks(whole, file_nbytes);
        variables.n_open += 1;
        let asked = places.iter().filter(|(chunk, _)| touched.binary_search(chunk).is_ok()).count();
        variables.s_decode += self.encoded(asked as u64);
        let last = places.len() - 1;
        let beyond = range.length.saturating_sub(whole.length);
        let parts = places.iter().enumerate();
        let parts =
            parts.map(|(at, (chunk, range))| (*chunk, range.length + if at == last { beyond } else { 0 }));
        self.device.read_parts(parts, variables);
        watch.saw(Request { purpose: Purpose::ReadPart, chunk: *first, range });
    }

    /// The chunks of a shard that exist, with their ranges in its file, in this order. The shard's index follows.
    fn places(&self, shards: &Shards, shard: u64) -> Result<Vec<(u64, ByteRange)>, ModelError> {
        let mut places = Vec::new();
        let mut end = 0;
        for &position in &shards.order {
            let Some(chunk) = shards.chunk_at(&self.stored.grid, shard, position)? else { continue };
            if let Some(length) = self.nbytes_of(chunk) {
                places.push((chunk, ByteRange { offset: end, length }));
                end += length;
            }
        }
        Ok(places)
    }

    /// Stored bytes of a chunk; `None` if it was never written.
    fn nbytes_of(&self, chunk: u64) -> Option<u64> {
        let listed = match &self.stored.chunks {
            Chunks::Listed(manifest) => manifest.state(chunk),
            _ => ChunkState::Missing,
        };
        match listed {
            ChunkState::Stored { range, .. } => Some(range.length),
            ChunkState::Inline(bytes) => Some(bytes.len() as u64),
            ChunkState::Missing | ChunkState::Sought { .. } => {
                self.exists.has(chunk).then(|| self.stored.stored_nbytes())
            }
        }
    }

    /// Bytes of a whole shard, including its index; `None` if none of it was ever written.
    fn shard_nbytes(&self, shards: &Shards, shard: u64) -> Result<Option<u64>, ModelError> {
        let chunks = shards.chunks_of(&self.stored.grid, shard)?;
        let mut written = chunks.into_iter().filter_map(|chunk| self.nbytes_of(chunk)).peekable();
        Ok(written.peek().is_some().then(|| shards.index_nbytes() + written.sum::<u64>()))
    }

    fn encoded(&self, chunk_count: u64) -> u64 {
        if self.stored.is_encoded() { chunk_count * self.stored.chunk_nbytes() } else { 0 }
    }

    fn read_file(
        &mut self,
        file: u64,
        key: u64,
        nbytes: Option<u64>,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) {
        let Some(nbytes) = nbytes else {
            variables.n_absent += 1;
            return;
        };
        variables.n_open += 1;
        let chunk_count = self.shards.as_ref().map_or(1, |shards| shards.chunks.chunk_count());
        variables.s_decode += self.encoded(chunk_count);
        self.device.read_file(key, nbytes, variables);
        watch.saw(Request {
            purpose: Purpose::ReadChunk,
            chunk: file,
            range: ByteRange { offset: 0, length: nbytes },
        });
    }

    fn write_file(
        &mut self,
        file: u64,
        key: u64,
        nbytes: impl Into<Option<u64>>,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) {
        let nbytes = nbytes.into().unwrap_or(0);
        self.device.write_file(key, nbytes, variables);
        watch.saw(Request {
            purpose: Purpose::WriteChunk,
            chunk: file,
            range: ByteRange { offset: 0, length: nbytes },
        });
    }
}

/// What Python's buffered file reads if it is asked for a range of a file that ends at `end`.
fn in_blocks(range: ByteRange, end: u64) -> ByteRange {
    let whole = range.length / BLOCK_NBYTES * BLOCK_NBYTES;
    if whole == range.length {
        return range;
    }
    let last = BLOCK_NBYTES.min(end.saturating_sub(range.offset + whole));
    ByteRange { length: whole + last, ..range }
}

/// The positions of a grid in Morton order, as zarr-python computes it: bits of the indices alternate, the lowest bit
/// of the first axis first, and an axis has as many bits as its largest index needs.
fn morton_order(grid: &ChunkGrid) -> Result<Vec<u64>, ModelError> {
    let nbits: Vec<u32> =
        grid.grid_shape().iter().map(|&n| u64::BITS - (n.max(1) - 1).leading_zeros()).collect();
    let most = nbits.iter().copied().max().unwrap_or(0);
    let mut coded = Vec::new();
    for position in 0..grid.chunk_count() {
        let index = grid.chunk_index(position)?;
        let (mut code, mut shift) = (0_u64, 0);
        for bit in 0..most {
            for (&each, _) in index.iter().zip(&nbits).filter(|&(_, &count)| bit < count) {
                code |= ((each >> bit) & 1) << shift;
                shift += 1;
            }
        }
        coded.push((code, position));
    }
    coded.sort_unstable();
    Ok(coded.into_iter().map(|(_, position)| position).collect())
}

/// Whether zarr-python notices that a write replaces the chunk's whole valid part, so that it need not be read.
fn is_complete(selection: &Selection, touch: &Touch<'_>) -> bool {
    let Selection::Hyperslab(hyperslab) = selection else { return false };
    // It looks at the step, even for a single index.
    let has_steps = hyperslab.axes().iter().any(|axis| axis.block() == 1 && axis.stride() > 1);
    touch.element_count == touch.valid_element_count && hyperslab.is_contiguous_box() && !has_steps
}

impl Shards {
    fn new(stored: &Stored, shape: &[u64]) -> Result<Self, ModelError> {
        let chunk_shape = stored.grid.chunk_shape();
        let grid = ChunkGrid::new(stored.grid.shape().to_vec(), shape.to_vec())?;
        if shape.iter().zip(chunk_shape).any(|(shard, chunk)| shard % chunk != 0) {
            let given = format!("{shape:?}");
            return Err(ModelError::parameter("shard_shape", given, "give a multiple of the chunk shape"));
        }
        let chunks = ChunkGrid::new(shape.to_vec(), chunk_shape.to_vec())?;
        if chunks.chunk_count() > MOST_CHUNKS_OF_SHARD {
            let remedy = "shards of at most 16777216 chunks are modelled; give smaller shards";
            return Err(ModelError::parameter("shard_shape", format!("{shape:?}"), remedy));
        }
        Ok(Self { grid, order: morton_order(&chunks)?, chunks })
    }

    fn index_nbytes(&self) -> u64 {
        self.chunks.chunk_count() * ENTRY_NBYTES + CHECKSUM_NBYTES
    }

    /// The chunk at a position of a shard; `None` if it lies outside the array.
    fn chunk_at(&self, grid: &ChunkGrid, shard: u64, position: u64) -> Result<Option<u64>, ModelError> {
        let (index, inner) = (self.grid.chunk_index(shard)?, self.chunks.chunk_index(position)?);
        let lengths = self.chunks.grid_shape();
        let outer: Vec<u64> =
            (0..index.len()).map(|axis| index[axis] * lengths[axis] + inner[axis]).collect();
        let is_inside = outer.iter().zip(&grid.grid_shape()).all(|(index, length)| index < length);
        Ok(if is_inside { Some(grid.linear_index(&outer)?) } else { None })
    }

    /// The chunks of a shard that lie in the array.
    fn chunks_of(&self, grid: &ChunkGrid, shard: u64) -> Result<Vec<u64>, ModelError> {
        let positions = 0..self.chunks.chunk_count();
        positions.filter_map(|position| self.chunk_at(grid, shard, position).transpose()).collect()
    }

    /// The chunks of a shard that a selection touches.
    fn touched(
        &self,
        stored: &Stored,
        touch: &Touch<'_>,
        selection: &Selection,
    ) -> Result<Vec<u64>, ModelError> {
        let mut chunks = Vec::new();
        for chunk in self.chunks_of(&stored.grid, touch.linear)? {
            let index = stored.grid.chunk_index(chunk)?;
            if stored.grid.overlap(&index, selection)?.element_count() > 0 {
                chunks.push(chunk);
            }
        }
        Ok(chunks)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn python_reads_whole_blocks_and_one_more() {
        let read = |offset, length, end| in_blocks(ByteRange { offset, length }, end).length;
        assert_eq!(read(0, 8192, 10_000), 8192);
        assert_eq!(read(0, 100, 10_000), 4096);
        assert_eq!(read(5000, 5000, 10_004), 4096 + 908, "the file ends there");
        assert_eq!(read(5000, 4097, 20_000), 8192);
    }

    #[test]
    fn shards_are_in_morton_order() -> Result<(), ModelError> {
        // As zarr-python's morton_order_iter((3, 2)) has them.
        let order = morton_order(&ChunkGrid::new(vec![3, 2], vec![1, 1])?)?;
        assert_eq!(order, [0, 2, 1, 3, 4, 5]);
        assert_eq!(morton_order(&ChunkGrid::new(vec![1, 5], vec![1, 1])?)?, [0, 1, 2, 3, 4]);
        Ok(())
    }

    #[test]
    fn ranges_are_joined_up_to_a_gap_and_a_length() {
        let joining = Joining { gap_nbytes: 10, most_nbytes: 100 };
        let takes = |end: u64, offset, length| {
            joining.takes(ByteRange { offset: 20, length: end - 20 }, ByteRange { offset, length })
        };
        assert!(takes(50, 50, 10) && takes(50, 60, 60), "next to it; at both limits");
        assert!(!takes(50, 61, 10), "the gap");
        assert!(!takes(50, 60, 61), "the length");
    }
}
