//! `ArchiveArray`: an array of an archive. Plans and reads selections of it.

use std::path::PathBuf;
use std::sync::Arc;

use hyperslab_core::{
    Array, ChunkGrid, ChunkLengths, Codec, Fill, Manifest, Orthogonal, PlanError, PointGroup, Points,
    ReadPlan, Role, Segment, Unreadable, chunk_lengths,
};
use hyperslab_engine::ValueHeap;

use crate::archive::{Archive, ArchiveKind};
use crate::array_plan::ArrayPlan;
use crate::error::{Error, Problem, plan_error};
use crate::format::Format;
use crate::interrupt::Interruptible;
use crate::reading::{ArraySelection, Planned, ReadOptions, Reading};
use crate::resolved::Resolved;
use crate::role::role;
use crate::sought::Sought;
use crate::whole_array::WholeArray;

/// An array of an archive, and the path that led to it. Threads share it.
#[derive(Clone)]
pub struct ArchiveArray {
    archive: Arc<Archive>,
    number: usize,
    path: String,
}

impl ArchiveArray {
    /// The array with this number. Errors call it `path`. `None` if there is no such array.
    pub fn new(archive: &Arc<Archive>, number: usize, path: String) -> Option<Self> {
        (number < archive.tree.arrays.len()).then(|| Self { archive: Arc::clone(archive), number, path })
    }

    /// The array at a path from the root. Follows soft links. `None` if there is no such array.
    pub fn at(archive: &Arc<Archive>, path: &str) -> Result<Option<Self>, Error> {
        let found = archive.find_array(path);
        let found = found.map_err(|reason| plan_error(&archive.name, path, reason.into()))?;
        Ok(found.and_then(|number| Self::new(archive, number, path.to_owned())))
    }

    /// The archive that holds it.
    pub fn archive(&self) -> &Arc<Archive> {
        &self.archive
    }

    /// The path that led to it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Its number in the archive.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The array as the metadata describe it. A virtual array may have another shape: see `shape`.
    pub fn described(&self) -> &Array {
        &self.archive.tree.arrays[self.number] // checked where it was made
    }

    /// The array with its segments. Opens the sources of a virtual array.
    pub fn whole(&self) -> Result<WholeArray, Error> {
        WholeArray::of(&self.archive, self.number).map_err(|problem| self.failed(problem))
    }

    /// The same, for callers that only want the chunks: `None` if we cannot read the array.
    pub fn chunked(&self) -> Result<Option<WholeArray>, Error> {
        match WholeArray::of(&self.archive, self.number) {
            Err(Problem::Plan(PlanError::Unreadable(Unreadable::Unsupported { .. }))) => Ok(None),
            whole => match whole.map_err(|problem| self.failed(problem))? {
                whole if is_unfetched(whole.array()) => {
                    let problem = ReadPlan::check(whole.array());
                    problem.map(|()| None).map_err(|problem| self.failed(problem))
                }
                whole => Ok(Some(whole)),
            },
        }
    }

    /// Its shape; `None` if it holds no elements at all. Opens the sources of a virtual array whose shape depends on
    /// them.
    pub fn shape(&self) -> Result<Option<Vec<u64>>, Error> {
        let whole = if self.described().virtual_mappings.grow() { Some(self.whole()?) } else { None };
        Ok(whole.as_ref().map_or(self.described(), WholeArray::array).shape.clone())
    }

    /// What netCDF readers must know of it besides its attributes.
    pub fn role(&self) -> Role {
        role(self.described())
    }

    /// Why none of it can be read; `None` if no reason is known.
    pub fn unreadable(&self) -> Result<Option<Unreadable>, Error> {
        let whole = WholeArray::of(&self.archive, self.number);
        match whole.and_then(|whole| Ok(ReadPlan::check(whole.array())?)) {
            Ok(()) => Ok(None),
            Err(Problem::Plan(PlanError::Unreadable(reason))) => Ok(Some(reason)),
            Err(Problem::Plan(PlanError::Selection(error))) => Ok(Some(error.into())),
            Err(problem) => Err(self.failed(problem)),
        }
    }

    /// Whether it seems readable, judged without looking up its chunks.
    pub fn is_readable_before_lookup(&self) -> bool {
        let indexes = self.archive.indexes_of(self.number);
        indexes.is_some_and(|indexes| indexes.check(&self.archive.tree, self.number) == Ok(true))
    }

    /// The files that hold its chunks, by file number. A folder has no number 0.
    pub fn file_paths(&self) -> Result<Vec<Option<PathBuf>>, Error> {
        let Some(whole) = self.chunked()? else { return Ok(Vec::new()) };
        let opened = self.archive.own_file().map(|file| file.path);
        let others = whole.stores().others().iter().map(|other| Some(other.path.clone()));
        Ok(std::iter::once(opened).chain(others).collect())
    }

    /// The shape of a chunk; `None` if the array is not chunked, or if its parts differ. A virtual array has chunks
    /// only if each of them is exactly one chunk of its source.
    pub fn chunk_shape(&self) -> Option<Vec<u64>> {
        let described = self.described();
        let is_virtual = !described.virtual_mappings.is_empty();
        let whole = if is_virtual { self.chunked().ok().flatten() } else { None };
        let array = whole.as_ref().map_or(described, WholeArray::array);
        if is_virtual && !array.is_chunked {
            return None;
        }
        let (first, others) = array.segments.as_deref().unwrap_or_default().split_first()?;
        let grid = &first.grid;
        let differ = others.iter().any(|segment| segment.grid.chunk_shape() != grid.chunk_shape());
        let is_one_piece = |segment: &Segment| {
            let grid = &segment.grid;
            grid.shape().iter().zip(grid.chunk_shape()).all(|(&length, &chunk)| chunk == length.max(1))
        };
        // Several external files may hold a contiguous array of HDF5; the files of a collection are its chunks.
        let is_external = matches!(self.archive.format(), Format::Hdf5 | Format::OwnReferences)
            && others.iter().all(is_one_piece);
        let is_plain_piece =
            (others.is_empty() || is_external) && first.codecs.is_empty() && is_one_piece(first);
        if differ || (is_plain_piece && !array.is_chunked) {
            return None;
        }
        Some(grid.chunk_shape().to_vec())
    }

    /// The lengths of the consecutive chunks along each axis.
    pub fn chunk_lengths(&self) -> Result<Option<Vec<ChunkLengths>>, Error> {
        Ok(self.chunked()?.and_then(|whole| chunk_lengths(whole.array())))
    }

    /// The names of the codecs in encoding order. With several segments, those of the first one.
    pub fn codec_names(&self) -> Result<Vec<String>, Error> {
        let whole = self.chunked()?;
        let first = whole.as_ref().and_then(|whole| whole.array().segments.as_ref().ok()?.first());
        let names = |segment: &Segment| segment.codecs.iter().map(|codec| codec.name().to_owned()).collect();
        Ok(first.map_or_else(Vec::new, names))
    }

    /// How many chunks are stored; `None` if no index lists them.
    pub fn stored_chunk_count(&self) -> Result<Option<u64>, Error> {
        self.listed_sum(|manifest, _| manifest.chunk_count())
    }

    /// Bytes of the stored chunks; `None` if no index lists them.
    pub fn stored_nbytes(&self) -> Result<Option<u64>, Error> {
        self.listed_sum(|manifest, _| manifest.stored_nbytes())
    }

    /// How many chunks the grid has.
    pub fn chunk_count(&self) -> Result<u64, Error> {
        self.sum(|_, grid| grid.chunk_count())
    }

    /// The plan for reading a selection.
    pub fn plan(&self, selection: &Orthogonal) -> Result<ArrayPlan, Error> {
        self.check_listed()?;
        let whole = self.whole()?;
        let plan = whole.plan(selection).map_err(|problem| self.failed(problem))?;
        Ok(ArrayPlan::new(whole, plan))
    }

    /// The plan for reading points.
    pub fn plan_points(&self, points: &Points) -> Result<ArrayPlan, Error> {
        self.check_listed()?;
        let whole = self.whole()?;
        let groups = PointGroup::of(points, whole.array()).map_err(|problem| self.failed(problem))?;
        let plans = groups.iter().map(|group| whole.plan(&group.around)).collect::<Result<Vec<_>, _>>();
        let plans = plans.map_err(|problem| self.failed(problem))?;
        Ok(ArrayPlan::of_points(whole, plans, points.len()))
    }

    /// Read a selection, in C order, into `out`. Elements keep the file's byte order. Elements whose values lie
    /// elsewhere are pointers; `values` follows them.
    pub fn read_into(
        &self,
        selection: &ArraySelection<'_>,
        out: &mut [u8],
        options: ReadOptions,
    ) -> Result<(), Error> {
        let whole = self.whole_for(selection)?;
        let planned = self.planned(&whole, selection)?;
        self.reading(&whole, options).carry_out(&planned, out)
    }

    /// Read several selections, each into its own bytes. All selections are planned before the first is read, so a
    /// selection outside the array leaves every output untouched.
    pub fn read_each(
        &self,
        reads: &mut [(ArraySelection<'_>, &mut [u8])],
        options: ReadOptions,
    ) -> Result<(), Error> {
        if matches!(self.archive.kind, ArchiveKind::Keys(_)) {
            return reads.iter_mut().try_for_each(|(selection, out)| self.read_into(selection, out, options));
        }
        let whole = self.whole()?;
        let plans = reads.iter().map(|(selection, _)| self.planned(&whole, selection));
        let plans = plans.collect::<Result<Vec<_>, _>>()?;
        let reading = self.reading(&whole, options);
        reads.iter_mut().zip(&plans).try_for_each(|((_, out), planned)| reading.carry_out(planned, out))
    }

    /// Reads a selection of elements of variable length: the pointers into `pointers`. Returns the values that they point
    /// to, in order.
    pub fn read_values(
        &self,
        selection: &ArraySelection<'_>,
        pointers: &mut [u8],
        options: ReadOptions,
    ) -> Result<Vec<Vec<u8>>, Error> {
        let whole = self.whole_for(selection)?;
        let planned = self.planned(&whole, selection)?;
        let reading = self.reading(&whole, options);
        let Some(fill) = stored_fill(whole.array()) else {
            reading.carry_out(&planned, pointers)?;
            return self.pointed(pointers);
        };
        let heap = ValueHeap::default();
        Reading { values: Some(&heap), ..reading }.carry_out(&planned, pointers)?;
        Ok(heap.resolve(pointers, fill))
    }

    /// The value of unwritten elements; `None` if there is none, or if the values are not stored in the chunks.
    pub fn fill_value(&self) -> Result<Option<Vec<u8>>, Error> {
        if self.described().fill == Fill::Undefined {
            return Ok(None);
        }
        let whole = self.chunked()?;
        Ok(whole.and_then(|whole| stored_fill(whole.array()).map(<[u8]>::to_vec)))
    }

    /// The array with the chunks that this read asks for, if chunks are looked up at reading.
    fn whole_for(&self, selection: &ArraySelection<'_>) -> Result<WholeArray, Error> {
        let archive = &self.archive;
        if let (Some(indexes), ArraySelection::Axes(selection)) = (archive.indexes_of(self.number), selection)
        {
            let few = indexes.few(&archive.tree, &archive.stores, self.number, selection);
            if let Some(few) = few.map_err(|problem| self.failed(problem))? {
                let number = archive.first_number + few.number;
                return Ok(WholeArray::resolved(Resolved { number, ..few }));
            }
        }
        let ArchiveKind::Keys(far) = &archive.kind else { return self.whole() };
        let document = &far.documents[self.number]; // one document for each array
        let shape = self.described().shape.as_deref().unwrap_or_default();
        let touched = selection.touched(document, shape).map_err(|problem| self.failed(problem))?;
        let work = Interruptible::new(&*archive.interrupts);
        let stop = || work.is_over();
        let sought = Sought::new(
            document,
            &far.keys,
            shape,
            &touched,
            archive.first_number + self.number as u64,
            &stop,
        );
        Ok(WholeArray::sought(sought.map_err(|error| work.failure(error))?))
    }

    fn planned(&self, whole: &WholeArray, selection: &ArraySelection<'_>) -> Result<Planned, Error> {
        let planned = selection.planned(whole.array(), |selection| whole.plan(selection));
        planned.map_err(|problem| self.failed(problem))
    }

    fn reading<'a>(&'a self, whole: &'a WholeArray, options: ReadOptions) -> Reading<'a> {
        Reading {
            array: whole.array(),
            name: &self.path,
            number: whole.number(),
            stores: whole.stores(),
            cache: &self.archive.cache,
            interrupts: &*self.archive.interrupts,
            options,
            values: None,
        }
    }

    /// Fails if chunks are only looked up at reading.
    fn check_listed(&self) -> Result<(), Error> {
        let ArchiveKind::Keys(_) = self.archive.kind else { return Ok(()) };
        let feature = "planning a read of an array whose chunks are not listed";
        Err(self.failed(Unreadable::unsupported(feature)))
    }

    fn listed_sum(&self, each: impl Fn(&Manifest, &ChunkGrid) -> u64) -> Result<Option<u64>, Error> {
        if matches!(self.archive.kind, ArchiveKind::Keys(_)) { Ok(None) } else { self.sum(each).map(Some) }
    }

    /// A sum over all manifests. Counts each manifest once.
    fn sum(&self, each: impl Fn(&Manifest, &ChunkGrid) -> u64) -> Result<u64, Error> {
        let Some(whole) = self.chunked()? else { return Ok(0) };
        Ok(whole.manifests().into_iter().map(|(manifest, grid)| each(manifest, grid)).sum())
    }

    fn failed(&self, problem: impl Into<Problem>) -> Error {
        problem.into().of_array(&self.archive.name, &self.path)
    }
}

/// Whether the array is unknown because its description could not be fetched.
fn is_unfetched(array: &Array) -> bool {
    matches!(array.segments, Err(Unreadable::Unfetched { .. }))
}

/// The value of unwritten elements, if the chunks hold the values that elements point to.
pub(crate) fn stored_fill(array: &Array) -> Option<&[u8]> {
    let codecs = array.segments.as_deref().ok()?.iter().flat_map(|segment| &segment.codecs);
    codecs.into_iter().find_map(|codec| match codec {
        Codec::Values { fill, .. } => Some(fill.as_slice()),
        _ => None,
    })
}
