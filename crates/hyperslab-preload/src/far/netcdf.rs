//! `nc_open` of a URL. netCDF-C itself would talk to the server by another protocol, so it does not see URLs that lead to
//! files of ours.

#![allow(unsafe_code)]

use std::collections::HashMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::Arc;

use hyperslab_libhdf5::DrivenFile;

use super::classic::{StandIn, Standing, function, read_for};
use super::file::FarFile;
use super::opening::{self, Expected, SIGNATURE, signature};
use super::reaching::url;
use super::told;
use crate::instructions::{Called, Next};
use crate::settings::settings;
use crate::shared::Shared;
use crate::stack;

/// Ways of opening that make no difference for reading: `NC_CLASSIC_MODEL`, `NC_64BIT_OFFSET`, `NC_CDF5`, `NC_SHARE`,
/// `NC_NETCDF4`, `NC_NOATTCREORD`, `NC_NODIMSCALE_ATTACH`.
const HARMLESS: usize = 0x0100 | 0x0200 | 0x0020 | 0x0800 | 0x1000 | 0x2_0000 | 0x4_0000;
/// How often a web server is asked for a file that may be no file, but a service that netCDF-C knows.
const ATTEMPTS: u32 = 2;
/// The part of an identifier that tells files apart.
const FILE: c_int = !0xffff;
/// How files of netCDF-3 begin.
const CLASSIC: [&[u8]; 3] = [b"CDF\x01", b"CDF\x02", b"CDF\x05"];

/// A file that netCDF-C has open by another name.
struct Named {
    path: CString,
    url: CString,
    standing: Option<&'static Standing>,
}

static NAMED: Shared<HashMap<c_int, Named>> = Shared::new();

/// `nc_open`: the third argument is where the identifier goes.
pub(crate) unsafe extern "C-unwind" fn open(called: &Called, real: usize) -> Next {
    let (_, _, out, ..) = called.arguments();
    opened(called, real, out)
}

/// `nc__open`: there it is the fourth.
pub(crate) unsafe extern "C-unwind" fn open_with_hint(called: &Called, real: usize) -> Next {
    let (_, _, _, out, ..) = called.arguments();
    opened(called, real, out)
}

/// An argument or result that has 32 bits.
#[allow(clippy::cast_possible_truncation)]
fn short(word: usize) -> c_int {
    (word as u32).cast_signed()
}

fn passed(real: usize) -> Next {
    Next { jump: real, result: 0 }
}

fn opened(called: &Called, real: usize, out: usize) -> Next {
    let (path, mode, third, fourth, fifth, sixth) = called.arguments();
    if path == 0 || mode & !HARMLESS != 0 || !stack::is_enough() {
        return passed(real);
    }
    // SAFETY: the program says that it is a name, which ends with a zero.
    let named = unsafe { CStr::from_ptr(path as *const c_char) };
    let Some(url) = url(named.to_bytes()).filter(|url| !url.contains('#')) else { return passed(real) };
    told::forget();
    // If anything fails, netCDF-C may know what else is at the URL; if it does not, it says why we did not open it.
    let most_attempts = url.starts_with("http").then_some(ATTEMPTS);
    let found = opening::open(url, most_attempts).map_err(|failure| failure.text);
    let found = found.and_then(|file| stand_in(&file, real).map(|stand_in| (file, stand_in)));
    let (file, stand_in) = match found {
        Ok((file, Some(stand_in))) => (file, stand_in),
        Ok((_, None)) => return passed(real),
        Err(text) => {
            // SAFETY: these are the program's own arguments.
            let result = unsafe { function(real)(path, mode, third, fourth, fifth, sixth) };
            told::note(&text);
            return Next::done(result);
        }
    };
    let path = stand_in.path();
    let _expected = Expected::new(&path, &file);
    let is_classic = signature(file.head()).is_none();
    let standing = if is_classic { Standing::begin(stand_in, &file) } else { None };
    // SAFETY: these are the program's own arguments, but for the name.
    let result = unsafe { function(real)(path.as_ptr() as usize, mode, third, fourth, fifth, sixth) };
    if short(result) != 0 {
        standing.inspect(|standing| standing.end());
        return Next::done(result);
    }
    // SAFETY: netCDF-C has put the identifier there.
    if let Some(id) = unsafe { (out as *const c_int).as_ref() } {
        keep(*id, Named { path, url: named.to_owned(), standing });
    }
    Next::done(result)
}

/// A file that netCDF-C takes for the one at a URL; `None` if that is not a file of ours.
fn stand_in(file: &Arc<FarFile>, real: usize) -> Result<Option<StandIn>, String> {
    let (head, nbytes) = (file.head(), file.nbytes());
    let failed = |error: std::io::Error| format!("{}: no memory for a file: {error}", file.name());
    if let Some(place) = signature(head) {
        return StandIn::new(nbytes, &[(place as u64, SIGNATURE)]).map(Some).map_err(failed);
    }
    if !CLASSIC.iter().any(|start| head.starts_with(start)) {
        return Ok(None);
    }
    if read_for(real) {
        return StandIn::new(nbytes, &[(0, head)]).map(Some).map_err(failed);
    }
    if nbytes > settings().memory_nbytes as u64 {
        let most = settings().memory_nbytes;
        return Err(format!(
            "{} has {nbytes} bytes, more than HYPERSLAB_MEMORY ({most}): this netCDF-C reads files in a way that needs \
             all of them",
            file.name()
        ));
    }
    let mut all = vec![0; usize::try_from(nbytes).unwrap_or(0)];
    file.fill(0, &mut all)?;
    StandIn::new(nbytes, &[(0, &all)]).map(Some).map_err(failed)
}

fn keep(id: c_int, named: Named) {
    if let Some(mut all) = NAMED.lock() {
        all.insert(id & FILE, named);
    }
}

/// `nc_close`, `nc_abort`.
pub(crate) unsafe extern "C-unwind" fn close(called: &Called, real: usize) -> Next {
    if NAMED.is_unused() {
        return passed(real);
    }
    let (id, second, third, fourth, fifth, sixth) = called.arguments();
    // SAFETY: these are the program's own arguments.
    let result = unsafe { function(real)(id, second, third, fourth, fifth, sixth) };
    let closed = NAMED.lock().and_then(|mut all| all.remove(&(short(id) & FILE)));
    if let Some(standing) = closed.and_then(|named| named.standing) {
        standing.end();
    }
    Next::done(result)
}

/// `nc_inq_path`: the program knows the file by its URL.
pub(crate) unsafe extern "C-unwind" fn path(called: &Called, real: usize) -> Next {
    if NAMED.is_unused() {
        return passed(real);
    }
    let (id, length, path, fourth, fifth, sixth) = called.arguments();
    // SAFETY: these are the program's own arguments.
    let result = unsafe { function(real)(id, length, path, fourth, fifth, sixth) };
    let Some(all) = NAMED.lock() else { return Next::done(result) };
    let Some(named) = all.get(&(short(id) & FILE)).filter(|_| short(result) == 0) else {
        return Next::done(result);
    };
    let url = named.url.as_bytes_with_nul();
    // SAFETY: the program has room for what it asks for; the length that it got before was that of the URL.
    unsafe {
        if let Some(length) = (length as *mut usize).as_mut() {
            *length = url.len() - 1;
        }
        if path != 0 && CStr::from_ptr(path as *const c_char) == named.path.as_c_str() {
            std::ptr::copy_nonoverlapping(url.as_ptr(), path as *mut u8, url.len());
        }
    }
    Next::done(result)
}

/// `nc_strerror`.
pub(crate) unsafe extern "C-unwind" fn error_text(called: &Called, real: usize) -> Next {
    let (number, second, third, fourth, fifth, sixth) = called.arguments();
    if short(number) == 0 || told::is_nothing() {
        return passed(real);
    }
    // SAFETY: these are the program's own arguments, and the result is a text that ends with a zero.
    let (words, text) = unsafe {
        let words = function(real)(number, second, third, fourth, fifth, sixth);
        (words, (words != 0).then(|| CStr::from_ptr(words as *const c_char)))
    };
    let told = text.and_then(told::told);
    Next::done(told.map_or(words, |told| told as usize))
}

/// A child that was forked: a thread that it does not have may have the lock.
pub(super) fn forked() {
    NAMED.forget();
}
