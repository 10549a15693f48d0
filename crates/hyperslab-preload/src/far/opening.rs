//! `H5Fopen` of a URL: libhdf5 opens it by our driver, or says by its own stack of errors why it cannot.

#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::sync::Arc;

use hyperslab_libhdf5::{DrivenFile, Opening, SetAside, has_failed};

use super::failure::Failure;
use super::file::FarFile;
use super::presence;
use super::reaching::{reached, url};
use crate::callers::Site;
use crate::instructions::Arguments;
use crate::known;

/// How HDF5 files begin, at 0 or at a power of two from 512 on.
pub(super) const SIGNATURE: &[u8] = b"\x89HDF\r\n\x1a\n";

/// `H5F_ACC_RDWR`.
const WRITABLE: usize = 1;

thread_local! {
    /// What netCDF-C is about to open by this name on this thread.
    static EXPECTED: RefCell<Option<(CString, Arc<FarFile>)>> = const { RefCell::new(None) };
}

/// While it lives, this thread opens a file at a URL by another name.
pub(super) struct Expected;

impl Expected {
    pub fn new(name: &CStr, file: &Arc<FarFile>) -> Self {
        EXPECTED.set(Some((name.to_owned(), Arc::clone(file))));
        Self
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        EXPECTED.set(None);
    }
}

/// Opens what is at a URL, in so many attempts if others may know more of it.
pub(super) fn open(url: &str, most_attempts: Option<u32>) -> Result<Arc<FarFile>, Failure> {
    let (url, options) = reached(url)?;
    let file = FarFile::open(&url, options, most_attempts)?;
    if presence::note() {
        known::share_memory();
    }
    Ok(file)
}

/// Where the signature of an HDF5 file is among its first bytes.
pub(super) fn signature(head: &[u8]) -> Option<usize> {
    let places =
        std::iter::once(0).chain(std::iter::successors(Some(512_usize), |place| place.checked_mul(2)));
    let mut places = places.take_while(|place| *place < head.len());
    places.find(|&place| head[place..].starts_with(SIGNATURE))
}

/// Does a call of `H5Fopen` if it is of a URL; `None` if it is not.
///
/// # Safety
/// The arguments are the program's own.
pub(crate) unsafe fn open_hdf5(
    site: &'static Site,
    arguments: Arguments,
    pass: impl Fn(Arguments) -> usize,
) -> Option<usize> {
    let (name, flags, properties, fourth, fifth, sixth) = arguments;
    if name == 0 {
        return None;
    }
    // SAFETY: the program says that it is a name, which ends with a zero.
    let named = unsafe { CStr::from_ptr(name as *const c_char) };
    let expected = EXPECTED.with_borrow(|expected| {
        let (name, file) = expected.as_ref()?;
        (name.as_c_str() == named).then(|| Arc::clone(file))
    });
    let asked = if expected.is_some() { None } else { Some(url(named.to_bytes())?) };
    let library = site.libhdf5.library()?;
    let driver = library.driver().filter(|driver| driver.may_replace(properties.cast_signed() as i64))?;
    let opened = match (&expected, asked) {
        (Some(file), _) => Ok(Arc::clone(file)),
        // Nothing is asked of the server if libhdf5 refuses anyway.
        (None, Some(_)) if flags & WRITABLE != 0 => Err("what is at a URL can only be read".to_owned()),
        (None, Some(url)) => open(url, None).map_err(|failure| told(named, &failure)),
        (None, None) => return None,
    };
    if let Ok(file) = &opened
        && signature(file.head()).is_some()
    {
        file.fetch_metadata();
    }
    let shown = opened.as_ref().ok().filter(|_| expected.is_some()).map(|file| file.url().to_owned());
    let shown = shown.and_then(|url| CString::new(url).ok());
    let name = shown.as_ref().map_or(name, |shown| shown.as_ptr() as usize);
    let opening: Opening = opened.map(|file| file as Arc<dyn DrivenFile>);
    let made = driver.properties(properties.cast_signed() as i64, opening)?;
    #[allow(clippy::cast_possible_truncation)] // addresses have 64 bits here
    let properties = made.id().cast_unsigned() as usize;
    let result = pass((name, flags, properties, fourth, fifth, sixth));
    // Closing the properties would clear what libhdf5 says.
    let errors = has_failed(result).then(|| SetAside::new(library));
    drop(made);
    drop(errors);
    Some(result)
}

/// The words of the plain driver, so that programs which look for them understand.
fn told(name: &CStr, failure: &Failure) -> String {
    let Failure { number, text } = failure;
    let url = hyperslab_archive::shown(&name.to_string_lossy());
    format!("unable to open file: name = '{url}', errno = {number}, error message = '{text}'")
}
