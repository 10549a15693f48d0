//! What is done with calls of the functions that we replace: libhdf5's, and some of libc's.

#![allow(unsafe_code, non_snake_case)]

use std::ffi::{CStr, c_char, c_void};
use std::mem::transmute;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::slice::from_ref;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::time::Instant;

use hyperslab_libhdf5::{Id, Real, has_failed, libraries};

use crate::callers::{Hook, Site, site};
use crate::counts::{self, Count};
use crate::fallback::pass_on;
use crate::gates::is_gated;
use crate::instead::instead;
use crate::instructions::{Arguments, Called, Next};
use crate::reason::Reason;
use crate::recording::{self, Asked, Operation, Part};
use crate::request::Call;
use crate::serving::{Outcome, is_small_changed, opened, serve};
use crate::settings::is_serving;
use crate::several::{Lists, Rest, are_different};
use crate::write_reason::Left;
use crate::writers::writers_changed;
use crate::{binding, far, known, settings, stack, write_queue, writing};

/// What libhdf5's functions return if they fail.
const FAILURE: usize = usize::MAX;
/// `H5F_ACC_RDWR`.
const WRITABLE: usize = 1;

/// Defines what is done with calls that pass through and are recorded. The function at the end tells from the arguments
/// what the call asks for.
macro_rules! recorded {
    ($($name:ident $hook:ident $asked:ident;)*) => {
        $(
            pub(crate) unsafe extern "C-unwind" fn $name(called: &Called, _: usize) -> Next {
                let Some(site) = site(Hook::$hook, called) else { return Next::done(FAILURE) };
                recorded(site, called, $asked)
            }
        )*
    };
}

recorded! {
    read_chunk ReadChunk read_of_chunk;
    read_chunk1 ReadChunk1 read_of_chunk;
    read_chunk2 ReadChunk2 read_of_chunk;
    write_chunk WriteChunk write_of_chunk;
}

/// `H5Dwrite`.
pub(crate) unsafe extern "C-unwind" fn write(called: &Called, _: usize) -> Next {
    let Some(site) = site(Hook::Write, called) else { return Next::done(FAILURE) };
    if !settings::is_encoding() || !stack::is_enough() {
        if writing::is_settled(site, id(called.first)) {
            return recorded(site, called, written);
        }
        return Next::done(FAILURE);
    }
    encode_or_pass(site, called)
}

#[inline(never)]
fn encode_or_pass(site: &Site, called: &Called) -> Next {
    let begun = recording::begin(site);
    // A panic would be our fault, and libhdf5 can still do the write.
    let outcome = catch_unwind(AssertUnwindSafe(|| writing::write(site, &call(called))));
    let outcome = outcome.unwrap_or(Err((Left::Failed, 0)));
    let Err((why, nbytes)) = outcome else {
        recording::note(begun, site, &written(called.arguments()), 0);
        return Next::done(0);
    };
    counts::add_left(why, nbytes);
    if why == Left::Stuck || !writing::is_settled(site, id(called.first)) {
        return Next::done(FAILURE); // libhdf5 has the errors
    }
    recorded(site, called, written)
}

fn recorded(site: &Site, called: &Called, asked: impl FnOnce(Arguments) -> Asked) -> Next {
    let Some(begun) = recording::begin(site) else { return Next::jump(site.real) };
    let result = pass(site, called.arguments());
    recording::note(Some(begun), site, &asked(called.arguments()), result);
    Next::done(result)
}

fn shapes_changed() {
    recording::shapes_changed();
}

/// libhdf5 begins anew to number the files and objects that it opens.
fn library_closed() {
    known::library_closed();
    hyperslab_libhdf5::forget_drivers();
    recording::identifiers_changed();
}

/// Defines what is done with calls after which we have to ask again.
macro_rules! changing {
    ($($name:ident $hook:ident $changed:path;)*) => {
        $(
            pub(crate) unsafe extern "C-unwind" fn $name(called: &Called, _: usize) -> Next {
                let Some(site) = site(Hook::$hook, called) else { return Next::done(FAILURE) };
                let result = pass(site, called.arguments());
                $changed();
                Next::done(result)
            }
        )*
    };
}

changing! {
    set_extent SetExtent shapes_changed;
    extend Extend shapes_changed;
    close_library CloseLibrary library_closed;
    close Close known::closed;
}

/// `H5Drefresh`: libhdf5 closes the array and opens it again.
pub(crate) unsafe extern "C-unwind" fn refresh(called: &Called, _: usize) -> Next {
    let Some(site) = site(Hook::Refresh, called) else { return Next::done(FAILURE) };
    let result = pass(site, called.arguments());
    recording::refreshed(site, id(called.first));
    Next::done(result)
}

/// Defines what is done with calls that may close an array, which libhdf5 then forgets the chunks of.
macro_rules! closing {
    ($($name:ident $hook:ident;)*) => {
        $(
            pub(crate) unsafe extern "C-unwind" fn $name(called: &Called, _: usize) -> Next {
                let Some(site) = site(Hook::$hook, called) else { return Next::done(FAILURE) };
                let Some(closing) = recording::closing(site, id(called.first)) else {
                    return Next::jump(site.real);
                };
                let result = pass(site, called.arguments());
                recording::closed(site, closing, result);
                Next::done(result)
            }
        )*
    };
}

closing! {
    close_array CloseArray;
    close_object CloseObject;
}

/// `H5Idec_ref`, which returns how often the program still holds the identifier: not counting writes that wait.
pub(crate) unsafe extern "C-unwind" fn release(called: &Called, _: usize) -> Next {
    let Some(site) = site(Hook::Release, called) else { return Next::done(FAILURE) };
    let held = write_queue::held_count(site.libhdf5, id(called.first));
    let closing = recording::closing(site, id(called.first));
    if held == 0 && closing.is_none() {
        return Next::jump(site.real);
    }
    let result = pass(site, called.arguments());
    let result = if has_failed(result) { result } else { (result & 0x7fff_ffff).saturating_sub(held) };
    if let Some(closing) = closing {
        recording::closed(site, closing, result);
    }
    Next::done(result)
}

/// An identifier among the arguments.
fn id(argument: usize) -> Id {
    argument.cast_signed() as Id
}

/// `H5Dwrite`; `H5Dread` has the same arguments.
fn written((array, memory_type, _, space, properties, _): Arguments) -> Asked {
    let part = Part::Space(id(space));
    let (memory_type, properties) = (id(memory_type), id(properties));
    Asked { operation: Operation::Write, array: id(array), memory_type, properties, part }
}

/// `H5Dread_chunk`, in all its versions.
fn read_of_chunk((array, properties, offset, ..): Arguments) -> Asked {
    let part = Part::Chunk(offset as *const u64);
    Asked { operation: Operation::Read, array: id(array), memory_type: 0, properties: id(properties), part }
}

fn write_of_chunk((array, properties, _, offset, ..): Arguments) -> Asked {
    let operation = Operation::Write;
    Asked { operation, ..read_of_chunk((array, properties, offset, 0, 0, 0)) }
}

/// Several arrays at once.
pub(crate) unsafe extern "C-unwind" fn read_multi(called: &Called, _: usize) -> Next {
    let Some(site) = site(Hook::ReadMulti, called) else { return Next::done(FAILURE) };
    if is_serving() && stack::is_enough() {
        return several(site, Operation::Read, called, serve_several);
    }
    several(site, Operation::Read, called, pass_seven)
}

/// Several arrays at once.
pub(crate) unsafe extern "C-unwind" fn write_multi(called: &Called, _: usize) -> Next {
    let Some(site) = site(Hook::WriteMulti, called) else { return Next::done(FAILURE) };
    if settings::is_encoding() && stack::is_enough() {
        return several(site, Operation::Write, called, write_several);
    }
    several(site, Operation::Write, called, pass_seven)
}

fn several(
    site: &Site,
    operation: Operation,
    called: &Called,
    act: fn(&Site, Arguments, usize) -> usize,
) -> Next {
    let begun = recording::begin(site);
    let (count, arrays, kinds, _, spaces, properties) = called.arguments();
    let result = act(site, called.arguments(), called.seventh());
    let lists = (count, arrays as *const Id, kinds as *const Id, spaces as *const Id);
    // SAFETY: the program says that its lists have so many entries.
    unsafe { recording::note_several(begun, site, operation, lists, id(properties), result) };
    Next::done(result)
}

/// Serves the arrays that are ours, and passes the others on in one call.
#[inline(never)]
fn serve_several(site: &Site, arguments: Arguments, memory: usize) -> usize {
    // SAFETY: the program says that its lists have so many entries.
    let Some(calls) = (unsafe { calls_of(arguments, memory) }) else {
        return pass_seven(site, arguments, memory);
    };
    let mut is_changed = false;
    let mut left = Vec::new();
    for call in &calls {
        if let Some(reason) = served(site, call) {
            is_changed |= reason == Reason::Changed;
            left.push(*call);
        }
    }
    if left.is_empty() && !calls.is_empty() {
        return 0;
    }
    let pass = |calls: &[Call]| pass_some(site, arguments, memory, calls);
    let library = site.libhdf5.library().filter(|_| far::has_any());
    let guarded = library.and_then(|library| far::leading::guarded(library, &left, || pass(&left)));
    guarded.unwrap_or_else(|| pass_on(site, &left, is_changed, pass))
}

/// Writes the arrays that are ours, and passes the others on in one call. Writes that waited are stored by now.
#[inline(never)]
fn write_several(site: &Site, arguments: Arguments, memory: usize) -> usize {
    // SAFETY: the program says that its lists have so many entries.
    let calls = unsafe { calls_of(arguments, memory) };
    let Some(calls) = calls.filter(|calls| are_different(site.libhdf5.library(), calls)) else {
        return pass_seven(site, arguments, memory);
    };
    let mut left = Vec::new();
    for call in &calls {
        // A panic would be our fault, and libhdf5 can still do the write.
        let outcome = catch_unwind(AssertUnwindSafe(|| writing::write(site, call)));
        let Err((why, nbytes)) = outcome.unwrap_or(Err((Left::Failed, 0))) else { continue };
        counts::add_left(why, nbytes);
        if why == Left::Stuck {
            return FAILURE; // libhdf5 has the errors
        }
        left.push(*call);
    }
    if left.is_empty() && !calls.is_empty() { 0 } else { pass_some(site, arguments, memory, &left) }
}

/// What a call says of several arrays, one by one.
unsafe fn calls_of(arguments: Arguments, memory: usize) -> Option<Vec<Call>> {
    let (count, arrays, types, spaces, selections, properties) = arguments;
    let lists = Lists {
        count,
        arrays: arrays as *const Id,
        memory_types: types as *const Id,
        memory_spaces: spaces as *const Id,
        file_spaces: selections as *const Id,
        memories: memory as *const *mut u8,
    };
    // SAFETY: as the caller promises.
    unsafe { lists.calls(id(properties)) }
}

/// Passes a call on for some of its arrays.
fn pass_some(site: &Site, arguments: Arguments, memory: usize, calls: &[Call]) -> usize {
    if calls.len() == arguments.0 {
        return pass_seven(site, arguments, memory);
    }
    let rest = Rest::of(calls);
    let lists = rest.lists();
    let (arrays, types) = (lists.arrays as usize, lists.memory_types as usize);
    let (spaces, selections) = (lists.memory_spaces as usize, lists.file_spaces as usize);
    let arguments = (lists.count, arrays, types, spaces, selections, arguments.5);
    pass_seven(site, arguments, lists.memories as usize)
}

/// Calls what the program meant to call.
fn pass(site: &Site, arguments: Arguments) -> usize {
    let (first, second, third, fourth, fifth, sixth) = arguments;
    // SAFETY: these are the program's own arguments.
    unsafe { (site.real)(first, second, third, fourth, fifth, sixth) }
}

/// The same with seven arguments.
fn pass_seven(site: &Site, arguments: Arguments, seventh: usize) -> usize {
    type Real7 = unsafe extern "C-unwind" fn(usize, usize, usize, usize, usize, usize, usize) -> usize;
    let (first, second, third, fourth, fifth, sixth) = arguments;
    // SAFETY: as above; the site is that of a function with seven arguments.
    unsafe { transmute::<Real, Real7>(site.real)(first, second, third, fourth, fifth, sixth, seventh) }
}

/// `H5Dread`. What takes much of the stack is in functions of its own: threads with little of it only come by.
pub(crate) unsafe extern "C-unwind" fn read(called: &Called, _: usize) -> Next {
    let Some(site) = site(Hook::Read, called) else { return Next::done(FAILURE) };
    if far::has_any()
        && let Some(library) = site.libhdf5.library()
        && let Some(result) =
            far::leading::guarded(library, &[call(called)], || pass(site, called.arguments()))
    {
        return Next::done(result);
    }
    if !is_serving() {
        return recorded(site, called, asked_to_read);
    }
    if !stack::is_enough() {
        counts::add_passed(Reason::Stack, 0);
        return recorded(site, called, asked_to_read);
    }
    serve_or_pass(site, called)
}

fn asked_to_read(arguments: Arguments) -> Asked {
    Asked { operation: Operation::Read, ..written(arguments) }
}

/// The arguments of `H5Dread`, or of `H5Dwrite`, which only reads the program's memory.
fn call(called: &Called) -> Call {
    let (array, memory_type, memory_space, file_space, properties, out) = called.arguments();
    Call {
        array: id(array),
        memory_type: id(memory_type),
        memory_space: id(memory_space),
        file_space: id(file_space),
        properties: id(properties),
        out: out as *mut u8,
    }
}

#[inline(never)]
fn serve_or_pass(site: &Site, called: &Called) -> Next {
    let call = call(called);
    let begun = recording::begin(site);
    let result = match served(site, &call) {
        None => 0,
        Some(reason @ (Reason::Small | Reason::Invalid)) => {
            let is_changed = reason == Reason::Small && is_small_changed(site, &call);
            pass_on(site, from_ref(&call), is_changed, |_| pass(site, called.arguments()))
        }
        Some(reason) => {
            let begun = Instant::now();
            let result =
                pass_on(site, from_ref(&call), reason == Reason::Changed, |_| pass(site, called.arguments()));
            counts::add(Count::PassedNanoseconds, counts::nanoseconds(begun.elapsed()));
            counts::write_sometimes();
            result
        }
    };
    recording::note(begun, site, &asked_to_read(called.arguments()), result);
    Next::done(result)
}

/// Serves a read and counts it: `None` if it was served, or why libhdf5 has to do it.
fn served(site: &Site, call: &Call) -> Option<Reason> {
    // A panic would be our fault, and libhdf5 can still do the read.
    let outcome = catch_unwind(AssertUnwindSafe(|| serve(site, call)));
    match outcome.unwrap_or(Outcome::Passed { reason: Reason::Failed, nbytes: 0 }) {
        Outcome::Served => None,
        Outcome::Passed { reason, nbytes } => {
            counts::add_passed(reason, nbytes);
            Some(reason)
        }
    }
}

/// Opens a file for writing. Other threads may examine the same file meanwhile, and not see yet that it is open.
fn opening_for_writing(open: impl FnOnce() -> usize) -> usize {
    writers_changed();
    let result = open();
    writers_changed();
    result
}

/// A file that is opened for writing is never ours, nor is it if another libhdf5 opens it.
pub(crate) unsafe extern "C-unwind" fn open(called: &Called, _: usize) -> Next {
    let Some(site) = site(Hook::Open, called) else { return Next::done(FAILURE) };
    // SAFETY: these are the program's own arguments.
    let of_url = if stack::is_enough() {
        unsafe { far::opening::open_hdf5(site, called.arguments(), |arguments| pass(site, arguments)) }
    } else {
        None
    };
    if let Some(result) = of_url {
        if id(result) > 0 {
            opened(site.libhdf5, id(result));
        }
        return Next::done(result);
    }
    if called.second & WRITABLE != 0 {
        return Next::done(opening_for_writing(|| pass(site, called.arguments())));
    }
    if !stack::is_enough() || !(is_serving() || settings::settings().instead.is_some()) {
        return Next::jump(site.real);
    }
    let (name, second, third, fourth, fifth, sixth) = called.arguments();
    // SAFETY: the program says that it is a name, which ends with a zero.
    let copy = unsafe { instead(name as *const c_char) };
    let name = copy.map_or(name, |copy| copy.as_ptr() as usize);
    let result = pass(site, (name, second, third, fourth, fifth, sixth));
    if id(result) > 0 && is_serving() {
        opened(site.libhdf5, id(result));
    }
    Next::done(result)
}

/// The same for a new file.
pub(crate) unsafe extern "C-unwind" fn create(called: &Called, _: usize) -> Next {
    let Some(site) = site(Hook::Create, called) else { return Next::done(FAILURE) };
    Next::done(opening_for_writing(|| pass(site, called.arguments())))
}

/// `dlsym`: a program that looks up functions of a libhdf5 or a libnetcdf gets what stands for them. And whoever loads a module
/// looks up something of it before anything there is called: then the module's calls are bound.
pub(crate) unsafe extern "C-unwind" fn look_up(called: &Called, _: usize) -> Next {
    let Some(real) = libraries::look_up() else { return Next::done(0) };
    // SAFETY: a function may be called by any pointer to it.
    let next = unsafe { Next::jump(transmute::<libraries::LookUp, Real>(real)) };
    let (handle, name) = (called.first as *mut c_void, called.second as *const c_char);
    // What these two mean depends on who asks.
    if handle == libc::RTLD_DEFAULT || handle == libc::RTLD_NEXT || name.is_null() {
        return next;
    }
    binding::catch_up();
    // SAFETY: the program says that it is a name, which ends with a zero.
    let name = unsafe { CStr::from_ptr(name) };
    if !is_gated(name) {
        return next;
    }
    // SAFETY: these are the program's own arguments.
    let found = unsafe { real(handle, name.as_ptr()) };
    Next::done(binding::stand_in(name, found as usize).unwrap_or(found as usize))
}

/// Defines what is done with calls by which the process becomes another user, who is named by one of the arguments.
macro_rules! becoming {
    ($($name:ident $function:literal $user:ident;)*) => {
        $(
            pub(crate) unsafe extern "C-unwind" fn $name(called: &Called, _: usize) -> Next {
                static FOUND: AtomicPtr<c_void> = AtomicPtr::new(ptr::null_mut());
                becoming(&FOUND, $function, called.$user)
            }
        )*
    };
}

becoming! {
    set_user c"setuid" first;
    set_effective_user c"seteuid" first;
    set_both_users c"setreuid" second;
    set_all_users c"setresuid" second;
}

#[allow(clippy::cast_possible_truncation)] // users have 32 bits
fn becoming(found: &AtomicPtr<c_void>, name: &CStr, user: usize) -> Next {
    let mut function = found.load(Ordering::Relaxed);
    if function.is_null() {
        let Some(known) = libraries::next_symbol(name, None) else { return Next::done(FAILURE) };
        found.store(known, Ordering::Relaxed);
        function = known;
    }
    become_user(user as u32);
    // SAFETY: it is libc's function, which takes what the program has passed.
    Next::jump(unsafe { transmute::<*mut c_void, Real>(function) })
}

/// The process is about to become this user. `errno` is the program's.
fn become_user(user: u32) {
    // SAFETY: the calls have no effect but on `errno`, which is restored.
    unsafe {
        if user == 0 || user == u32::MAX || libc::geteuid() != 0 {
            return;
        }
        let error = *libc::__errno_location();
        let settings = settings::settings();
        settings.folder.iter().chain(&settings.trace_folder).for_each(|folder| folder.admit(user));
        *libc::__errno_location() = error;
    }
}
