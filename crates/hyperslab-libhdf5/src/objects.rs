//! The modules that the process has loaded, as the dynamic linker describes them: whose functions they call, and where they
//! keep the addresses of these (System V ABI, chapter 5).

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;
use std::sync::OnceLock;

/// Entries of the tables that the dynamic linker reads.
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

/// A library whose symbols have versions, and one of the versions that are needed of it.
#[repr(C)]
struct Needed {
    revision: u16,
    count: u16,
    file: u32,
    first: u32,
    next: u32,
}

#[repr(C)]
struct NeededVersion {
    hash: u32,
    flags: u16,
    number: u16,
    name: u32,
    next: u32,
}

const STRINGS: i64 = 5;
const SYMBOLS: i64 = 6;
const RELOCATIONS: i64 = 7;
const RELOCATIONS_NBYTES: i64 = 8;
const CALLS_NBYTES: i64 = 2;
const CALLS: i64 = 23;
const VERSIONS: i64 = 0x6fff_fff0;
const NEEDED: i64 = 0x6fff_fffe;
const NEEDED_COUNT: i64 = 0x6fff_ffff;
/// Kinds of relocations: a pointer among data, an address in a table of addresses, and one that may wait for the first call.
#[cfg(target_arch = "x86_64")]
const KINDS: [u64; 3] = [1, 6, 7];
#[cfg(target_arch = "aarch64")]
const KINDS: [u64; 3] = [257, 1025, 1026];
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
const KINDS: [u64; 3] = [u64::MAX; 3];
/// The part of a symbol's version that is its number.
const VERSION_NUMBER: u16 = 0x7fff;
/// The first number that means a version.
const FIRST_VERSION: u16 = 2;

/// A loaded module.
pub struct Object {
    base: usize,
    /// Where its memory begins and ends.
    pub start: usize,
    /// Behind its last byte.
    pub end: usize,
    /// What the linker calls it: nothing for the program itself.
    path: *const c_char,
    strings: *const u8,
    symbols: *const Symbol,
    versions: *const u16,
    needed: (*const Needed, usize),
    tables: [(*const Relocation, usize); 2],
    /// Memory that the linker made read-only after it had filled it: start and end.
    sealed: (usize, usize),
    /// Where its code is.
    code: (usize, usize),
}

/// Where a module keeps the address of a function or a variable.
pub struct Slot<'o> {
    /// What it is called.
    pub name: &'o CStr,
    /// Where the address is kept.
    pub place: usize,
    /// Whether the linker may find the address only when the function is called.
    pub may_wait: bool,
    /// Whether it is a pointer among the module's data, and not in its table of addresses.
    pub is_data: bool,
    /// Whether the module itself has a function or a variable of this name.
    pub is_defined: bool,
    version: u16,
}

impl Slot<'_> {
    /// The address that is there now.
    pub fn value(&self) -> usize {
        // SAFETY: the linker keeps the address there while the module is loaded.
        unsafe { ptr::read_volatile(self.place as *const usize) }
    }
}

/// Shows all modules to a function, except this one. It must not call the dynamic linker, which waits for us meanwhile.
pub fn each(visit: impl FnMut(&Object)) {
    each_new(Seen::NONE, visit);
}

/// Which modules were shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// How many modules were ever loaded by then, and ever unloaded.
    loads: (u64, u64),
    /// How many there were.
    count: usize,
}

impl Seen {
    /// None were.
    pub const NONE: Self = Self { loads: (0, 0), count: 0 };
}

/// Shows the modules that were loaded since others were shown; all, if any was unloaded meanwhile. Returns which were shown
/// by now.
pub fn each_new(before: Seen, mut visit: impl FnMut(&Object)) -> Seen {
    let mut now = Seen::NONE;
    visit_all(&mut |info| {
        now.loads = (info.dlpi_adds, info.dlpi_subs);
        let is_shown = now.count < before.count && now.loads.1 == before.loads.1;
        now.count += 1; // new ones are at the end
        // SAFETY: the linker's own description of the module.
        if !is_shown
            && let Some(object) = unsafe { Object::of(info) }
            && !object.contains(own_address())
        {
            visit(&object);
        }
        now.loads != before.loads
    });
    if now.loads == before.loads { before } else { now }
}

/// Shows what the linker knows of each module, as long as the function returns true.
fn visit_all(mut visit: &mut dyn FnMut(&libc::dl_phdr_info) -> bool) {
    unsafe extern "C" fn show(info: *mut libc::dl_phdr_info, _: usize, data: *mut c_void) -> c_int {
        // SAFETY: the linker passes a valid description, and what we gave it.
        let goes_on = unsafe { (*data.cast::<&mut dyn FnMut(&libc::dl_phdr_info) -> bool>())(&*info) };
        c_int::from(!goes_on)
    }
    // SAFETY: the function gets what it expects.
    unsafe { libc::dl_iterate_phdr(Some(show), (&raw mut visit).cast()) };
}

fn own_address() -> usize {
    (&raw const OWN) as usize
}

static OWN: OnceLock<(usize, usize)> = OnceLock::new();

/// Finds out where this library is. Called when it is loaded.
pub fn start() {
    let mut found = (0, 0);
    visit_all(&mut |info| {
        // SAFETY: the linker's own description of the module.
        if let Some(object) = unsafe { Object::of(info) }.filter(|object| object.contains(own_address())) {
            found = (object.start, object.end);
        }
        found.1 == 0
    });
    let _ = OWN.set(found);
}

/// Whether an address is in this library.
pub fn is_own(address: usize) -> bool {
    OWN.get().is_some_and(|&(start, end)| (start..end).contains(&address))
}

/// Whether an address is where some module has its code.
pub fn is_code(address: usize) -> bool {
    let mut is_found = false;
    visit_all(&mut |info| {
        // SAFETY: the linker's own description of the module.
        if let Some(object) = unsafe { Object::of(info) }.filter(|object| object.contains(address)) {
            is_found = object.has_code_at(address);
            return false;
        }
        true
    });
    is_found
}

/// How many modules were ever loaded.
pub fn load_count() -> u64 {
    let mut count = 0_u64;
    visit_all(&mut |info| {
        count = info.dlpi_adds;
        false // the first module tells
    });
    count
}

impl Object {
    /// `None` for modules without tables.
    unsafe fn of(info: &libc::dl_phdr_info) -> Option<Self> {
        let base = usize::try_from(info.dlpi_addr).ok()?;
        // SAFETY: the linker's own description of the module.
        let segments = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
        let extent = |segment: &libc::Elf64_Phdr| {
            let start = base.wrapping_add(usize::try_from(segment.p_vaddr).ok()?);
            Some((start, start.wrapping_add(usize::try_from(segment.p_memsz).ok()?)))
        };
        let at = |kind: u32| segments.iter().find(|segment| segment.p_type == kind);
        let loaded_segments = || segments.iter().filter(|one| one.p_type == libc::PT_LOAD);
        let loaded = || loaded_segments().filter_map(extent);
        let code = || loaded_segments().filter(|one| one.p_flags & libc::PF_X != 0).filter_map(extent);
        let entry = extent(at(libc::PT_DYNAMIC)?)?.0 as *const Dynamic;
        let mut found = Self {
            base,
            start: loaded().map(|(start, _)| start).min()?,
            end: loaded().map(|(_, end)| end).max()?,
            path: info.dlpi_name,
            strings: ptr::null(),
            symbols: ptr::null(),
            versions: ptr::null(),
            needed: (ptr::null(), 0),
            tables: [(ptr::null(), 0); 2],
            sealed: at(libc::PT_GNU_RELRO).and_then(extent).unwrap_or_default(),
            code: code().fold((usize::MAX, 0), |all, (start, end)| (all.0.min(start), all.1.max(end))),
        };
        // SAFETY: that is where the module has its table.
        unsafe { found.fill(entry) };
        (!found.strings.is_null() && !found.symbols.is_null()).then_some(found)
    }

    /// Finds the tables of a module in its table of tables.
    unsafe fn fill(&mut self, mut entry: *const Dynamic) {
        let base = self.base;
        // glibc has turned offsets into addresses, except in modules whose tables are read-only.
        let absolute = |value: usize| if value < base { base.wrapping_add(value) } else { value };
        let count = |nbytes: usize| nbytes / size_of::<Relocation>();
        // SAFETY: the table ends with an entry of kind 0.
        while let &Dynamic { tag: tag @ 1.., value } = unsafe { &*entry } {
            match tag {
                STRINGS => self.strings = absolute(value) as *const u8,
                SYMBOLS => self.symbols = absolute(value) as *const Symbol,
                VERSIONS => self.versions = absolute(value) as *const u16,
                NEEDED => self.needed.0 = absolute(value) as *const Needed,
                NEEDED_COUNT => self.needed.1 = value,
                RELOCATIONS => self.tables[0].0 = absolute(value) as *const Relocation,
                RELOCATIONS_NBYTES => self.tables[0].1 = count(value),
                CALLS => self.tables[1].0 = absolute(value) as *const Relocation,
                CALLS_NBYTES => self.tables[1].1 = count(value),
                _ => {}
            }
            // SAFETY: as above.
            entry = unsafe { entry.add(1) };
        }
    }

    /// Whether an address is in this module.
    pub fn contains(&self, address: usize) -> bool {
        (self.start..self.end).contains(&address)
    }

    /// Whether an address is where its code is.
    pub fn has_code_at(&self, address: usize) -> bool {
        (self.code.0..self.code.1).contains(&address)
    }

    /// What the linker calls it.
    pub fn path(&self) -> &CStr {
        // SAFETY: the linker keeps the name while the module is loaded.
        if self.path.is_null() { c"" } else { unsafe { CStr::from_ptr(self.path) } }
    }

    /// Where it keeps addresses of functions and variables that have names.
    pub fn slots(&self) -> impl Iterator<Item = Slot<'_>> {
        let tables = self.tables.iter().filter(|(table, _)| !table.is_null());
        let all = tables.flat_map(|&(table, count)| {
            // SAFETY: the table has so many entries.
            (0..count).map(move |number| unsafe { &*table.add(number) })
        });
        all.filter_map(|relocation| {
            let kind = KINDS.iter().position(|kind| *kind == relocation.info & 0xffff_ffff)?;
            let number = (relocation.info >> 32) as usize;
            if number == 0 || (kind == 0 && relocation.addend != 0) {
                return None;
            }
            // SAFETY: relocations refer to symbols that have names, and versions if any symbol has one.
            let (symbol, version) = unsafe {
                let version = if self.versions.is_null() { 0 } else { *self.versions.add(number) };
                (&*self.symbols.add(number), version)
            };
            // SAFETY: as above.
            let name = unsafe { CStr::from_ptr(self.strings.add(symbol.name as usize).cast()) };
            let place = self.base.wrapping_add(relocation.offset);
            let (is_data, is_defined) = (kind == 0, symbol.section != 0);
            Some(Slot { name, place, may_wait: kind == 2, is_data, is_defined, version })
        })
    }

    /// The version that the module needs of what is in a slot.
    pub fn version(&self, slot: &Slot<'_>) -> Option<&CStr> {
        let wanted = slot.version & VERSION_NUMBER;
        let (mut library, count) = self.needed;
        if wanted < FIRST_VERSION || library.is_null() {
            return None;
        }
        // SAFETY: so many libraries follow each other, each with its own number of versions, at the distances that they name.
        unsafe {
            for _ in 0..count {
                let mut version = library.byte_add((*library).first as usize).cast::<NeededVersion>();
                for _ in 0..(*library).count {
                    if (*version).number & VERSION_NUMBER == wanted {
                        return Some(CStr::from_ptr(self.strings.add((*version).name as usize).cast()));
                    }
                    version = version.byte_add((*version).next as usize);
                }
                library = library.byte_add((*library).next as usize);
            }
        }
        None
    }

    /// Whether the linker made a place read-only.
    pub fn is_sealed(&self, place: usize) -> bool {
        (self.sealed.0..self.sealed.1).contains(&place)
    }
}
