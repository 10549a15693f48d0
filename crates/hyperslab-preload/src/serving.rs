//! Decides whether a read is ours, and does it.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use crate::callers::{Libhdf5, Site};
use crate::comparing::compare;
use crate::counts::{self, Count};
use crate::hints;
use crate::known::{self, ArrayKey, Facts, known};
use crate::libhdf5::{Held, Library, Quiet};
use crate::open_array::OpenArray;
use crate::open_file::OpenFile;
use crate::reason::Reason;
use crate::request::{ALL, Call, Request, is_space, makes_sense};
use crate::scatter::Target;
use crate::settings::settings;

/// libhdf5 is as fast for fewer elements than this, whatever they are. Counting them is all that such a read costs.
const FEW_ELEMENTS: i64 = 1 << 10;
/// libhdf5 is as fast for fewer bytes than this.
const FEW_NBYTES: u64 = 32 << 10;
/// The same for elements without filters, which only have to be copied.
const FEW_PLAIN_NBYTES: u64 = 1 << 20;
/// Finding a chunk takes as long as libhdf5 takes for this many bytes.
const NBYTES_PER_CHUNK: u64 = 64;
/// `H5D_CONTIGUOUS`, `H5D_CHUNKED`.
const CONTIGUOUS: i32 = 1;
const CHUNKED: i32 = 2;
/// `H5T_INTEGER`, `H5T_FLOAT`, `H5T_ORDER_LE`, `H5T_ORDER_BE`.
const INTEGER: i32 = 0;
const FLOAT: i32 = 1;
const LITTLE: i32 = 0;
const BIG: i32 = 1;
const MOST_NDIM: usize = 32;

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
        // SAFETY: it is the identifier of a dataspace.
        let count = unsafe { (library.call.selection_count)(space) };
        if count < FEW_ELEMENTS && !exceeds_cache(site.libhdf5, library, call) {
            return passed(Reason::Small, 0);
        }
    }
    if !makes_sense(library, call) || !is_space(library, call.file_space) {
        return passed(Reason::Invalid, 0);
    }
    let Some(_quiet) = Quiet::new(library) else { return passed(Reason::Library, 0) };
    let begun = Instant::now();
    let mut nbytes = 0;
    match read(site.libhdf5, library, call, &mut nbytes) {
        Ok((key, request)) => {
            let took = begun.elapsed();
            counts::add(Count::ServedReads, 1);
            counts::add(Count::ServedNbytes, nbytes);
            counts::add(Count::ServedNanoseconds, counts::nanoseconds(took));
            compare(site, library, call, key, &request, (nbytes, took));
            counts::write_sometimes();
            Outcome::Served
        }
        Err(reason) => passed(reason, nbytes),
    }
}

/// Reads what a call asks for. `nbytes` becomes its size as soon as that is known.
fn read(
    number: &Libhdf5,
    library: &Library,
    call: &Call,
    nbytes: &mut u64,
) -> Result<(ArrayKey, Request), Reason> {
    let request = Request::of(library, call)?;
    // SAFETY: it is the identifier of a datatype.
    let width = unsafe { (library.call.type_nbytes)(call.memory_type) };
    *nbytes = request.count.checked_mul(width as u64).ok_or(Reason::Invalid)?;
    if *nbytes < FEW_NBYTES && !exceeds_cache(number, library, call) {
        return Err(Reason::Small);
    }
    if !library.is_default_transfer(call.properties) {
        return Err(Reason::Properties);
    }
    let place = library.place(call.array).ok_or(Reason::Driver)?;
    let key = ArrayKey { library: number.number(), place };
    let file = file(library, call, key)?;
    let array = array(library, call, key, file, *nbytes)?;
    if array.width != width as u64 {
        return Err(Reason::Conversion);
    }
    let is_swapped = is_swapped(library, call).ok_or(Reason::Conversion)?;
    if array.shape != request.file.shape {
        return Err(Reason::Selection);
    }
    if !file.is_unchanged() {
        return Err(changed(key));
    }
    fill(&array, &request, call, (width, is_swapped))?;
    if file.is_unchanged() { Ok((key, request)) } else { Err(changed(key)) }
}

fn changed(key: ArrayKey) -> Reason {
    if let Some(mut known) = known() {
        let _ = known.keep_file(key, known::writers(), Err(Reason::Changed));
    }
    Reason::Changed
}

/// The file of the array, if it may be read.
fn file(library: &Library, call: &Call, key: ArrayKey) -> Result<OpenFile, Reason> {
    if let Some(found) = known().ok_or(Reason::Busy)?.file(key) {
        return found;
    }
    let writers = known::writers();
    let found = OpenFile::of(library, call.array);
    known().ok_or(Reason::Busy)?.keep_file(key, writers, found)
}

/// The array, if reading it is worth it by now.
fn array(
    library: &Library,
    call: &Call,
    key: ArrayKey,
    file: OpenFile,
    nbytes: u64,
) -> Result<Arc<OpenArray>, Reason> {
    {
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
            _ => {}
        }
    }
    let opened = OpenArray::at(file, key.place.address, known::cache_nbytes()).map(Arc::new);
    if !file.is_unchanged() {
        return Err(changed(key));
    }
    let mut known = known().ok_or(Reason::Busy)?;
    known.array(key, || facts(library, call)).opened = Some(opened.clone());
    opened
}

/// Whether our engine is faster, everything considered.
fn is_worth(facts: &Facts, nbytes: u64, asked_nbytes: u64) -> bool {
    let few = if facts.is_filtered { FEW_NBYTES } else { FEW_PLAIN_NBYTES };
    (nbytes >= few || facts.uncached_nbytes > 0) && asked_nbytes / NBYTES_PER_CHUNK >= facts.chunk_count
}

/// How the array is stored.
fn facts(library: &Library, call: &Call) -> Result<Facts, Reason> {
    let functions = &library.call;
    let (mut shape, mut piece) = ([0_u64; MOST_NDIM], [0_u64; MOST_NDIM]);
    // SAFETY: the functions take any identifier; there is room for a length on each axis.
    let (ndim, width, is_filtered, is_chunked, cache_nbytes) = unsafe {
        let properties =
            Held::new(library, (functions.array_properties)(call.array)).ok_or(Reason::Failed)?;
        let space = Held::new(library, (functions.array_space)(call.array)).ok_or(Reason::Failed)?;
        let kind = Held::new(library, (functions.array_type)(call.array)).ok_or(Reason::Failed)?;
        let ndim = (functions.space_shape)(space.id, shape.as_mut_ptr(), std::ptr::null_mut());
        let most = i32::try_from(MOST_NDIM).unwrap_or(0);
        let is_chunked = match (functions.properties_layout)(properties.id) {
            CONTIGUOUS => false,
            CHUNKED if (functions.properties_chunk)(properties.id, most, piece.as_mut_ptr()) == ndim => true,
            _ => return Err(Reason::Layout),
        };
        let is_filtered = (functions.properties_filters)(properties.id) > 0;
        let access = Held::new(library, (functions.array_access)(call.array)).ok_or(Reason::Failed)?;
        let (mut slots, mut cache_nbytes, mut preemption) = (0, usize::MAX, 0.0);
        let (slots, preemption) = (&raw mut slots, &raw mut preemption);
        (functions.access_cache)(access.id, slots, &raw mut cache_nbytes, preemption);
        (ndim, (functions.type_nbytes)(kind.id) as u64, is_filtered, is_chunked, cache_nbytes as u64)
    };
    let ndim = usize::try_from(ndim).ok().filter(|&ndim| ndim > 0).ok_or(Reason::Layout)?;
    let (shape, piece) = (&shape[..ndim], &mut piece[..ndim]);
    if !is_chunked {
        let mut room = FEW_PLAIN_NBYTES / width.max(1);
        for (piece, &length) in piece.iter_mut().zip(shape).rev() {
            *piece = length.min(room).max(1);
            room /= *piece;
        }
    }
    let lengths = shape.iter().zip(&*piece);
    let counts = lengths.map(|(length, piece)| length.div_ceil((*piece).max(1)));
    let chunk_count = if is_chunked { counts.fold(1, u64::saturating_mul) } else { 1 };
    let chunk_nbytes = piece.iter().fold(width, |product, &length| product.saturating_mul(length));
    let is_uncached = is_chunked && is_filtered && chunk_nbytes > cache_nbytes;
    let uncached_nbytes = if is_uncached { chunk_nbytes } else { 0 };
    Ok(Facts { piece: piece.to_vec(), chunk_count, is_filtered, uncached_nbytes })
}

/// Whether the program wants the elements in the other byte order than the file has them; `None` if it wants something
/// else altogether.
fn is_swapped(library: &Library, call: &Call) -> Option<bool> {
    let functions = &library.call;
    // SAFETY: the functions take any identifier.
    unsafe {
        let stored = Held::new(library, (functions.array_type)(call.array))?;
        if (functions.type_equal)(stored.id, call.memory_type) > 0 {
            return Some(false);
        }
        if !matches!((functions.type_class)(stored.id), INTEGER | FLOAT) {
            return None;
        }
        let other = match (functions.type_order)(stored.id) {
            LITTLE => BIG,
            BIG => LITTLE,
            _ => return None,
        };
        let swapped = Held::new(library, (functions.type_copy)(stored.id))?;
        let is_so = (functions.type_set_order)(swapped.id, other) >= 0
            && (functions.type_equal)(swapped.id, call.memory_type) > 0;
        is_so.then_some(true)
    }
}

/// Whether libhdf5's cache is too small for a single chunk, as far as we know: then it decodes a chunk for each read,
/// however small.
#[inline]
fn exceeds_cache(number: &Libhdf5, library: &Library, call: &Call) -> bool {
    hints::exceeds_cache(number.number(), call.array).unwrap_or_else(|| {
        let quiet = if makes_sense(library, call) { Quiet::new(library) } else { None };
        let exceeds = quiet.is_some() && facts(library, call).is_ok_and(|facts| facts.uncached_nbytes > 0);
        hints::keep(number.number(), call.array, exceeds);
        exceeds
    })
}

/// Fills the program's memory with elements of a width, perhaps in the other byte order.
fn fill(
    array: &OpenArray,
    request: &Request,
    call: &Call,
    (width, is_swapped): (usize, bool),
) -> Result<(), Reason> {
    let nbytes = usize::try_from(request.count).ok().and_then(|count| count.checked_mul(width));
    let nbytes = nbytes.filter(|&nbytes| isize::try_from(nbytes).is_ok()).ok_or(Reason::Memory)?;
    match Target::of(request.memory.as_ref(), width).ok_or(Reason::Memory)? {
        Target::Piece(start) => {
            // SAFETY: the program says that it has memory for these elements there, and waits until we are done.
            let out = unsafe { std::slice::from_raw_parts_mut(call.out.add(start), nbytes) };
            array.read(&request.file, is_swapped, out)
        }
        Target::Gaps(gaps) => {
            if nbytes > settings().memory_nbytes {
                return Err(Reason::Memory);
            }
            let mut elements = Vec::new();
            elements.try_reserve_exact(nbytes).map_err(|_| Reason::Memory)?;
            elements.resize(nbytes, 0);
            array.read(&request.file, is_swapped, &mut elements)?;
            // SAFETY: the program says that its memory has the shape of the dataspace.
            unsafe { gaps.fill(&elements, call.out) };
            Ok(())
        }
    }
}
