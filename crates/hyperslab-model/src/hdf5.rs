//! What HDF5 does for an access, by the rules of its chunked storage (`H5Dchunk.c`): serially, or through MPI.

use hyperslab_core::{ByteRange, Selection, Touch};

use crate::chunk_cache::{ChunkCache, ChunkCacheSize, Left};
use crate::chunk_locations::ChunkLocations;
use crate::device::{Device, PageCacheSize, Unit};
use crate::error::ModelError;
use crate::index::kind::{IndexFacts, IndexKind};
use crate::index::{BlockRead, Index};
use crate::operation::Operation;
use crate::request::{Purpose, Request, Watch};
use crate::stored::Stored;
use crate::variables::Variables;

/// The most slots of the table of cached chunks.
const MOST_SLOTS: u64 = 1 << 26;
/// The nodes of the second B-tree follow only from building it chunk by chunk.
const MOST_BTREE_V2_CHUNKS: u64 = 1 << 24;

/// How HDF5 is used.
#[derive(Clone, Debug, PartialEq)]
#[allow(clippy::struct_excessive_bools)] // properties of a file, each on its own
pub struct Hdf5 {
    /// Its cache of decoded chunks.
    pub cache: ChunkCacheSize,
    /// The index in the file.
    pub index: IndexKind,
    /// The largest shape that the array may have, with `u64::MAX` for an axis without a limit; `None` if the array
    /// cannot grow.
    pub max_shape: Option<Vec<u64>>,
    /// Whether new chunks that are not written whole are filled first, as they are unless the fill time is `never`.
    pub fills: bool,
    /// Whether the first write allocates all chunks: the allocation time is `late`.
    pub allocates_late: bool,
    /// Whether the lengths of encoded chunks depend on their elements, so that a chunk moves when it is rewritten.
    pub lengths_vary: bool,
    /// Whether the file stores lengths of filtered chunks in eight bytes: `libver` 2.0 or later.
    pub wide_lengths: bool,
    /// Whether the file is open for writing through MPI: unfiltered chunks are then never cached.
    pub mpi_writing: bool,
}

impl Hdf5 {
    fn facts(&self) -> IndexFacts<'_> {
        IndexFacts { kind: self.index, wide_lengths: self.wide_lengths, max_shape: self.max_shape.as_deref() }
    }
}

/// HDF5 with an open file, during a sequence of accesses.
#[derive(Clone, Debug)]
pub(crate) struct OpenHdf5 {
    stored: Stored,
    cache: ChunkCache,
    index: Index,
    locations: ChunkLocations,
    device: Device,
    hdf5: Hdf5,
    /// The chunk whose location was looked up or written last.
    last: Option<u64>,
}

/// What is done to a chunk.
struct Visit<'a> {
    operation: Operation,
    selection: &'a Selection,
    touch: &'a Touch<'a>,
    slot: usize,
    nbytes: u64,
}

impl OpenHdf5 {
    pub fn new(stored: Stored, hdf5: &Hdf5, pages: PageCacheSize) -> Result<Self, ModelError> {
        if !(0.0..=1.0).contains(&hdf5.cache.w0) {
            return Err(ModelError::parameter("w0", hdf5.cache.w0, "give a share from 0 to 1"));
        }
        if hdf5.cache.slot_count > MOST_SLOTS {
            return Err(ModelError::parameter(
                "slot_count",
                hdf5.cache.slot_count,
                "give at most 67108864 slots",
            ));
        }
        if let IndexKind::ExtensibleArray { axis } = hdf5.index
            && axis >= stored.grid.shape().len()
        {
            return Err(ModelError::parameter("axis", axis, "give the axis of the array that grows"));
        }
        if hdf5.index == IndexKind::BtreeV2 && stored.grid.chunk_count() > MOST_BTREE_V2_CHUNKS {
            let remedy = "the second B-tree is followed for at most 16777216 chunks; give larger chunks";
            return Err(ModelError::parameter("chunk_count", stored.grid.chunk_count(), remedy));
        }
        let cache = ChunkCache::new(hdf5.cache, &stored.grid, stored.chunk_nbytes());
        let reads_parts = !stored.is_encoded() && (hdf5.mpi_writing || cache.is_too_small());
        let unit = if reads_parts { Unit::Page } else { Unit::Chunk };
        let locations = ChunkLocations::new(&stored, hdf5.index);
        let device = Device::new(pages, unit, stored.grid.chunk_count(), stored.most_nbytes(unit));
        Ok(Self {
            cache,
            index: Index::of(&stored, hdf5.facts())?,
            device: device
                .with_read_ahead(locations.base_nbytes(), locations.nbytes(stored.grid.chunk_count())),
            locations,
            hdf5: hdf5.clone(),
            last: None,
            stored,
        })
    }

    pub fn access(
        &mut self,
        operation: Operation,
        selection: &Selection,
        watch: &mut impl Watch,
    ) -> Result<Variables, ModelError> {
        let mut variables = Variables::default();
        if operation == Operation::Read && !self.exists() {
            variables.n_chunk = self.stored.grid.totals(selection)?.chunk_count;
            return Ok(variables);
        }
        if operation == Operation::Write {
            let is_first = self.hdf5.allocates_late && !self.exists();
            let nbytes = self.index.create();
            self.locations.skip(nbytes);
            if is_first {
                self.allocate_all(selection, &mut variables, watch)?;
            }
        }
        let grid = self.stored.grid.clone();
        grid.each_touch(selection, |touch| {
            let slot = self.cache.slot(touch.chunk_index);
            let nbytes = touch.element_count * self.stored.element_nbytes;
            let visit = Visit { operation, selection, touch, slot, nbytes };
            self.visit(&visit, &mut variables, watch)
        })?;
        Ok(variables)
    }

    /// Lets the array grow along its first axis to this length. Chunks that lose their slots in the cache are written.
    pub fn resize(&mut self, length: u64, watch: &mut impl Watch) -> Result<Variables, ModelError> {
        let count = self.stored.grid.chunk_count();
        self.stored.grow(length)?;
        self.device.grow(self.stored.grid.chunk_count());
        self.index.grown(&self.stored, self.hdf5.facts(), count)?;
        let mut written = Vec::new();
        let grid = &self.stored.grid;
        let index_of = |chunk| grid.chunk_index(chunk).unwrap_or_default();
        self.cache.regrid(grid, index_of, |left| {
            if left.is_dirty {
                written.push(left.chunk);
            }
        });
        let mut variables = Variables::default();
        for chunk in written {
            self.write_chunk(chunk, &mut variables, watch)?;
        }
        Ok(variables)
    }

    /// With a late allocation, the first write makes all chunks. They are filled, unless all elements are overwritten;
    /// codecs need them to be written in any case.
    fn allocate_all(
        &mut self,
        selection: &Selection,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) -> Result<(), ModelError> {
        let is_overwritten = selection.len() == self.stored.grid.shape().iter().product();
        if is_overwritten && !self.stored.is_encoded() {
            return Ok(());
        }
        let is_written = self.stored.is_encoded() || self.hdf5.fills;
        for chunk in 0..self.stored.grid.chunk_count() {
            if is_written {
                self.write_chunk(chunk, variables, watch)?;
            } else {
                self.locations.allocate(chunk);
                self.add_to_index(chunk, variables, watch)?;
            }
        }
        Ok(())
    }

    /// Writes what was changed, as closing the file does.
    pub fn flush(&mut self, watch: &mut impl Watch) -> Result<Variables, ModelError> {
        let mut variables = self.flush_chunks(watch)?;
        variables.n_windex += self.index.write();
        Ok(variables)
    }

    fn flush_chunks(&mut self, watch: &mut impl Watch) -> Result<Variables, ModelError> {
        let mut variables = Variables::default();
        for chunk in self.cache.flush() {
            self.write_chunk(chunk, &mut variables, watch)?;
        }
        Ok(variables)
    }

    /// Closes the array and opens it again. The chunk index stays in the file's metadata cache, read or changed.
    pub fn reopen_array(&mut self, watch: &mut impl Watch) -> Result<Variables, ModelError> {
        let variables = self.flush_chunks(watch)?;
        self.cache.clear();
        self.last = None;
        Ok(variables)
    }

    /// Closes the file and opens it again: the library forgets what it has cached, the system does not.
    pub fn reopen(&mut self, watch: &mut impl Watch) -> Result<Variables, ModelError> {
        let variables = self.flush(watch)?;
        self.cache.clear();
        self.index.forget();
        self.device.reopen();
        self.last = None;
        Ok(variables)
    }

    /// Whether there is anything to read. Before the first write, everything is the fill value.
    fn exists(&self) -> bool {
        self.index.exists().unwrap_or_else(|| self.locations.has_any()) || !self.cache.is_empty()
    }

    fn visit(
        &mut self,
        visit: &Visit<'_>,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) -> Result<(), ModelError> {
        variables.n_chunk += 1;
        count_parallel(visit, variables);
        if self.cache.uses(visit.slot, visit.touch.linear) {
            self.copy(visit, variables);
            return Ok(());
        }
        let location = self.look_up(visit.touch, variables, watch);
        if location.is_none() && visit.operation == Operation::Read && !self.hdf5.fills {
            return Ok(()); // without a fill value there is nothing to cache or copy
        }
        if self.goes_through_memory(visit.operation, location) {
            self.through_memory(visit, location, variables, watch)
        } else {
            self.by_runs(visit, location, variables, watch)
        }
    }

    /// Whether a chunk is read or written whole. A chunk that does not fit into the cache is not, unless codecs need it
    /// whole, or it is new and its fill value must be written.
    fn goes_through_memory(&self, operation: Operation, location: Option<ByteRange>) -> bool {
        if self.stored.is_encoded() {
            return true;
        }
        let is_filled = self.hdf5.fills && operation == Operation::Write && location.is_none();
        !self.hdf5.mpi_writing && (!self.cache.is_too_small() || is_filled)
    }

    fn look_up(
        &mut self,
        touch: &Touch<'_>,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) -> Option<ByteRange> {
        if self.last != Some(touch.linear) {
            let blocks = self.index.lookup(touch.linear, touch.chunk_index);
            self.read_index(touch.linear, blocks, variables, watch);
            self.last = Some(touch.linear);
        }
        self.locations.of(touch.linear)
    }

    fn through_memory(
        &mut self,
        visit: &Visit<'_>,
        location: Option<ByteRange>,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) -> Result<(), ModelError> {
        let chunk = visit.touch.linear;
        let is_overwritten = visit.operation == Operation::Write
            && visit.nbytes == self.stored.chunk_nbytes()
            && matches!(visit.selection, Selection::Hyperslab(_));
        if let Some(range) = location.filter(|_| !is_overwritten) {
            self.device.read(chunk, range, variables);
            watch.saw(Request { purpose: Purpose::ReadChunk, chunk, range });
            if self.stored.is_encoded() {
                variables.s_decode += self.stored.chunk_nbytes();
            }
        }
        if !self.cache.takes_chunks() {
            variables.n_memcpy += visit.touch.block_run_count;
            variables.s_memcpy += visit.nbytes;
            return match visit.operation {
                Operation::Read => Ok(()),
                Operation::Write => self.write_chunk(chunk, variables, watch),
            };
        }
        let mut written = Vec::new();
        self.cache.insert(visit.slot, chunk, |left: Left| {
            if left.is_dirty {
                written.push(left.chunk);
            }
        });
        for chunk in written {
            self.write_chunk(chunk, variables, watch)?;
        }
        self.copy(visit, variables);
        Ok(())
    }

    /// Copies between the caller's memory and a chunk in the cache.
    fn copy(&mut self, visit: &Visit<'_>, variables: &mut Variables) {
        variables.n_memcpy += visit.touch.block_run_count;
        variables.s_memcpy += visit.nbytes;
        match visit.operation {
            Operation::Read => self.cache.was_read(visit.slot, visit.nbytes),
            Operation::Write => self.cache.was_written(visit.slot, visit.nbytes),
        }
    }

    fn write_chunk(
        &mut self,
        chunk: u64,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) -> Result<(), ModelError> {
        let (old, is_encoded) = (self.locations.of(chunk), self.stored.is_encoded());
        if is_encoded {
            variables.s_encode += self.stored.chunk_nbytes();
        }
        // A chunk whose length changes moves to another location.
        let may_stay = |old: &ByteRange| !self.hdf5.lengths_vary && old.length == self.stored.stored_nbytes();
        let location = old.filter(|old| !is_encoded || may_stay(old));
        let range = location.unwrap_or_else(|| self.locations.allocate(chunk));
        self.device.write(chunk, range, variables);
        watch.saw(Request { purpose: Purpose::WriteChunk, chunk, range });
        if old.is_none() {
            self.add_to_index(chunk, variables, watch)?;
        } else if location.is_none() {
            self.index.replace(chunk, &self.stored.grid.chunk_index(chunk)?);
        }
        self.last = Some(chunk);
        Ok(())
    }

    fn add_to_index(
        &mut self,
        chunk: u64,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) -> Result<(), ModelError> {
        let chunk_index = self.stored.grid.chunk_index(chunk)?;
        let (read, made_nbytes) = self.index.insert(chunk, &chunk_index);
        self.read_index(chunk, read, variables, watch);
        self.locations.skip(made_nbytes);
        Ok(())
    }

    fn read_index(
        &mut self,
        chunk: u64,
        blocks: Vec<BlockRead>,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) {
        for BlockRead { behind, nbytes, is_cached } in blocks {
            if is_cached && self.device.keeps_pages() {
                variables.n_cache += 1;
                variables.s_cache += nbytes;
            } else {
                variables.n_rindex += 1;
                variables.s_rindex += nbytes;
            }
            let offset =
                behind.and_then(|(chunk, blocks)| Some(self.locations.of(chunk)?.end() + blocks * nbytes));
            self.device.read_index(offset, nbytes, variables);
            let range = ByteRange { offset: 0, length: nbytes };
            watch.saw(Request { purpose: Purpose::ReadIndex, chunk, range });
        }
    }

    fn by_runs(
        &mut self,
        visit: &Visit<'_>,
        location: Option<ByteRange>,
        variables: &mut Variables,
        watch: &mut impl Watch,
    ) -> Result<(), ModelError> {
        let chunk = visit.touch.linear;
        let range = match (visit.operation, location) {
            (_, Some(range)) => range,
            (Operation::Read, None) => return Ok(()),
            (Operation::Write, None) => self.locations.allocate(chunk),
        };
        let width = self.stored.element_nbytes;
        for run in self.stored.grid.overlap(visit.touch.chunk_index, visit.selection)?.block_runs() {
            let range =
                ByteRange { offset: range.offset + run.chunk_offset * width, length: run.length * width };
            let purpose = match visit.operation {
                Operation::Read => {
                    self.device.read(chunk, range, variables);
                    Purpose::ReadPart
                }
                Operation::Write => {
                    self.device.write(chunk, range, variables);
                    Purpose::WritePart
                }
            };
            watch.saw(Request { purpose, chunk, range });
        }
        if location.is_none() {
            self.add_to_index(chunk, variables, watch)?;
        }
        Ok(())
    }
}

/// What parallel HDF5 asks of its data servers: each run separately, whatever is cached.
fn count_parallel(visit: &Visit<'_>, variables: &mut Variables) {
    match visit.operation {
        Operation::Read => {
            variables.n_rrequest += visit.touch.block_run_count;
            variables.s_rrequest += visit.nbytes;
        }
        Operation::Write => {
            variables.n_wrequest += visit.touch.block_run_count;
            variables.s_wrequest += visit.nbytes;
        }
    }
}
