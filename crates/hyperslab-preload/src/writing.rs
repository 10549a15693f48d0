//! Decides whether a write is ours, and does it: chunks that it covers whole are encoded by all cores, and stored by the
//! libhdf5 that the call was meant for, on the program's own thread.
//!
//! Whatever goes wrong, libhdf5 does the whole call again: it stores the same elements in the same places, or says what is
//! wrong.

#![allow(unsafe_code)]

use std::time::Instant;

use hyperslab_archive::InterruptCheck;
use hyperslab_core::{AxisIndices, ChunkGrid};
use hyperslab_engine::codecs::Filter;
use hyperslab_engine::default_thread_count;
use hyperslab_libhdf5::libraries::{Libhdf5, libhdf5_at};
use hyperslab_libhdf5::{
    ArrayKey, Class, Id, Kind, Layout, Library, Properties, Quiet, SetAside, StoredChunks, Type,
};

use crate::callers::Site;
use crate::counts::{self, Count};
use crate::hints;
use crate::instructions::Called;
use crate::request::{ALL, Call, Request, is_space, makes_sense};
use crate::settings::settings;
use crate::signals::{Blocked, LetThrough};
use crate::whole_chunks::WholeChunks;
use crate::write_queue::{NotPut, Write, held_count, is_waiting, put, settle_array, waits};
use crate::write_reason::Left;

/// libhdf5 is as fast for fewer bytes than this.
const FEW_NBYTES: u64 = 32 << 10;
/// A part of the memory that we may use suffices for each thread, which has chunks that wait.
const CHUNKS_PER_THREAD: usize = 4;

/// Does a write, or says why not, and how many bytes it has as far as that is known.
pub(crate) fn write(site: &Site, call: &Call) -> Result<(), (Left, u64)> {
    let library = site.libhdf5.library().ok_or((Left::Library, 0))?;
    let space = if call.memory_space == ALL { call.file_space } else { call.memory_space };
    let number = site.libhdf5.number();
    let least_count = hints::least_count(number, call.array);
    if least_count == hints::NEVER {
        return Err((Left::Plain, 0));
    }
    if !is_space(library, space) {
        return Err((Left::Invalid, 0));
    }
    if space != ALL && least_count > library.space(space).count().cast_unsigned() {
        return Err((Left::Small, 0));
    }
    if !is_space(library, call.file_space) || !makes_sense(library, call) {
        return Err((Left::Invalid, 0));
    }
    let width = library.datatype(call.memory_type).nbytes() as u64;
    let nbytes = (space != ALL).then(|| library.space(space).count().cast_unsigned().saturating_mul(width));
    let left = |why| (why, nbytes.unwrap_or(0));
    let begun = Instant::now();
    let written = {
        let _quiet = Quiet::new(library).ok_or(left(Left::Library))?;
        Writing::of(site, library, call, width).map_err(left)?
    };
    let (written_nbytes, chunk_count) = (written.nbytes as u64, written.chunks.grid.chunk_count());
    written.wait_or_run(site, library, call).map_err(left)?;
    counts::add(Count::Writes, 1);
    counts::add(Count::WrittenChunks, chunk_count);
    counts::add(Count::WrittenNbytes, written_nbytes);
    counts::add(Count::WritingNanoseconds, counts::nanoseconds(begun.elapsed()));
    counts::write_sometimes();
    Ok(())
}

/// A write of whole chunks.
struct Writing<'l> {
    stored: StoredChunks<'l>,
    chunks: WholeChunks,
    nbytes: usize,
    /// Whether libhdf5's cache has room for it. Then none of its chunks exists yet.
    fits_in_cache: bool,
    threads: usize,
}

impl<'l> Writing<'l> {
    /// What a call asks for, if that is ours.
    fn of(site: &Site, library: &'l Library, call: &Call, width: u64) -> Result<Self, Left> {
        let number = site.libhdf5.number();
        let array = library.array(call.array);
        let creation = array.creation().ok_or(Left::Failed)?;
        if creation.layout() != Some(Layout::Chunked) || !creation.is_filtered() {
            hints::keep_least_count(number, call.array, hints::NEVER);
            return Err(Left::Plain);
        }
        let mut room = [0; hyperslab_libhdf5::MOST_NDIM];
        let chunk_shape = creation.chunk_shape(&mut room).ok_or(Left::Failed)?.to_vec();
        let chunk_nbytes = chunk_shape.iter().fold(width, |all, &length| all.saturating_mul(length));
        hints::keep_least_count(number, call.array, least_nbytes(chunk_nbytes) / width.max(1));
        let request = Request::of(library, call)?;
        if request.memory.is_some() {
            return Err(Left::Memory);
        }
        let nbytes = request
            .count
            .checked_mul(width)
            .filter(|&nbytes| nbytes >= least_nbytes(chunk_nbytes))
            .ok_or(Left::Small)?;
        let nbytes = usize::try_from(nbytes).map_err(|_| Left::Invalid)?;
        if !library.properties(call.properties).is_default_transfer() {
            return Err(Left::Properties);
        }
        check_file(library, call.array)?;
        let shape = array.space().ok_or(Left::Failed)?;
        let mut room = [0; hyperslab_libhdf5::MOST_NDIM];
        if shape.shape(&mut room).map(|shape| &*shape) != Some(&request.file.shape[..]) {
            return Err(Left::Invalid);
        }
        let part = whole_chunks(&request, &chunk_shape).ok_or(Left::Parts)?;
        let fill = check_elements(library, call, &creation, width)?;
        let (filters, optional) = filters(&creation)?;
        let threads = thread_count(chunk_nbytes).ok_or(Left::Memory)?;
        let access = array.access().ok_or(Left::Failed)?;
        let cache_nbytes = access.chunk_cache().map_or(0, |cache| cache.nbytes as u64);
        let stored = library.stored_chunks(call.array).map_err(|_| Left::Failed)?;
        let (first, lengths) = part;
        let grid = ChunkGrid::new(lengths, chunk_shape).map_err(|_| Left::Failed)?;
        let chunks = WholeChunks { grid, first, filters, optional, fill };
        let found = Self { stored, chunks, nbytes, fits_in_cache: nbytes as u64 <= cache_nbytes, threads };
        if found.fits_in_cache && found.writes_again() {
            return Err(Left::Again);
        }
        Ok(found)
    }

    /// Whether a chunk is stored already, or in libhdf5's cache. libhdf5 would only change that cache: programs may rely on
    /// what that costs, and on the stored chunk if they are killed.
    fn writes_again(&self) -> bool {
        (0..self.chunks.grid.chunk_count())
            .any(|number| self.chunks.start(number).is_none_or(|start| self.stored.has(&start)))
    }

    /// Lets the write wait if it has few chunks, so that the program goes on meanwhile. Otherwise all cores have enough to do.
    fn wait_or_run(self, site: &Site, library: &Library, call: &Call) -> Result<(), Left> {
        let done = self.waiting_or_run(site, library, call);
        if done == Err(Left::Stuck) {
            let errors = SetAside::new(library);
            drop(self); // which calls libhdf5
            drop(errors);
        }
        done
    }

    fn waiting_or_run(&self, site: &Site, library: &Library, call: &Call) -> Result<(), Left> {
        // SAFETY: the program says that its memory has so many elements of this type, and waits until we return.
        let bytes = unsafe { std::slice::from_raw_parts(call.out.cast_const(), self.nbytes) };
        let place = self.stored.array().place();
        // In a process that ran before we came, calls may be bound that we do not see: nothing waits there.
        let may_wait = settings().writes && self.chunks.grid.chunk_count() < 2 * self.threads as u64;
        let (Some(lock), Some(place), true) = (site.whole_lock(), place, may_wait) else {
            return self.run(site, library, call, bytes);
        };
        let key = ArrayKey { library: site.libhdf5.number(), place };
        if waits(key, &self.chunks) {
            return Err(Left::Again);
        }
        if !self.fits_in_cache && self.writes_again() {
            return self.run(site, library, call, bytes); // a killed program must have in the file what it has written anew
        }
        let chunks = self.chunks.clone();
        let write = Write { lock, real: site.real, libhdf5: site.libhdf5, array: call.array, key, chunks };
        match put(write, bytes) {
            Ok(()) => {
                counts::add(Count::WaitedWrites, 1);
                Ok(())
            }
            Err(NotPut::NoRoom) => self.run(site, library, call, bytes),
            Err(NotPut::Failed) => Err(Left::Stuck),
        }
    }

    /// Encodes and stores.
    fn run(&self, site: &Site, library: &Library, call: &Call, bytes: &[u8]) -> Result<(), Left> {
        if !is_settled(site, call.array) {
            return Err(Left::Stuck);
        }
        let _quiet = Quiet::new(library).ok_or(Left::Library)?;
        let _blocked = Blocked::new();
        self.chunks.encode(bytes, self.threads, |number, chunk, mask| {
            let _ = LetThrough.check(); // a signal may end the program between two chunks
            let start = self.chunks.start(number).ok_or(Left::Failed)?;
            self.stored.write(&start, &chunk, mask).map_err(|_| Left::Failed)
        })
    }
}

/// Whether no write to this array waits any more. If it is false, one could not be stored, and libhdf5 has the errors.
pub(crate) fn is_settled(site: &Site, array: Id) -> bool {
    let Some(lock) = is_waiting().then(|| site.whole_lock()).flatten() else { return true };
    let key = site.libhdf5.library().and_then(|library| {
        let _quiet = Quiet::new(library)?;
        let place = library.array(array).place()?;
        Some(ArrayKey { library: site.libhdf5.number(), place })
    });
    settle_array(lock, key)
}

/// Whether a call of `H5Dset_extent` makes no axis of its array shorter.
pub(crate) fn only_grows(real: usize, called: &Called) -> bool {
    let grows = || {
        let library = libhdf5_at(real)?.library()?;
        let _quiet = Quiet::new(library)?;
        let mut room = [0; hyperslab_libhdf5::MOST_NDIM];
        let space = library.array(called.first.cast_signed() as Id).space()?;
        let before = space.shape(&mut room)?;
        let wanted = called.second as *const u64;
        // SAFETY: the program says that the array has as many lengths as the dataspace has axes.
        let after =
            (!wanted.is_null()).then(|| unsafe { std::slice::from_raw_parts(wanted, before.len()) })?;
        Some(before.iter().zip(after).all(|(before, after)| after >= before))
    };
    grows().unwrap_or(false)
}

/// Whether the identifier that a call gives up stands for a file. Arrays with writes that wait stay open.
pub(crate) fn is_a_file(real: usize, called: &Called) -> bool {
    let Some(library) = libhdf5_at(real).and_then(Libhdf5::library) else { return true };
    let id = called.first.cast_signed() as Id;
    library.is(Kind::File, id)
}

/// Whether the identifier that a call begins with is that of an array which the program has closed, so that only writes that
/// wait keep it open.
pub(crate) fn is_closed(real: usize, called: &Called) -> bool {
    let id = called.first.cast_signed() as Id;
    let held = libhdf5_at(real).map_or(0, |libhdf5| held_count(libhdf5, id));
    let Some(library) = libhdf5_at(real).and_then(Libhdf5::library).filter(|_| held > 0) else {
        return false;
    };
    library.reference_count(id).is_none_or(|count| count <= held)
}

/// libhdf5 does writes of fewer bytes, unless small ones are ours too, for tests.
fn least_nbytes(chunk_nbytes: u64) -> u64 {
    if settings().serves_small { 1 } else { FEW_NBYTES.max(chunk_nbytes / 2) }
}

/// How many threads may encode chunks of a size; `None` if there is too little memory for one.
fn thread_count(chunk_nbytes: u64) -> Option<usize> {
    let most = settings().memory_nbytes as u64 / chunk_nbytes.max(1) / CHUNKS_PER_THREAD as u64;
    let wanted = settings().thread_count.unwrap_or_else(default_thread_count);
    Some(wanted.min(usize::try_from(most).unwrap_or(usize::MAX))).filter(|&count| count > 0)
}

/// Whether the file is one that we write to.
fn check_file(library: &Library, array: Id) -> Result<(), Left> {
    let file = library.array(array).file().ok_or(Left::Driver)?;
    let intent = file.intent().ok_or(Left::Driver)?;
    if intent.is_swmr() {
        return Err(Left::Swmr);
    }
    if !intent.is_writable() {
        return Err(Left::Invalid);
    }
    file.descriptor().map(drop).ok_or(Left::Driver)
}

/// The first element and the shape of the box that a call selects, if it covers whole chunks, or what the array has of them.
fn whole_chunks(request: &Request, chunk_shape: &[u64]) -> Option<(Vec<u64>, Vec<u64>)> {
    let axes = request.file.orthogonal()?;
    let is_one = |axis: &AxisIndices| matches!(axis, AxisIndices::Regular(one) if one.is_contiguous());
    if axes.axes().len() != chunk_shape.len() || !axes.axes().iter().all(is_one) {
        return None;
    }
    let with_grid = axes.axes().iter().zip(chunk_shape).zip(&request.file.shape);
    let mut are_whole = with_grid.map(|((axis, &chunk), &length)| {
        let (start, stop) = (axis.start(), axis.stop());
        chunk > 0 && start % chunk == 0 && (stop % chunk == 0 || stop == length)
    });
    are_whole.all(|is_whole| is_whole).then(|| {
        let starts = axes.axes().iter().map(AxisIndices::start).collect();
        (starts, axes.axes().iter().map(AxisIndices::len).collect())
    })
}

/// The steps that do what the array's filters do, and a bit for each that may be skipped.
fn filters(creation: &Properties<'_>) -> Result<(Vec<Filter>, u32), Left> {
    let settings = creation.filter_settings().ok_or(Left::Filter)?;
    if creation.lacked_filter().is_some() || creation.leaves_edges_plain() != Some(false) {
        return Err(Left::Filter);
    }
    let steps = settings.iter().map(|one| Filter::of_hdf5(one.number, &one.values));
    let steps = steps.collect::<Option<Vec<_>>>().ok_or(Left::Filter)?;
    let bits = settings.iter().zip(0..u32::BITS).filter(|(one, _)| one.is_optional);
    Ok((steps, bits.fold(0, |all, (_, place)| all | 1 << place)))
}

/// Whether the program's elements are the file's, byte by byte. Returns what fills chunks beyond the array.
fn check_elements(
    library: &Library,
    call: &Call,
    creation: &Properties<'_>,
    width: u64,
) -> Result<Vec<u8>, Left> {
    let stored = library.array(call.array).stored_type().ok_or(Left::Failed)?;
    if !stored.equals(call.memory_type) || width == 0 {
        return Err(Left::Conversion);
    }
    if !is_plain(&stored) {
        return Err(Left::Pointers);
    }
    let width = usize::try_from(width).map_err(|_| Left::Invalid)?;
    if !creation.fills() {
        return Ok(vec![0; width]); // as libhdf5 does
    }
    creation.fill_value(stored.id(), width).ok_or(Left::Failed)
}

/// Whether elements of a type are all in their place, and not somewhere else.
fn is_plain(kind: &Type<'_>) -> bool {
    match kind.class() {
        Some(
            Class::Integer
            | Class::Float
            | Class::Bitfield
            | Class::Opaque
            | Class::Enumeration
            | Class::Complex,
        ) => true,
        Some(Class::Text) => kind.is_fixed_text(),
        Some(Class::Array) => kind.base().is_some_and(|base| is_plain(&base)),
        Some(Class::Compound) => {
            (0..kind.member_count()).all(|number| kind.member(number).is_some_and(|member| is_plain(&member)))
        }
        _ => false,
    }
}
