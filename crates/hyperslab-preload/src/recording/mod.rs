//! Records what the program reads and writes, for `hyperslab trace`.
//!
//! Everything is asked of libhdf5 after its call has come back: then all identifiers are valid, and the time is the
//! program's own. The state is held for moments only, and never while libhdf5 works, which may wait for other threads.

#![allow(unsafe_code)]

mod arrays;
mod bytes;
mod closing;
mod json;
mod log;
mod openings;
mod process;
mod recent;
mod selections;
mod state;
mod switch;
mod types;

use std::ffi::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

use hyperslab_libhdf5::{Id, Kind as IdKind, Library, MOST_NDIM, Quiet, SetAside, has_failed};

use self::arrays::{described, is_writable};
use self::openings::Key;
use self::process::Process;
use self::selections::{Selected, element};
use self::state::{Kind, Numbers, Row, State};
use self::types::{memory_type, simple};
use crate::callers::Site;
use crate::counts::now;
use crate::settings::settings;
use crate::stack;

/// `H5S_ALL`, and more than all identifiers that stand for something special.
const ALL: Id = 0;
const FIRST_ID: Id = 16;
/// The flags of `log.py`.
const COLLECTIVE: u8 = 1;
const FAILED: u8 = 2;
const ENCODED: u8 = 4;

/// What a call does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Operation {
    Read = 0,
    Write = 1,
}

/// One array of a call.
#[derive(Clone, Copy)]
pub(crate) struct Asked {
    pub operation: Operation,
    pub array: Id,
    /// 0 for encoded chunks.
    pub memory_type: Id,
    pub properties: Id,
    pub part: Part,
}

/// What of it.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    /// What a dataspace selects.
    Space(Id),
    /// The encoded chunk that begins here: as many indices as the array has axes.
    Chunk(*const u64),
}

/// Begins to record, if the environment says so.
pub(crate) fn start() {
    let Some(folder) = &settings().trace_folder else { return };
    // Programs that this one replaced in the same process have ended.
    let _ = Process::own().paths(&folder.own_path()).find(|path| !log::say_replaced(path));
    state::forget();
    switch::turn_on();
    if settings().records_bytes {
        bytes::start();
    }
}

/// A child that was forked has a log of its own.
pub(crate) fn forked() {
    recent::forget();
    state::forget();
}

/// The process ends.
pub(crate) fn end() {
    if switch::is_on() {
        state::close();
    }
}

/// When a call begins; `None` if it is not recorded.
#[inline]
pub(crate) fn begin(site: &Site) -> Option<u64> {
    if !switch::counts() {
        return None;
    }
    if !stack::is_enough() {
        state::with(State::lose);
        return None;
    }
    site.libhdf5.library()?; // looked up before the call: asking for the version forgets errors
    Some(now())
}

/// Records a call that began then and has returned this.
#[inline]
pub(crate) fn note(begun: Option<u64>, site: &Site, asked: &Asked, result: usize) {
    if let Some(begun) = begun {
        let took = now().saturating_sub(begun);
        note_times(site, asked, (begun, took), has_failed(result));
    }
}

/// Records a call on several arrays. Each is given the same share of its time.
///
/// # Safety
/// The lists have so many entries.
pub(crate) unsafe fn note_several(
    begun: Option<u64>,
    site: &Site,
    operation: Operation,
    (count, arrays, memory_types, spaces): (usize, *const Id, *const Id, *const Id),
    properties: Id,
    result: usize,
) {
    let Some(begun) = begun else { return };
    if arrays.is_null() || memory_types.is_null() || spaces.is_null() || count == 0 {
        return;
    }
    let took = now().saturating_sub(begun) / count as u64;
    for place in 0..count {
        // SAFETY: as the caller promises.
        let (array, memory_type, space) =
            unsafe { (*arrays.add(place), *memory_types.add(place), *spaces.add(place)) };
        let asked = Asked { operation, array, memory_type, properties, part: Part::Space(space) };
        note_times(site, &asked, (begun + took * place as u64, took), has_failed(result));
    }
}

fn note_times(site: &Site, asked: &Asked, times: (u64, u64), has_failed: bool) {
    // A panic would be our fault, and only the record is lost.
    let done = catch_unwind(AssertUnwindSafe(|| {
        let library = site.libhdf5.library()?;
        if has_failed {
            noted_after_failure(site, library, asked, times)
        } else {
            noted(site, library, asked, times, 0)
        }
    }));
    if !matches!(done, Ok(Some(()))) {
        state::with(State::lose);
    }
}

/// The same after a call that failed: its arguments may be anything, and its errors must stay where they are.
#[cold]
fn noted_after_failure(site: &Site, library: &Library, asked: &Asked, times: (u64, u64)) -> Option<()> {
    let _errors = SetAside::new(library);
    let is_space = match asked.part {
        Part::Space(space) => space == ALL || library.is(IdKind::Space, space),
        Part::Chunk(offset) => !offset.is_null(),
    };
    let is_type = asked.memory_type == 0 || library.is(IdKind::Type, asked.memory_type);
    if library.is(IdKind::Array, asked.array) && is_space && is_type {
        Quiet::new(library).and_then(|_quiet| noted(site, library, asked, times, FAILED))
    } else {
        Some(()) // a call that makes no sense is no access
    }
}

fn noted(site: &Site, library: &Library, asked: &Asked, times: (u64, u64), flags: u8) -> Option<()> {
    let number = site.libhdf5.number();
    let (key, kind) = ((number, asked.array), (number, asked.memory_type));
    let flags = flags | collective(library, asked.properties);
    let mut row = Row { times, operation: asked.operation as u8, flags };
    if let Part::Space(space) = asked.part {
        let done = recent::with_array(key, |array, width, shape| {
            let text = text_of(library, kind)?;
            note_selected(library, &row, Numbers { array, text, width }, space, shape)
        });
        if done.is_some() {
            return done;
        }
    }
    let epoch = recent::epoch();
    let mut room = [0_u64; MOST_NDIM];
    let shape = shape_of(library, asked, &mut room)?;
    let array = state::with(|state| state.array(key, shape))?;
    let (array, width) = if let Some(known) = array {
        known
    } else {
        let (known, reopened) = new_array(site, library, key, shape)?;
        row.flags |= reopened;
        known
    };
    let text = text_of(library, kind)?;
    let known = Numbers { array, text, width };
    recent::keep_array(epoch, key, (array, width), shape);
    match asked.part {
        Part::Space(space) => note_selected(library, &row, known, space, shape),
        Part::Chunk(offset) => {
            row.flags |= ENCODED;
            let chunk = state::with(|state| state.chunk(key, shape))??;
            // SAFETY: libhdf5 has read as many indices there.
            let offset = unsafe { std::slice::from_raw_parts(offset, shape.len()) };
            let selected = Selected::chunk(offset, &chunk, shape);
            state::with(|state| state.write(&row, known, &selected))
        }
    }
}

/// Records an access to what a dataspace selects. As few questions as possible: after a large read, each of them has to
/// get what it needs from memory anew.
#[inline]
fn note_selected(library: &Library, row: &Row, known: Numbers, space: Id, shape: &[u64]) -> Option<()> {
    if space < FIRST_ID {
        // Others than "everything" stand for a selection that is elsewhere, such as in the properties.
        let selected = (space == ALL).then(|| Selected::all(shape))?;
        return state::with(|state| state.write(row, known, &selected));
    }
    let space = library.space(space);
    let count = space.count();
    if count == 1
        && let Some(index) = element(space, shape)
        && state::with(|state| state.write_element(row, known, &index[..shape.len()]))?
    {
        return Some(());
    }
    let selected = Selected::of(space, shape, count)?;
    state::with(|state| state.write(row, known, &selected))
}

/// The number of an array that this identifier is new for, and the bytes of an element; and whether it was opened again.
/// libhdf5 tells what it is, without the state being held.
#[cold]
fn new_array(site: &Site, library: &Library, key: Key, shape: &[u64]) -> Option<((u32, u64), u8)> {
    let place = library.array(key.1).place();
    let reopened = |named| place.map_or(Some(0), |place| closing::accessed(library, key, place, named));
    if let Some(place) = place
        && let Some((known, named)) = state::with(|state| state.keep_place(key, (key.0, place), shape))?
    {
        return Some((known, reopened(named)?));
    }
    let is_writable = is_writable(library, key.1);
    let array = described(library, site.label, key.1, shape)?;
    let flags = reopened(array.named)?;
    // In a file that is written to, another array may take the place of one that was removed.
    let known = state::with(|state| state.keep_array(key, array, place.filter(|_| !is_writable)))?;
    Some((known, flags))
}

/// When a call begins that may close an array; `None` if that is of no interest.
#[inline]
pub(crate) fn closing(site: &Site, id: Id) -> Option<Key> {
    let is_array = switch::is_on() && closing::is_array(id) && stack::is_enough();
    let key = (site.libhdf5.number(), id);
    (is_array && closing::knows(key)).then_some(key)
}

/// Such a call has returned this.
pub(crate) fn closed(site: &Site, key: Key, result: usize) {
    if has_failed(result) {
        return;
    }
    // A panic would be our fault, and only the record is lost.
    let _ = catch_unwind(AssertUnwindSafe(|| closing::released(site.libhdf5.library()?, key)));
}

/// The number of the words for a type in memory; 0 for encoded chunks.
#[inline]
fn text_of(library: &Library, key: Key) -> Option<u32> {
    if key.1 == 0 {
        return Some(0);
    }
    if let Some(text) = recent::text(library, key) {
        return Some(text);
    }
    let epoch = recent::epoch();
    let kind = state::with(|state| state.kind(key))?;
    let kind = kind.or_else(|| new_kind(library, key))?;
    recent::keep_kind(epoch, key, kind);
    Some(kind.text)
}

/// A type in memory that this identifier is new for.
#[cold]
fn new_kind(library: &Library, key: Key) -> Option<Kind> {
    let kind = library.datatype(key.1);
    let simple = simple(kind);
    if let Some(known) = simple.and_then(|simple| state::with(|state| state.simple_kind(key.0, simple))?) {
        return Some(known);
    }
    let words = memory_type(kind);
    let same_as = simple.and_then(|_| kind.own_number_id()).unwrap_or(0);
    state::with(|state| state.keep_kind(key, simple, words, same_as))
}

/// The shape of an array: as the given dataspace has it, or as libhdf5 says.
fn shape_of<'r>(library: &Library, asked: &Asked, room: &'r mut [u64; MOST_NDIM]) -> Option<&'r [u64]> {
    let own;
    let space = match asked.part {
        Part::Space(space) if space >= FIRST_ID => library.space(space),
        _ => {
            own = library.array(asked.array).space()?;
            *own
        }
    };
    space.shape(room).map(|shape| &*shape)
}

/// The shapes of arrays may have changed.
pub(crate) fn shapes_changed() {
    recent::forget();
}

/// An array has forgotten what libhdf5 had cached of it, and its shape may have changed.
pub(crate) fn refreshed(site: &Site, id: Id) {
    if switch::is_on() && state::exists() && stack::is_enough() {
        state::with(|state| state.refreshed((site.libhdf5.number(), id)));
    }
    shapes_changed();
}

/// libhdf5 was closed: it begins anew to number what it has open.
pub(crate) fn identifiers_changed() {
    recent::forget();
    if switch::is_on() && state::exists() {
        state::with(State::forget_identifiers);
    }
}

fn collective(library: &Library, properties: Id) -> u8 {
    let is_collective = properties >= FIRST_ID && library.properties(properties).is_collective();
    if is_collective { COLLECTIVE } else { 0 }
}

/// Tells that this thread begins (1) or ends (-1) an access that another recorder counts. Returns whether this process is
/// recorded here.
#[unsafe(no_mangle)]
pub extern "C" fn hyperslab_recording_inside(change: c_int) -> c_int {
    switch::change_inside(change);
    c_int::from(switch::is_on())
}
