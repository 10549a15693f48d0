//! Decides whether a read is ours, and does it.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hyperslab_libhdf5::libraries::Libhdf5;
use hyperslab_libhdf5::{ArrayKey, Id, Layout, Library, MOST_NDIM, Quiet};

use crate::callers::Site;
use crate::comparing::compare;
use crate::conversion::Change;
use crate::counts::{self, Count};
use crate::hints::{self, Grid, Hint};
use crate::known::known;
use crate::open_array::{Facts, KEEPS_UNCHECKED, OpenArray, zeros};
use crate::open_file::OpenFile;
use crate::prefetching;
use crate::reason::Reason;
use crate::request::{ALL, Call, Request, is_space, makes_sense};
use crate::scatter::Target;
use crate::settings::settings;
use crate::writers::writers;
use crate::{far, files};

/// libhdf5 is as fast for fewer elements than this, unless they are in many chunks.
const FEW_ELEMENTS: i64 = 1 << 10;
/// Fewer elements than this are left to libhdf5 without a look at the chunks that they are in: one is in one chunk.
const FEWEST_ELEMENTS: i64 = 2;
/// libhdf5 is as fast for fewer bytes than this.
const FEW_NBYTES: u64 = 32 << 10;
/// The same for elements without filters, which only have to be copied.
const FEW_PLAIN_NBYTES: u64 = 1 << 20;
/// Finding a chunk takes as long as libhdf5 takes for this many bytes.
const NBYTES_PER_CHUNK: u64 = 64;
/// How often, and how long each time, a read waits for other threads if libhdf5 cannot do it.
const MOST_WAITS: usize = 1000;
const WAIT: Duration = Duration::from_millis(1);

/// What became of a call.
pub(crate) enum Outcome {
    /// The elements are where the program wants them.
    Served,
    /// libhdf5 has to do it. The bytes are 0 if they are not known.
    Passed { reason: Reason, nbytes: u64 },
}

/// Serves a call, or says why not.
pub(crate) fn serve(site: &Site, call: &Call) -> Outcome {
    let passed = |reason, nbytes| Outcome::Passed { reason, nbytes };
    let Some(library) = site.libhdf5.library() else { return passed(Reason::Library, 0) };
    let space = if call.memory_space == ALL { call.file_space } else { call.memory_space };
    if !is_space(library, space) {
        return passed(Reason::Invalid, 0);
    }
    if space != ALL {
        let count = library.space(space).count();
        if count < FEW_ELEMENTS
            && !serves_small(site.libhdf5, library, call)
            && (count < FEWEST_ELEMENTS || spread_nbytes(site.libhdf5, library, call, count) == 0)
        {
            return passed(Reason::Small, 0);
        }
    }
    if !makes_sense(library, call) || !is_space(library, call.file_space) {
        return passed(Reason::Invalid, 0);
    }
    let Some(_quiet) = Quiet::new(library) else { return passed(Reason::Library, 0) };
    let begun = Instant::now();
    let mut nbytes = 0;
    match read_patiently(site.libhdf5, library, call, &mut nbytes, begun) {
        Ok(done) => {
            if let Some(filter) = done.array.lacked_filter {
                counts::add_lacking(filter);
            }
            let took = begun.elapsed();
            counts::add(Count::ServedReads, 1);
            counts::add(Count::ServedNbytes, nbytes);
            counts::add(Count::ServedNanoseconds, counts::nanoseconds(took));
            if !done.array.file.is_far() {
                compare(site, library, call, done.key, &done.request, (nbytes, took));
            }
            if done.is_foreseen {
                extend(&done);
            } else {
                foresee(&done, begun);
            }
            counts::write_sometimes();
            Outcome::Served
        }
        Err(reason) => passed(reason, nbytes),
    }
}

/// A read that was served.
struct Done {
    key: ArrayKey,
    array: Arc<OpenArray>,
    request: Request,
    change: Change,
    /// The bytes of an element in the program's memory.
    width: usize,
    /// Whether the next read has begun.
    is_foreseen: bool,
}

/// Reads what a call asks for. If libhdf5 could not do it, a read waits for what other threads have.
fn read_patiently(
    number: &Libhdf5,
    library: &Library,
    call: &Call,
    nbytes: &mut u64,
    begun: Instant,
) -> Result<Done, Reason> {
    for _ in 0..MOST_WAITS {
        match read(number, library, call, nbytes, begun) {
            Err(Reason::Busy) if hint(number, library, call).lacks_filter => std::thread::sleep(WAIT),
            done => return done,
        }
    }
    Err(Reason::Busy)
}

/// Reads what a call asks for. `nbytes` becomes its size as soon as that is known.
fn read(
    number: &Libhdf5,
    library: &Library,
    call: &Call,
    nbytes: &mut u64,
    begun: Instant,
) -> Result<Done, Reason> {
    let request = Request::of(library, call)?;
    let width = library.datatype(call.memory_type).nbytes();
    *nbytes = request.count.checked_mul(width as u64).ok_or(Reason::Invalid)?;
    let is_small = *nbytes < FEW_NBYTES;
    let count = i64::try_from(request.count).unwrap_or(i64::MAX);
    let decoded_nbytes = if is_small { spread_nbytes(number, library, call, count) } else { 0 };
    if is_small && decoded_nbytes == 0 && !serves_small(number, library, call) {
        return Err(Reason::Small);
    }
    if !library.properties(call.properties).is_default_transfer() {
        return Err(Reason::Properties);
    }
    let place = library.array(call.array).place().ok_or(Reason::Driver)?;
    let key = ArrayKey { library: number.number(), place };
    let file = file(library, call, key)?;
    let array = array(library, call, key, file, decoded_nbytes.max(*nbytes))?;
    let mut done = Done::begun(number, library, call, key, array, request, width)?;
    if !file.is_unchanged() {
        return Err(changed(key));
    }
    let filled = fill(&mut done, call, begun);
    if file.is_unchanged() { filled.map(|()| done) } else { Err(changed(key)) }
}

impl Done {
    /// A read that is ours if it succeeds.
    fn begun(
        number: &Libhdf5,
        library: &Library,
        call: &Call,
        key: ArrayKey,
        array: Arc<OpenArray>,
        request: Request,
        width: usize,
    ) -> Result<Self, Reason> {
        let change = Change::of(number, library, call.array, call.memory_type).ok_or(Reason::Conversion)?;
        if array.width != change.stored_width().unwrap_or(width) as u64 {
            return Err(Reason::Conversion);
        }
        if array.shape != request.file.shape {
            return Err(Reason::Selection);
        }
        Ok(Self { key, array, request, change, width, is_foreseen: false })
    }
}

/// Whether libhdf5 would not notice that what it reads has changed: elements without filters have nothing to check, and
/// behind the end of a file that has become shorter it finds zeros.
pub(crate) fn is_unchecked(number: &Libhdf5, library: &Library, call: &Call) -> bool {
    changed_array(number, library, call).is_some_and(|array| !array.is_filtered)
}

/// The same for a read that is too small for us, of which nobody has looked whether the file has changed.
pub(crate) fn is_small_changed(site: &Site, call: &Call) -> bool {
    KEEPS_UNCHECKED.load(Ordering::Relaxed)
        && site.libhdf5.library().is_some_and(|library| {
            Quiet::new(library).is_some_and(|_quiet| is_unchecked(site.libhdf5, library, call))
        })
}

/// libhdf5 has done a read of a file that has changed.
pub(crate) fn passed_changed(number: &Libhdf5, library: &Library, call: &Call) {
    let Some(array) = changed_array(number, library, call) else { return };
    if let Ok(request) = Request::of(library, call) {
        array.kept.make_way(request.count.saturating_mul(array.width));
    }
}

fn changed_array(number: &Libhdf5, library: &Library, call: &Call) -> Option<Arc<OpenArray>> {
    if !makes_sense(library, call) {
        return None;
    }
    let key = ArrayKey { library: number.number(), place: library.array(call.array).place()? };
    known()?.last_opened(key).filter(|array| !array.file.is_unchanged())
}

/// Does a read of a file that has changed from what we keep of it, as libhdf5 would from its cache if it had read what we
/// did. Returns whether that was all.
pub(crate) fn serve_kept(number: &Libhdf5, library: &Library, call: &Call) -> Option<()> {
    let request = Request::of(library, call).ok()?;
    let width = library.datatype(call.memory_type).nbytes();
    let key = ArrayKey { library: number.number(), place: library.array(call.array).place()? };
    let array = known()?.last_opened(key)?;
    if array.file.is_unchanged() || !library.properties(call.properties).is_default_transfer() {
        return None;
    }
    let _ = changed(key);
    array.kept.close();
    let mut done = Done::begun(number, library, call, key, array, request, width).ok()?;
    fill(&mut done, call, Instant::now()).ok()
}

/// Begins the read that comes next, if the reads of the array follow a pattern.
fn foresee(done: &Done, begun: Instant) {
    if !settings().prefetches {
        return;
    }
    let next = {
        let Some(mut known) = known() else { return };
        let Some(array) = known.find(done.key) else { return };
        array.pattern.note(&done.request.file, begun);
        let Some(facts) = array.facts.as_ref().ok().filter(|facts| facts.is_filtered) else { return };
        array.pattern.next(&done.array.shape, &facts.piece)
    };
    let Some(next) = next else { return };
    let Some(count) = next.count().and_then(|count| usize::try_from(count).ok()) else { return };
    let Some(nbytes) = count.checked_mul(done.width) else { return };
    prefetching::begin(done.key, &done.array, next, done.change, nbytes);
}

/// Takes account of the time that it took to copy what had been read ahead.
fn extend(done: &Done) {
    if let Some(mut known) = known()
        && let Some(array) = known.find(done.key)
    {
        array.pattern.extend();
    }
}

fn changed(key: ArrayKey) -> Reason {
    if let Some(mut files) = files::files() {
        let _ = files.keep(key, writers(), Err(Reason::Changed));
    }
    Reason::Changed
}

/// The file of the array, if it may be read.
fn file(library: &Library, call: &Call, key: ArrayKey) -> Result<OpenFile, Reason> {
    if let Some(found) = files::files().ok_or(Reason::Busy)?.get(key) {
        return found;
    }
    let before = writers();
    let found = OpenFile::of(library, call.array);
    files::files().ok_or(Reason::Busy)?.keep(key, before, found)
}

/// A file was opened for reading: what it is now counts, not what it is at the first read.
pub(crate) fn opened(libhdf5: &Libhdf5, id: Id) {
    let Some(library) = libhdf5.library() else { return };
    let Some(_quiet) = Quiet::new(library) else { return };
    let (Some(place), Ok(file)) = (library.array(id).place(), OpenFile::opened(library, id)) else { return };
    if let Some(mut files) = files::files() {
        files.opened(ArrayKey { library: libhdf5.number(), place }, file);
    }
}

/// The array, if reading it is worth it by now. `nbytes` are those that are asked for, or that have to be decoded for it.
fn array(
    library: &Library,
    call: &Call,
    key: ArrayKey,
    file: OpenFile,
    nbytes: u64,
) -> Result<Arc<OpenArray>, Reason> {
    let facts = {
        let mut known = known().ok_or(Reason::Busy)?;
        let array = known.array(key, || facts(library, call));
        let facts = array.facts.as_ref().map_err(|reason| *reason)?;
        array.asked_nbytes = array.asked_nbytes.saturating_add(nbytes.max(facts.uncached_nbytes));
        if !is_worth(facts, nbytes, array.asked_nbytes) {
            return Err(Reason::Small);
        }
        match &array.opened {
            Some(Ok(opened)) if opened.file == file => return Ok(Arc::clone(opened)),
            Some(Err(reason)) => return Err(*reason),
            _ => facts.clone(),
        }
    };
    let cache = {
        let mut known = known().ok_or(Reason::Busy)?;
        known.forget_closed();
        known.cache()
    };
    let opened = OpenArray::at(file, key.place.address, cache, &facts).map(Arc::new);
    if !file.is_unchanged() {
        return Err(changed(key));
    }
    let mut known = known().ok_or(Reason::Busy)?;
    known.array(key, || Ok(facts)).opened = Some(opened.clone());
    known.make_room();
    opened
}

/// Whether our engine is faster, everything considered.
fn is_worth(facts: &Facts, nbytes: u64, asked_nbytes: u64) -> bool {
    let few = if facts.is_filtered { FEW_NBYTES } else { FEW_PLAIN_NBYTES };
    let is_large = nbytes >= few || facts.uncached_nbytes > 0;
    settings().serves_small
        || facts.lacked_filter.is_some()
        || facts.is_far
        || (is_large && asked_nbytes / NBYTES_PER_CHUNK >= facts.chunk_count)
}

/// How the array is stored.
fn facts(library: &Library, call: &Call) -> Result<Facts, Reason> {
    let (mut shape, mut piece) = ([0_u64; MOST_NDIM], [0_u64; MOST_NDIM]);
    let array = library.array(call.array);
    let creation = array.creation().ok_or(Reason::Failed)?;
    let space = array.space().ok_or(Reason::Failed)?;
    let shape = space.shape(&mut shape).filter(|shape| !shape.is_empty()).ok_or(Reason::Layout)?;
    let is_chunked = match creation.layout() {
        Some(Layout::Contiguous) => false,
        Some(Layout::Chunked) => true,
        _ => return Err(Reason::Layout),
    };
    // Where nothing is stored, and nothing is to be filled in, libhdf5 leaves the program's memory as it is.
    if !creation.fills() && !array.is_allocated() {
        return Err(Reason::Layout);
    }
    let is_filtered = creation.is_filtered();
    let access = array.access().ok_or(Reason::Failed)?;
    let cache_nbytes = access.chunk_cache().map_or(usize::MAX, |cache| cache.nbytes) as u64;
    let lacked_filter = creation.lacked_filter();
    let width = array.stored_type().ok_or(Reason::Failed)?.nbytes() as u64;
    let piece = if is_chunked {
        creation.chunk_shape(&mut piece).filter(|piece| piece.len() == shape.len()).ok_or(Reason::Layout)?
    } else {
        rows(shape, width, &mut piece)
    };
    let counts = shape.iter().zip(&*piece).map(|(length, piece)| length.div_ceil((*piece).max(1)));
    let chunk_count = if is_chunked { counts.fold(1, u64::saturating_mul) } else { 1 };
    let chunk_nbytes = piece.iter().fold(width, |product, &length| product.saturating_mul(length));
    let is_uncached = is_chunked && is_filtered && chunk_nbytes > cache_nbytes;
    let uncached_nbytes = if is_uncached { chunk_nbytes } else { 0 };
    let kept_nbytes = if is_chunked && chunk_nbytes <= cache_nbytes { cache_nbytes } else { 0 };
    let piece = piece.to_vec();
    let is_far = far::has_any()
        && (is_chunked || array.stored_nbytes() >= FEW_PLAIN_NBYTES)
        && array.file().is_some_and(|file| file.driven().is_some());
    Ok(Facts {
        piece,
        chunk_count,
        is_filtered,
        chunk_nbytes,
        cache_nbytes,
        uncached_nbytes,
        kept_nbytes,
        is_far,
        lacked_filter,
    })
}

/// The shape of some rows of an array that is not chunked.
fn rows<'r>(shape: &[u64], width: u64, piece: &'r mut [u64; MOST_NDIM]) -> &'r mut [u64] {
    let piece = &mut piece[..shape.len()];
    let mut room = FEW_PLAIN_NBYTES / width.max(1);
    for (piece, &length) in piece.iter_mut().zip(shape).rev() {
        *piece = length.min(room).max(1);
        room /= *piece;
    }
    piece
}

/// Whether small reads of the array are ours.
#[inline]
fn serves_small(number: &Libhdf5, library: &Library, call: &Call) -> bool {
    settings().serves_small || hint(number, library, call).serves_small
}

#[inline]
fn hint(number: &Libhdf5, library: &Library, call: &Call) -> Hint {
    hints::hint(number.number(), call.array).unwrap_or_else(|| find_hint(number, library, call))
}

/// Finds out about an array what decides on small reads, and keeps it.
#[cold]
fn find_hint(number: &Libhdf5, library: &Library, call: &Call) -> Hint {
    let quiet = if makes_sense(library, call) { Quiet::new(library) } else { None };
    let facts = quiet.and_then(|_quiet| facts(library, call).ok());
    let facts = facts.filter(|facts| facts.is_filtered || facts.is_far);
    let mut found = Hint { serves_small: false, lacks_filter: false, may_spread: false };
    if let Some(facts) = facts {
        found.lacks_filter = facts.lacked_filter.is_some();
        found.serves_small = found.lacks_filter || facts.is_far || facts.uncached_nbytes > 0;
        let grid = Grid::new(&facts.piece, facts.chunk_nbytes, facts.cache_nbytes);
        if let Some(grid) = grid
            && facts.chunk_count.saturating_mul(facts.chunk_nbytes) > facts.cache_nbytes
        {
            found.may_spread = true;
            hints::keep_grid(number.number(), call.array, grid);
        }
    }
    hints::keep(number.number(), call.array, found);
    found
}

/// The decoded bytes of the chunks that a read touches, if libhdf5's cache is too small for them: then it decodes all of
/// them for each such read of `count` elements, however few these are. 0 if it keeps them.
fn spread_nbytes(number: &Libhdf5, library: &Library, call: &Call, count: i64) -> u64 {
    if call.file_space == ALL || !hint(number, library, call).may_spread {
        return 0;
    }
    let grid = hints::grid(number.number(), call.array).or_else(|| {
        find_hint(number, library, call);
        hints::grid(number.number(), call.array)
    });
    let Some(grid) = grid else { return 0 };
    // Most small reads cannot touch so many chunks: no more than they have elements.
    if grid.chunk_nbytes.saturating_mul(count.cast_unsigned()) <= grid.cache_nbytes
        || !is_space(library, call.file_space)
    {
        return 0;
    }
    let Some(_quiet) = Quiet::new(library) else { return 0 };
    let space = library.space(call.file_space);
    let count = space.count();
    let Some((low, high)) = (count > 0).then(|| space.bounds()).flatten() else { return 0 };
    // No more chunks than elements. Selections with large gaps may touch fewer.
    let nbytes = grid.chunk_count(&low, &high).min(count.cast_unsigned()).saturating_mul(grid.chunk_nbytes);
    if nbytes > grid.cache_nbytes { nbytes } else { 0 }
}

/// Fills the program's memory. What was read ahead is copied while the next read goes on.
fn fill(done: &mut Done, call: &Call, begun: Instant) -> Result<(), Reason> {
    let nbytes = usize::try_from(done.request.count).ok().and_then(|count| count.checked_mul(done.width));
    let nbytes = nbytes.filter(|&nbytes| isize::try_from(nbytes).is_ok()).ok_or(Reason::Memory)?;
    let target = Target::of(done.request.memory.as_ref(), done.width).ok_or(Reason::Memory)?;
    let file = &done.request.file;
    let ahead =
        prefetching::take(done.key, &done.array, file, done.change).filter(|ahead| ahead.len() == nbytes);
    if ahead.is_some() {
        counts::add(Count::AheadReads, 1);
        if prefetching::has_room_for_two(nbytes) {
            done.is_foreseen = true;
            foresee(done, begun);
        }
    }
    let Done { array, request, change, .. } = &*done;
    match (target, ahead) {
        (Target::Piece(start), ahead) => {
            // SAFETY: the program says that it has memory for these elements there, and waits until we are done.
            let out = unsafe { std::slice::from_raw_parts_mut(call.out.add(start), nbytes) };
            let Some(ahead) = ahead else { return array.read(&request.file, *change, out) };
            out.copy_from_slice(&ahead);
            prefetching::give_back(ahead);
        }
        (Target::Gaps(gaps), ahead) => {
            if nbytes > settings().memory_nbytes {
                return Err(Reason::Memory);
            }
            let is_ahead = ahead.is_some();
            let mut elements = ahead.map_or_else(|| zeros(nbytes), Ok)?;
            if !is_ahead {
                array.read(&request.file, *change, &mut elements)?;
            }
            // SAFETY: the program says that its memory has the shape of the dataspace.
            unsafe { gaps.fill(&elements, call.out) };
        }
    }
    Ok(())
}
