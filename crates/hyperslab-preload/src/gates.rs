//! Gates: what each stub stands for. That is one function of one library, for all modules that call it, with the lock that
//! its calls need.

#![allow(unsafe_code)]

use std::ffi::CStr;
use std::ptr;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use crate::instructions::Act;
use crate::lock::Lock;
use crate::settling::Settling;
use crate::stand_ins::{STUB_COUNT, stub, stub_number};

/// What a stub stands for.
#[derive(Clone, Copy)]
pub(crate) struct Gate {
    /// Where the function is.
    pub real: usize,
    /// What is done with calls of it; `None` if they are only passed on.
    pub act: Option<Act>,
    /// The number of its library, as `Called::caller` has it.
    pub library: usize,
    /// What its calls have to wait for.
    pub lock: Option<&'static Lock>,
    /// When writes that wait are stored first.
    pub settling: Settling,
}

/// Whether some functions have no gate, because there are too many.
static ARE_FULL: AtomicBool = AtomicBool::new(false);

/// Whether all functions that needed gates have them.
pub(crate) fn are_complete() -> bool {
    !ARE_FULL.load(Ordering::Relaxed)
}

/// What each stub stands for, by its number.
static GATES: [AtomicPtr<Gate>; STUB_COUNT] = [const { AtomicPtr::new(ptr::null_mut()) }; STUB_COUNT];

/// Whether a function of this name may need a gate. All functions of libhdf5, of its companions and of libnetcdf are so called;
/// names that end with `_g` are those of variables.
pub(crate) fn is_gated(name: &CStr) -> bool {
    let name = name.to_bytes();
    matches!(name.get(..2), Some(b"H5" | b"nc" | b"NC")) && !name.ends_with(b"_g")
}

/// The address of the stub for a function; `None` if there are too many.
pub(crate) fn stand_in(gate: Gate) -> Option<usize> {
    let first = gate.real / 16 + gate.real / 65_536;
    let mut new: *mut Gate = ptr::null_mut();
    for step in 0..STUB_COUNT {
        let number = (first + step) % STUB_COUNT;
        let mut place = GATES[number].load(Ordering::Acquire);
        if place.is_null() {
            if new.is_null() {
                new = Box::into_raw(Box::new(gate));
            }
            match GATES[number].compare_exchange(place, new, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => return stub(number),
                Err(other) => place = other,
            }
        }
        // SAFETY: gates are never freed.
        if unsafe { (*place).stands_for(&gate) } {
            if !new.is_null() {
                // SAFETY: nobody else has it.
                drop(unsafe { Box::from_raw(new) });
            }
            return stub(number);
        }
    }
    ARE_FULL.store(true, Ordering::Relaxed);
    None
}

/// The gate of a stub.
pub(crate) fn gate_at(address: usize) -> Option<&'static Gate> {
    // SAFETY: gates are never freed.
    stub_number(address).and_then(|number| unsafe { GATES[number].load(Ordering::Acquire).as_ref() })
}

impl Gate {
    fn stands_for(&self, other: &Self) -> bool {
        let address = |act: Option<Act>| act.map_or(0, |act| act as usize);
        self.real == other.real && address(self.act) == address(other.act)
    }
}
