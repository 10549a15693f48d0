//! What an array is, for the log: asked of libhdf5 once for each identifier.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_char};
use std::fmt::Write;
use std::os::unix::ffi::OsStrExt;
use std::ptr;

use super::json;
use super::types::stored_type;
use crate::libhdf5::{Describing, Held, Id, Library, MOST_NDIM, Quiet};

/// `H5D_CHUNKED`.
const CHUNKED: i32 = 2;
const LAYOUTS: [&str; 4] = ["compact", "contiguous", "chunked", "virtual"];
/// libhdf5 counts the stored bytes of an array chunk by chunk: only of so many.
const MOST_COUNTED: u64 = 1 << 14;
/// `H5F_ACC_RDWR`.
const WRITABLE: u32 = 1;
const FILTERS: [&str; 6] = ["deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"];
/// Filters that an advice may name: those above by number, LZF, Blosc, LZ4, bitshuffle and Zstandard.
const ADVISED: [i32; 11] = [1, 2, 3, 4, 5, 6, 32000, 32001, 32004, 32008, 32015];

/// `H5Z_FILTER_CONFIG_DECODE_ENABLED`.
const DECODES: u32 = 2;

/// What the recorder keeps of an array.
pub(crate) struct Described {
    /// For the log.
    pub text: String,
    pub shape: Vec<u64>,
    /// Bytes of an element in the file.
    pub width: u64,
    /// The shape of a chunk; nothing if it is not chunked.
    pub chunk: Vec<u64>,
}

/// Describes an array of this shape. `label` is the library that reads it for the program.
pub(crate) fn described(
    library: &Library,
    describing: &Describing,
    label: &str,
    array: Id,
    shape: &[u64],
    is_writable: bool,
) -> Option<Described> {
    let call = &library.call;
    let mut piece = [0_u64; MOST_NDIM];
    // SAFETY: the functions take any identifier; there is room for as many axes as libhdf5 allows.
    unsafe {
        let properties = Held::new(library, (call.array_properties)(array))?;
        let kind = Held::new(library, (call.array_type)(array))?;
        let layout = (call.properties_layout)(properties.id);
        let most = i32::try_from(MOST_NDIM).unwrap_or(0);
        let is_chunked = layout == CHUNKED
            && usize::try_from((call.properties_chunk)(properties.id, most, piece.as_mut_ptr()))
                == Ok(shape.len());
        let chunk = if is_chunked { &piece[..shape.len()] } else { &[] };
        let width = (call.type_nbytes)(kind.id) as u64;
        let mut out = String::from("{\"library\": ");
        json::put_text(&mut out, label);
        out.push_str(", \"file\": ");
        json::put_text(&mut out, &file_of(describing, array));
        out.push_str(", \"array\": ");
        let name = text(|out: *mut c_char, size| (describing.id_name)(array, out, size));
        json::put_text(&mut out, name.as_deref().unwrap_or("(anonymous)"));
        out.push_str(", \"shape\": ");
        json::put_numbers(&mut out, shape);
        out.push_str(", \"chunks\": ");
        if is_chunked {
            json::put_numbers(&mut out, chunk);
        } else {
            out.push_str("null");
        }
        out.push_str(", \"dtype\": ");
        json::put_text(&mut out, &stored_type(library, describing, kind.id));
        let layout = usize::try_from(layout).ok().and_then(|layout| LAYOUTS.get(layout));
        let layout = layout.unwrap_or(&"unknown");
        let _ = write!(out, ", \"element_nbytes\": {width}, \"layout\": \"{layout}\"");
        put_filters(&mut out, library, properties.id);
        put_decodable(&mut out, library, describing);
        if is_chunked {
            put_cache(&mut out, library, array);
        }
        let counts = shape.iter().zip(chunk).map(|(length, chunk)| length.div_ceil((*chunk).max(1)));
        if counts.fold(1, u64::saturating_mul) <= MOST_COUNTED && !is_writable {
            let _ = write!(out, ", \"stored_nbytes\": {}", (describing.stored_nbytes)(array));
        }
        out.push('}');
        Some(Described { text: out, shape: shape.to_vec(), width, chunk: chunk.to_vec() })
    }
}

/// The name of its file; from the root, if it is a local one. h5py names an open file of Python's by its `repr`.
fn file_of(describing: &Describing, array: Id) -> String {
    // SAFETY: the function takes any identifier, and writes no more than there is room for.
    let name = text(|out: *mut c_char, size| unsafe { (describing.file_name)(array, out, size) });
    let name = name.unwrap_or_default();
    let is_given = name.starts_with('<') && name.ends_with('>');
    if name.starts_with('/') || name.contains("://") || name.is_empty() || is_given {
        return name;
    }
    let Ok(folder) = std::env::current_dir() else { return name };
    let mut parts = Vec::new();
    for part in name.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.pop().is_some() => {}
            ".." => return format!("{}/{name}", String::from_utf8_lossy(folder.as_os_str().as_bytes())),
            _ => parts.push(part),
        }
    }
    let folder = String::from_utf8_lossy(folder.as_os_str().as_bytes()).into_owned();
    format!("{}/{}", folder.trim_end_matches('/'), parts.join("/"))
}

fn put_filters(out: &mut String, library: &Library, properties: Id) {
    out.push_str(", \"filters\": [");
    for (place, number) in library.filters(properties).into_iter().enumerate() {
        let known = usize::try_from(number).ok().and_then(|number| FILTERS.get(number.checked_sub(1)?));
        let number = number.to_string();
        out.push_str(if place > 0 { ", " } else { "" });
        json::put_text(out, known.copied().unwrap_or(&number));
    }
    out.push(']');
}

/// Which filters the program's own libhdf5 has now: what reads an advised file. To ask in this way loads no plugin, which
/// might get in the way of the program's own.
fn put_decodable(out: &mut String, library: &Library, describing: &Describing) {
    let Some(_quiet) = Quiet::new(library) else { return };
    let is_there = |number: i32| {
        let mut config = 0;
        // SAFETY: the function takes any number, and the pointer is valid for writes.
        let done = unsafe { (describing.filter_info)(number, &raw mut config) };
        done >= 0 && config & DECODES != 0
    };
    let found = ADVISED.iter().filter(|&&number| is_there(number));
    let found: Vec<_> = found.map(i32::to_string).collect();
    let _ = write!(out, ", \"decodes\": [{}]", found.join(", "));
}

fn put_cache(out: &mut String, library: &Library, array: Id) {
    let (mut slots, mut nbytes, mut w0) = (0, 0, 0.0);
    // SAFETY: the functions take any identifier, and the pointers are valid for writes.
    unsafe {
        let Some(access) = Held::new(library, (library.call.array_access)(array)) else { return };
        if (library.call.access_cache)(access.id, &raw mut slots, &raw mut nbytes, &raw mut w0) < 0 {
            return;
        }
    }
    let _ = write!(out, ", \"cache_nbytes\": {nbytes}, \"cache_slots\": {slots}, \"cache_w0\": {w0}");
}

/// Whether an array's file is open for writing.
pub(crate) fn is_writable(library: &Library, array: Id) -> bool {
    let mut intent = WRITABLE;
    // SAFETY: the functions take any identifier, and the pointer is valid for writes.
    unsafe {
        if let Some(file) = Held::new(library, (library.call.id_file)(array)) {
            (library.call.file_intent)(file.id, &raw mut intent);
        }
    }
    intent & WRITABLE != 0
}

/// The text that a function writes into a buffer whose length it is told.
fn text(write: impl Fn(*mut c_char, usize) -> isize) -> Option<String> {
    let length = usize::try_from(write(ptr::null_mut(), 0)).ok().filter(|&length| length > 0)?;
    let mut bytes = vec![0_u8; length.checked_add(1)?];
    write(bytes.as_mut_ptr().cast(), bytes.len());
    Some(CStr::from_bytes_until_nul(&bytes).ok()?.to_string_lossy().into_owned())
}
