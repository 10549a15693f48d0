//! Makes the modules that are loaded call our functions in place of others.
//!
//! For processes that run already, where it is too late to preload: functions of libhdf5. Modules that are loaded later
//! find ours by themselves, as this library is then in the scope of the whole process. And for programs whose reads of
//! files are recorded: functions of libc, which nobody pays for who has not asked for that.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::callers::is_own;

/// Entries of the tables that the dynamic linker reads (System V ABI, chapter 5).
#[repr(C)]
struct Dynamic {
    tag: i64,
    value: usize,
}

#[repr(C)]
struct Symbol {
    name: u32,
    info: u8,
    other: u8,
    section: u16,
    value: u64,
    size: u64,
}

#[repr(C)]
struct Relocation {
    offset: usize,
    info: u64,
    addend: i64,
}

const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const RELOCATIONS: i64 = 7;
const RELOCATIONS_NBYTES: i64 = 8;
const CALLS_NBYTES: i64 = 2;
const CALLS: i64 = 23;
/// Kinds of relocations: the address of a symbol in a table of addresses.
#[cfg(target_arch = "x86_64")]
const ADDRESSES: [u64; 2] = [6, 7];
#[cfg(target_arch = "aarch64")]
const ADDRESSES: [u64; 2] = [1025, 1026];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const ADDRESSES: [u64; 2] = [u64::MAX; 2];

static PATCHED: AtomicUsize = AtomicUsize::new(0);

/// What is to be replaced by what.
pub(crate) struct Replacing {
    /// Names, and what is called in their place.
    pub functions: &'static [(&'static CStr, unsafe extern "C" fn())],
    /// Modules with this in their paths stay as they are.
    pub spared: &'static [&'static str],
}

/// Replaces addresses in all loaded modules. Returns how many.
pub(crate) fn patch(replacing: &Replacing) -> usize {
    unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the linker passes a valid object, and what we gave it.
        unsafe {
            let (info, replacing) = (&*object, &*data.cast::<Replacing>());
            let is_spared = !info.dlpi_name.is_null() && {
                let path = CStr::from_ptr(info.dlpi_name).to_string_lossy();
                replacing.spared.iter().any(|part| path.contains(part))
            };
            if let Some(object) = Object::of(info).filter(|_| !is_spared) {
                object.patch(replacing.functions);
            }
        }
        0
    }
    let before = PATCHED.load(Ordering::Relaxed);
    // SAFETY: the function gets what it expects.
    unsafe { libc::dl_iterate_phdr(Some(visit), ptr::from_ref(replacing).cast_mut().cast()) };
    PATCHED.load(Ordering::Relaxed) - before
}

/// How many modules were ever loaded.
pub(crate) fn load_count() -> u64 {
    unsafe extern "C" fn visit(object: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the linker passes a valid object, and what we gave it.
        unsafe { *data.cast::<u64>() = (*object).dlpi_adds };
        1 // the first module tells
    }
    let mut count = 0_u64;
    // SAFETY: the function gets what it expects.
    unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut count).cast()) };
    count
}

/// A loaded module.
struct Object {
    base: usize,
    strings: *const u8,
    symbols: *const Symbol,
    tables: [(*const Relocation, usize); 2],
    /// Memory that the linker made read-only after it had filled it: start and end.
    sealed: (usize, usize),
}

impl Object {
    /// `None` for modules without tables, and for ourselves.
    unsafe fn of(info: &libc::dl_phdr_info) -> Option<Self> {
        let base = usize::try_from(info.dlpi_addr).ok()?;
        // SAFETY: the linker's own description of the module.
        let segments = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let at = |kind: u32| segments.iter().find(|segment| segment.p_type == kind);
        let address = |value: u64| Some(base.wrapping_add(usize::try_from(value).ok()?));
        let mut entry = address(at(libc::PT_DYNAMIC)?.p_vaddr)? as *const Dynamic;
        if is_own(entry as usize) {
            return None;
        }
        // glibc has turned offsets into addresses, except in modules whose tables are read-only.
        let absolute = |value: usize| if value < base { base.wrapping_add(value) } else { value };
        let (mut found, mut sizes) = ([0_usize; 4], [0_usize; 2]);
        // SAFETY: the table ends with an entry of kind 0.
        while let Dynamic { tag: 1.., value } = unsafe { &*entry } {
            // SAFETY: as above.
            match unsafe { (*entry).tag } {
                STRINGS => found[0] = absolute(*value),
                SYMBOLS => found[1] = absolute(*value),
                RELOCATIONS => found[2] = absolute(*value),
                CALLS => found[3] = absolute(*value),
                RELOCATIONS_NBYTES => sizes[0] = *value,
                CALLS_NBYTES => sizes[1] = *value,
                _ => {}
            }
            // SAFETY: as above.
            entry = unsafe { entry.add(1) };
        }
        let sealed = at(libc::PT_GNU_RELRO).and_then(|segment| {
            let start = address(segment.p_vaddr)?;
            Some((start, start.wrapping_add(usize::try_from(segment.p_memsz).ok()?)))
        });
        let count = |nbytes: usize| nbytes / size_of::<Relocation>();
        (found[0] != 0 && found[1] != 0).then_some(Self {
            base,
            strings: found[0] as *const u8,
            symbols: found[1] as *const Symbol,
            tables: [
                (found[2] as *const Relocation, if found[2] == 0 { 0 } else { count(sizes[0]) }),
                (found[3] as *const Relocation, if found[3] == 0 { 0 } else { count(sizes[1]) }),
            ],
            sealed: sealed.unwrap_or_default(),
        })
    }

    fn patch(&self, functions: &[(&CStr, unsafe extern "C" fn())]) {
        for (table, count) in self.tables {
            for place in 0..count {
                // SAFETY: the table has so many entries, and they refer to symbols that have names.
                let (relocation, symbol) = unsafe {
                    let relocation = &*table.add(place);
                    (relocation, &*self.symbols.add((relocation.info >> 32) as usize))
                };
                if !ADDRESSES.contains(&(relocation.info & 0xffff_ffff)) {
                    continue;
                }
                // SAFETY: as above.
                let name = unsafe { CStr::from_ptr(self.strings.add(symbol.name as usize).cast()) };
                if let Some((_, hook)) = functions.iter().find(|(replaced, _)| *replaced == name) {
                    self.replace(self.base.wrapping_add(relocation.offset), *hook as usize);
                }
            }
        }
    }

    fn replace(&self, slot: usize, hook: usize) {
        let page = 4096_usize.max(usize::try_from(page_nbytes()).unwrap_or(4096));
        let start = slot / page * page;
        let is_sealed = (self.sealed.0..self.sealed.1).contains(&slot);
        let protect = |protection| {
            // SAFETY: only the page of the slot changes, and is as before at the end.
            !is_sealed || unsafe { libc::mprotect(start as *mut c_void, page, protection) } == 0
        };
        // SAFETY: the slot is one that the dynamic linker fills with the address of a function; threads that read it get
        // the old address or the new one.
        let entry = unsafe { &*(slot as *const AtomicUsize) };
        if entry.load(Ordering::Relaxed) != hook && protect(libc::PROT_READ | libc::PROT_WRITE) {
            entry.store(hook, Ordering::Release);
            protect(libc::PROT_READ);
            PATCHED.fetch_add(1, Ordering::Relaxed);
        }
    }
}

fn page_nbytes() -> i64 {
    // SAFETY: the call has no effect.
    unsafe { libc::sysconf(libc::_SC_PAGESIZE) }
}
