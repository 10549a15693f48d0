//! Lets the calls of modules arrive at stubs for the functions that they mean, if anything is done with them. Who calls,
//! and from where, does not matter any more: a function may end by jumping to libhdf5's, or be called by a pointer.
//!
//! That is done for the modules that a program begins with before it begins. For others, it is done when something of them is
//! looked up, which programs do before they call a module that they have loaded; or else by the first call that arrives at an
//! entry.

#![allow(unsafe_code)]

use std::cell::UnsafeCell;
use std::ffi::CStr;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use hyperslab_libhdf5::Module;
use hyperslab_libhdf5::libraries::{libhdf5_at, next_symbol};
use hyperslab_libhdf5::objects::{self, Seen, is_code, is_own};

use crate::calling::{Calling, between};
use crate::gates::{self, Gate};
use crate::instructions::LIBRARY_SHIFT;
use crate::owners::lock_at;
use crate::patching::replace;
use crate::settings::settings;
use crate::settling::Settling;
use crate::stack;
use crate::stand_ins::{HOOK_COUNT, act, entry_name, entry_number};

/// How often, and how long each time, a thread waits until another one has bound the modules that are new to both.
const WAITS: usize = 1000;
const WAIT: Duration = Duration::from_micros(100);

/// The number of the thread that changes slots. Only one does at a time.
static BUSY: AtomicU32 = AtomicU32::new(0);
/// Whether the program has begun.
static HAS_STARTED: AtomicBool = AtomicBool::new(false);

/// How many modules were ever loaded when something was last looked up.
static LOAD_COUNT: AtomicU64 = AtomicU64::new(0);

/// The modules that were bound when something was looked up.
struct Bound(UnsafeCell<Seen>);

// SAFETY: only used by the thread that has set `BUSY`.
unsafe impl Sync for Bound {}

static BOUND: Bound = Bound(UnsafeCell::new(Seen::NONE));

/// While it lives, no other thread changes slots.
struct Alone;

impl Alone {
    /// `None` if another thread does, or this one.
    fn new() -> Option<Self> {
        BUSY.compare_exchange(0, own_number(), Ordering::AcqRel, Ordering::Acquire).is_ok().then(|| Self)
    }
}

impl Drop for Alone {
    fn drop(&mut self) {
        BUSY.store(0, Ordering::Release);
    }
}

fn own_number() -> u32 {
    rustix::thread::gettid().as_raw_pid().cast_unsigned()
}

/// A forked child may have it from a thread that it does not have.
pub(crate) fn forget() {
    BUSY.store(0, Ordering::Release);
}

/// Before the program begins: its modules and those that it starts with.
pub(crate) fn start() {
    if [c"H5Dread", c"nc_open"].iter().any(|name| next_symbol(name, None).is_some()) {
        bind_all(|_| ());
    }
    HAS_STARTED.store(true, Ordering::Release);
}

/// Binds modules that are loaded by now, also where they call libraries directly.
pub(crate) fn bind_loaded() {
    bind_all(|_| ());
}

/// Binds modules that were loaded since this was last called. Who looks something up in one may call it then.
pub(crate) fn catch_up() {
    let is_wanted = HAS_STARTED.load(Ordering::Acquire) && settings().locks;
    let load_count = if is_wanted { objects::load_count() } else { 0 };
    if load_count != LOAD_COUNT.load(Ordering::Acquire) && is_wanted && stack::is_enough() {
        bind_new();
        LOAD_COUNT.store(load_count, Ordering::Release);
    }
}

fn bind_new() {
    let own = own_number();
    for _ in 0..WAITS {
        let Some(_alone) = Alone::new() else {
            if BUSY.load(Ordering::Acquire) == own {
                return; // binding itself looks something up
            }
            std::thread::sleep(WAIT);
            continue;
        };
        // SAFETY: no other thread uses it now.
        let bound = unsafe { &mut *BOUND.0.get() };
        let mut new = Vec::new();
        let seen = objects::each_new(*bound, |object| new.extend(Calling::of(object)));
        new.iter().for_each(bind);
        *bound = seen;
        return;
    }
}

/// The function that a call means which arrived at an entry, and whether that is sure. Later calls of the same module arrive
/// elsewhere.
pub(crate) fn bind_caller(number: usize, caller: usize) -> Option<(usize, bool)> {
    // Whoever has been here before has stubs by now, so the caller is among the others. That is one module, or several that
    // mean the same function; if not, the address that the call returns to has to tell.
    let (mut open, mut by_address) = (Vec::new(), None);
    bind_all(|calling| {
        let has_entry = calling.slots.iter().any(|slot| slot.number == Some(number) && slot.is_open);
        let is_caller = (calling.extent.0..calling.extent.1).contains(&caller);
        if (has_entry || is_caller)
            && let Some(found) = calling.meant(entry_name(number), None)
        {
            open.extend(has_entry.then_some(found));
            by_address = if is_caller { Some(found) } else { by_address };
        }
    });
    let by_address = by_address.map(|found| (found, !open.is_empty()));
    let Some((first, others)) = open.split_first() else { return by_address };
    if others.iter().all(|other| other == first) { Some((*first, true)) } else { by_address }
}

fn bind_all(mut tell: impl FnMut(&Calling)) {
    let mut all = Vec::new();
    objects::each(|object| all.extend(Calling::of(object)));
    let alone = Alone::new();
    for calling in &all {
        if alone.is_some() {
            bind(calling);
        }
        tell(calling);
    }
}

/// What a program gets that has looked up a function: what stands for it, if anything does.
pub(crate) fn stand_in(name: &CStr, address: usize) -> Option<usize> {
    if address == 0 || is_own(address) || !is_code(address) {
        return None;
    }
    gates::stand_in(gate(name, entry_number(name), address)?)
}

/// What stands for a function with this name at this address; `None` if nothing has to.
fn gate(name: &CStr, number: Option<usize>, real: usize) -> Option<Gate> {
    let lock = lock_at(name, real);
    let hook = number.filter(|&number| number < HOOK_COUNT).zip(libhdf5_at(real));
    let (act, library) = match hook {
        Some((number, library)) => (act(number), library.order << LIBRARY_SHIFT),
        None => (number.filter(|&number| number >= HOOK_COUNT).and_then(act), 0), // netCDF-C's
    };
    (act.is_some() || lock.is_some()).then(|| Gate { real, act, library, lock, settling: Settling::of(name) })
}

/// Lets a module's calls arrive at stubs for the functions that they mean, where anything is done with these.
fn bind(calling: &Calling) {
    let Some(_module) = Module::loaded(&calling.path) else { return }; // it is not loaded any more
    for slot in &calling.slots {
        if slot.number.is_some_and(|number| number < HOOK_COUNT && between(number).is_some()) {
            continue;
        }
        let meant = slot.found.or_else(|| calling.meant(&slot.name, slot.version.as_deref()));
        let Some(real) = meant.filter(|&real| !slot.may_be_variable || is_code(real)) else { continue };
        let stub = gate(&slot.name, slot.number, real).and_then(gates::stand_in);
        // Nothing is done with calls that were only to be caught.
        let Some(wanted) = stub.or(Some(real).filter(|_| slot.is_open)) else { continue };
        replace(slot.address, wanted, slot.is_sealed);
    }
}
