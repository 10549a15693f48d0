//! Files that our driver reads, as libhdf5 has them, and the functions of the driver that it calls.
//!
//! libhdf5 asks the same driver for the files that an open file leads to, and then says which file that is: so whoever has
//! the file decides where it may lead.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_ulong, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicPtr, Ordering};

use crate::Id;
use crate::library::Library;

/// How many libhdf5 of a process can have our driver: each has functions of its own, because a call does not say whose it is.
pub(crate) const MOST_LIBRARIES: usize = 8;

/// The libraries that have our driver.
pub(crate) static LIBRARIES: [AtomicPtr<Library>; MOST_LIBRARIES] =
    [const { AtomicPtr::new(ptr::null_mut()) }; MOST_LIBRARIES];

/// A file that our driver reads.
pub trait DrivenFile: Send + Sync {
    /// Tells it from all others of this process.
    fn number(&self) -> u64;

    /// Equal for files that libhdf5 need not open twice.
    fn identity(&self) -> &str;

    /// Its length.
    fn nbytes(&self) -> u64;

    /// Fills memory. What is wrong otherwise goes to libhdf5's stack of errors.
    fn read(&self, offset: u64, out: &mut [u8]) -> Result<(), String>;

    /// Opens a file that this one leads to, by a name that libhdf5 made of the one in the file.
    fn led_to(&self, name: &str) -> Result<Arc<dyn DrivenFile>, String>;
}

/// What is opened: a file, or why it cannot be.
pub type Opening = Result<Arc<dyn DrivenFile>, String>;

/// What a property list says to the driver.
pub(crate) struct Asked {
    pub opening: Opening,
    /// Whether the program asks for this very file; otherwise for one that it leads to.
    pub is_itself: bool,
}

/// More than any version of `H5FD_t` has.
const PUBLIC_WORDS: usize = 32;

/// An open file, as libhdf5 has it. The first words are its own.
#[repr(C)]
pub(crate) struct Driven {
    public: [u64; PUBLIC_WORDS],
    library: &'static Library,
    file: Arc<dyn DrivenFile>,
    /// What the program gets that asks for a handle.
    number: u64,
    end: u64,
}

/// `H5F_ACC_RDWR`, `H5F_ACC_TRUNC`, `H5F_ACC_EXCL`, `H5F_ACC_CREAT`.
const WRITING: c_uint = 0x1 | 0x2 | 0x4 | 0x10;
const FAILURE: c_int = -1;

impl Library {
    /// Puts on the stack of errors why a read has failed.
    pub fn tell_read_failed(&self, text: &str) {
        self.tell(text, false);
        self.tell("can't read data", false);
    }

    /// Puts a message on the stack of errors.
    fn tell(&self, text: &str, is_of_opening: bool) {
        let Some(driving) = &self.driving else { return };
        let text = CString::new(text.replace('\0', " ")).unwrap_or_default();
        let minor = if is_of_opening { driving.open_failed } else { driving.read_failed };
        let (class, major) = (driving.error_class, driving.of_drivers);
        // SAFETY: the variables are libhdf5's, and the texts end with a zero.
        unsafe {
            (driving.push)(
                0,
                c"hyperslab".as_ptr(),
                c"hyperslab".as_ptr(),
                0,
                *class,
                *major,
                *minor,
                c"%s".as_ptr(),
                text.as_ptr(),
            );
        }
    }
}

/// Does what libhdf5 asks. A panic is a failure.
fn caught<T>(failed: T, work: impl FnOnce() -> T) -> T {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or(failed)
}

/// Opens a file for the library at a place.
pub(crate) unsafe extern "C" fn open<const PLACE: usize>(
    name: *const c_char,
    flags: c_uint,
    properties: Id,
    _most: u64,
) -> *mut Driven {
    caught(ptr::null_mut(), || {
        // SAFETY: libraries with our driver are never unloaded.
        let Some(library) = (unsafe { LIBRARIES[PLACE].load(Ordering::Acquire).cast_const().as_ref() })
        else {
            return ptr::null_mut();
        };
        let Some(driving) = &library.driving else { return ptr::null_mut() };
        // SAFETY: the name ends with a zero, and what properties have for our driver is ours.
        let (name, asked) = unsafe {
            let asked = (driving.driver_information)(properties).cast::<Asked>().as_ref();
            (CStr::from_ptr(name).to_string_lossy(), asked)
        };
        match opened(&name, flags, asked) {
            Ok(file) => {
                let number = file.number();
                Box::into_raw(Box::new(Driven { public: [0; PUBLIC_WORDS], library, file, number, end: 0 }))
            }
            Err(text) => {
                library.tell(&text, true);
                ptr::null_mut()
            }
        }
    })
}

fn opened(name: &str, flags: c_uint, asked: Option<&Asked>) -> Opening {
    let asked = asked.ok_or_else(|| format!("{name} is not opened by hyperslab"))?;
    let file = asked.opening.as_ref().map_err(Clone::clone)?;
    if flags & WRITING != 0 {
        return Err(format!("unable to open file: name = '{name}': what is at a URL can only be read"));
    }
    if asked.is_itself { Ok(Arc::clone(file)) } else { file.led_to(name) }
}

pub(crate) unsafe extern "C" fn close(driven: *mut Driven) -> c_int {
    // SAFETY: libhdf5 closes what it has opened, once.
    caught(FAILURE, || {
        drop(unsafe { Box::from_raw(driven) });
        0
    })
}

pub(crate) unsafe extern "C" fn compare(one: *const Driven, other: *const Driven) -> c_int {
    // SAFETY: both are open.
    let (one, other) = unsafe { (&*one, &*other) };
    one.file.identity().cmp(other.file.identity()) as c_int
}

pub(crate) unsafe extern "C" fn query(_: *const Driven, flags: *mut c_ulong) -> c_int {
    /// Small reads of elements go through a buffer; files are as the plain driver has them.
    const FEATURES: c_ulong = 0x8 | 0x8000;
    // SAFETY: libhdf5 has room for them, if it wants them.
    if let Some(flags) = unsafe { flags.as_mut() } {
        *flags = FEATURES;
    }
    0
}

pub(crate) unsafe extern "C" fn end(driven: *const Driven, _: c_int) -> u64 {
    // SAFETY: it is open.
    unsafe { (*driven).end }
}

pub(crate) unsafe extern "C" fn set_end(driven: *mut Driven, _: c_int, end: u64) -> c_int {
    // SAFETY: it is open, and nobody else uses it now.
    unsafe { (*driven).end = end };
    0
}

pub(crate) unsafe extern "C" fn file_end(driven: *const Driven, _: c_int) -> u64 {
    // SAFETY: it is open.
    unsafe { (*driven).file.nbytes() }
}

pub(crate) unsafe extern "C" fn handle(driven: *mut Driven, _: Id, handle: *mut *mut c_void) -> c_int {
    // SAFETY: it is open, and libhdf5 has room for a pointer.
    unsafe { *handle = (&raw mut (*driven).number).cast() };
    0
}

pub(crate) unsafe extern "C" fn read(
    driven: *mut Driven,
    _: c_int,
    _: Id,
    offset: u64,
    nbytes: usize,
    out: *mut c_void,
) -> c_int {
    caught(FAILURE, || {
        // SAFETY: it is open, and libhdf5 has room for so many bytes.
        let (driven, out) = unsafe { (&*driven, std::slice::from_raw_parts_mut(out.cast::<u8>(), nbytes)) };
        match driven.file.read(offset, out) {
            Ok(()) => 0,
            Err(text) => {
                driven.library.tell(&text, false);
                FAILURE
            }
        }
    })
}

pub(crate) unsafe extern "C" fn write(
    driven: *mut Driven,
    _: c_int,
    _: Id,
    _: u64,
    _: usize,
    _: *const c_void,
) -> c_int {
    // SAFETY: it is open.
    unsafe { (*driven).library.tell("what is at a URL can only be read", false) };
    FAILURE
}

/// What the properties of an open file say: other files are those that it leads to.
pub(crate) unsafe extern "C" fn information(driven: *mut Driven) -> *mut c_void {
    // SAFETY: it is open.
    let opening = Ok(unsafe { Arc::clone(&(*driven).file) });
    Box::into_raw(Box::new(Asked { opening, is_itself: false })).cast()
}

pub(crate) unsafe extern "C" fn copy_information(asked: *const c_void) -> *mut c_void {
    // SAFETY: it is ours.
    let asked = unsafe { &*asked.cast::<Asked>() };
    Box::into_raw(Box::new(Asked { opening: asked.opening.clone(), is_itself: asked.is_itself })).cast()
}

pub(crate) unsafe extern "C" fn free_information(asked: *mut c_void) -> c_int {
    caught(FAILURE, || {
        // SAFETY: it is ours, and libhdf5 frees it once.
        drop(unsafe { Box::from_raw(asked.cast::<Asked>()) });
        0
    })
}
