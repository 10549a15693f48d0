//! What an array is, for the log: asked of libhdf5 once for each identifier.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::unix::ffi::OsStrExt;

use hyperslab_libhdf5::{Array, CacheSettings, Id, Intent, Layout, Library, MOST_NDIM, Properties, Quiet};

use super::json;
use super::types::stored_type;

const FILTERS: [&str; 6] = ["deflate", "shuffle", "fletcher32", "szip", "nbit", "scaleoffset"];
/// Filters that an advice may name: those above by number, LZF, Blosc, LZ4, bitshuffle and Zstandard.
const ADVISED: [i32; 11] = [1, 2, 3, 4, 5, 6, 32000, 32001, 32004, 32008, 32015];

/// What the recorder keeps of an array.
pub(crate) struct Described {
    /// For the log.
    pub text: String,
    pub shape: Vec<u64>,
    /// Bytes of an element in the file.
    pub width: u64,
    /// The shape of a chunk; nothing if it is not chunked.
    pub chunk: Vec<u64>,
    /// The hash of its file's name and its own.
    pub named: u64,
}

/// Describes an array of this shape. `label` is the library that reads it for the program.
///
/// How many bytes are stored is not asked: libhdf5 would read the whole index of the chunks, which the program's next
/// calls would then find in memory.
pub(crate) fn described(library: &Library, label: &str, array: Id, shape: &[u64]) -> Option<Described> {
    let array = library.array(array);
    let creation = array.creation()?;
    let stored = array.stored_type()?;
    let (layout, mut room) = (creation.layout(), [0_u64; MOST_NDIM]);
    let chunk = if layout == Some(Layout::Chunked) { creation.chunk_shape(&mut room) } else { None };
    let chunk = chunk.filter(|chunk| chunk.len() == shape.len());
    let width = stored.nbytes() as u64;
    let mut out = String::from("{\"library\": ");
    json::put_text(&mut out, label);
    out.push_str(", \"file\": ");
    let (file, name) = (file_of(array), array.name());
    let name = name.as_deref().unwrap_or("(anonymous)");
    json::put_text(&mut out, &file);
    out.push_str(", \"array\": ");
    json::put_text(&mut out, name);
    let mut named = DefaultHasher::new();
    (file, name).hash(&mut named);
    out.push_str(", \"shape\": ");
    json::put_numbers(&mut out, shape);
    out.push_str(", \"chunks\": ");
    match &chunk {
        Some(chunk) => json::put_numbers(&mut out, chunk),
        None => out.push_str("null"),
    }
    out.push_str(", \"dtype\": ");
    json::put_text(&mut out, &stored_type(*stored));
    let layout = layout.map_or("unknown", layout_name);
    let _ = write!(out, ", \"element_nbytes\": {width}, \"layout\": \"{layout}\"");
    put_filters(&mut out, *creation);
    put_decodable(&mut out, library);
    if chunk.is_some() {
        put_cache(&mut out, array);
    }
    let chunk = chunk.map(|chunk| chunk.to_vec()).unwrap_or_default();
    out.push('}');
    Some(Described { text: out, shape: shape.to_vec(), width, chunk, named: named.finish() })
}

fn layout_name(layout: Layout) -> &'static str {
    match layout {
        Layout::Compact => "compact",
        Layout::Contiguous => "contiguous",
        Layout::Chunked => "chunked",
        Layout::Virtual => "virtual",
    }
}

/// The name of its file; from the root, if it is a local one. h5py names an open file of Python's by its `repr`.
fn file_of(array: Array<'_>) -> String {
    let name = array.file_name().unwrap_or_default();
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

fn put_filters(out: &mut String, creation: Properties<'_>) {
    out.push_str(", \"filters\": [");
    for (place, number) in creation.filters().unwrap_or_default().into_iter().enumerate() {
        let known = usize::try_from(number).ok().and_then(|number| FILTERS.get(number.checked_sub(1)?));
        let number = number.to_string();
        out.push_str(if place > 0 { ", " } else { "" });
        json::put_text(out, known.copied().unwrap_or(&number));
    }
    out.push(']');
}

/// Which filters the program's own libhdf5 has now: what reads an advised file. To ask in this way loads no plugin, which
/// might get in the way of the program's own.
fn put_decodable(out: &mut String, library: &Library) {
    let Some(_quiet) = Quiet::new(library) else { return };
    let decoded = ADVISED.iter().filter(|&&number| library.decodes(number));
    let decoded: Vec<_> = decoded.map(i32::to_string).collect();
    let _ = write!(out, ", \"decodes\": [{}]", decoded.join(", "));
}

fn put_cache(out: &mut String, array: Array<'_>) {
    let Some(access) = array.access() else { return };
    let Some(CacheSettings { slots, nbytes, w0 }) = access.chunk_cache() else { return };
    let _ = write!(out, ", \"cache_nbytes\": {nbytes}, \"cache_slots\": {slots}, \"cache_w0\": {w0}");
}

/// Whether an array's file is open for writing.
pub(crate) fn is_writable(library: &Library, array: Id) -> bool {
    let intent = library.array(array).file().and_then(|file| file.intent());
    intent.is_none_or(Intent::is_writable)
}
