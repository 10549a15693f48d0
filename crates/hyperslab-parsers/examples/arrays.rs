//! Prints what a parser finds, as one JSON object per line. Tests use it to read the bytes at these addresses
//! themselves.
//!
//! `arrays FORMAT PATH`, where FORMAT is netcdf3, fits, hdf4 or zarr.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom, Write as _};
use std::path::Path;

use hyperslab_core::{
    Array, ByteOrder, ByteRange, ChunkState, Codec, Element, Fill, Link, Segment, Tree, Unreadable,
};
use hyperslab_parsers::{Error, FetchError, Pages, Policy, Source};
use serde_json::{Value, json};

struct Local {
    path: std::path::PathBuf,
    length: u64,
}

impl Source for Local {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
        let read = || -> std::io::Result<Vec<Vec<u8>>> {
            let mut file = File::open(&self.path)?;
            let mut out = Vec::new();
            for range in ranges {
                let mut bytes = Vec::new();
                file.seek(SeekFrom::Start(range.offset))?;
                (&mut file).take(range.length).read_to_end(&mut bytes)?;
                out.push(bytes);
            }
            Ok(out)
        };
        read().map_err(|error| FetchError(error.to_string()))
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let [_, format, path] = arguments.as_slice() else {
        return fail("usage: arrays FORMAT PATH");
    };
    match tree(format, Path::new(path)) {
        Ok((tree, rounds)) => {
            let mut out = std::io::stdout().lock();
            let _ = writeln!(out, "{}", json!({"rounds": rounds, "files": tree.other_files}));
            print(&mut out, &tree, 0, "", 0);
        }
        Err(error) => fail(&error.to_string()),
    }
}

fn fail(message: &str) {
    println!("{}", json!({ "fatal": message }));
}

fn tree(format: &str, path: &Path) -> Result<(Tree, u64), Error> {
    if format == "zarr" {
        return Ok((
            hyperslab_parsers::zarr::parse_directory(path, &hyperslab_parsers::Allowed::default())?,
            0,
        ));
    }
    let length = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
    let source = Local { path: path.to_path_buf(), length };
    let mut pages = Pages::new(&source, Policy::LOCAL);
    let tree = match format {
        "netcdf3" => hyperslab_parsers::netcdf3::parse(&mut pages)?,
        "fits" => hyperslab_parsers::fits::parse(&mut pages)?,
        _ => hyperslab_parsers::hdf4::parse(&mut pages)?,
    };
    Ok((tree, pages.statistics().round_count))
}

fn print(out: &mut impl std::io::Write, tree: &Tree, group: usize, prefix: &str, depth: usize) {
    let Some(group) = tree.groups.get(group).filter(|_| depth < 100) else { return };
    for (name, link) in &group.links {
        let path = format!("{prefix}/{name}");
        let line = match link {
            Link::Group(number) => {
                print(out, tree, *number, &path, depth + 1);
                continue;
            }
            Link::Array(number) => tree.arrays.get(*number).map(|array| of_array(&path, array)),
            Link::Unreadable(reason) => Some(json!({"path": path, "unreadable": of_reason(reason)})),
            other => Some(json!({"path": path, "link": format!("{other:?}")})),
        };
        let _ = writeln!(out, "{}", line.unwrap_or_default());
    }
}

fn of_array(path: &str, array: &Array) -> Value {
    let segments = match &array.segments {
        Ok(segments) => json!(segments.iter().map(of_segment).collect::<Vec<_>>()),
        Err(reason) => json!({ "unreadable": of_reason(reason) }),
    };
    json!({
        "path": path,
        "shape": array.shape,
        "dtype": of_element(&array.element),
        "fill": of_fill(&array.fill),
        "dimensions": array.dimensions,
        "attributes": array.attributes.iter().map(|attribute| &attribute.name).collect::<Vec<_>>(),
        "segments": segments,
    })
}

fn of_reason(reason: &Unreadable) -> String {
    match reason {
        Unreadable::Unsupported { feature } => format!("unsupported: {feature}"),
        Unreadable::Damaged { problem } => format!("damaged: {problem}"),
        Unreadable::Unfetched { problem } => format!("unfetched: {problem}"),
    }
}

fn of_segment(segment: &Segment) -> Value {
    let stored = segment
        .manifest
        .stored()
        .map(|chunk| json!([chunk.index, chunk.file, chunk.range.offset, chunk.range.length]));
    let inline = (0..segment.grid.chunk_count().min(1 << 20)).filter_map(|index| {
        let ChunkState::Inline(bytes) = segment.manifest.state(index) else { return None };
        Some(json!([index, hexadecimal(bytes)]))
    });
    json!({
        "chunk_shape": segment.grid.chunk_shape(),
        "codecs": segment.codecs.iter().map(of_codec).collect::<Vec<_>>(),
        "fill": of_fill(&segment.fill),
        "chunks": stored.collect::<Vec<_>>(),
        "inline": inline.collect::<Vec<_>>(),
    })
}

fn of_codec(codec: &Codec) -> Value {
    match codec {
        Codec::Transpose { order } => json!(["transpose", order]),
        Codec::Shuffle { element_nbytes } => json!(["shuffle", element_nbytes]),
        Codec::Delta { stored, decoded } => json!(["delta", of_element(stored), of_element(decoded)]),
        Codec::FixedScaleOffset { scale, offset, stored, decoded } => {
            json!(["fixedscaleoffset", scale, offset, of_element(stored), of_element(decoded)])
        }
        Codec::Known { codec, .. } if codec.name == "lz4" => json!([codec.file]),
        Codec::Unknown { name, .. } => json!(["unknown", name]),
        other => json!([other.name()]),
    }
}

fn of_fill(fill: &Fill) -> Value {
    match fill {
        Fill::Value(bytes) => json!(hexadecimal(bytes)),
        Fill::Zero => json!("zero"),
        Fill::Undefined => Value::Null,
    }
}

fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// In a form that a few lines of Python turn into a dtype.
fn of_element(element: &Element) -> Value {
    let sign = |order: &ByteOrder| if *order == ByteOrder::Big { '>' } else { '<' };
    match element {
        Element::Integer { nbytes, signed, order, .. } => {
            json!(format!("{}{}{nbytes}", sign(order), if *signed { 'i' } else { 'u' }))
        }
        Element::Float { nbytes, order, .. } => json!(format!("{}f{nbytes}", sign(order))),
        Element::Complex { part } => match of_element(part).as_str() {
            Some(part) => json!(part.replace("f4", "c8").replace("f8", "c16").replace("f2", "c4")),
            None => Value::Null,
        },
        Element::FixedString { nbytes, .. } => json!(format!("|S{nbytes}")),
        Element::Opaque { nbytes, tag } if tag.is_empty() => json!(format!("|V{nbytes}")),
        Element::Opaque { tag, .. } => json!(tag.strip_prefix("NUMPY:").unwrap_or(tag)),
        Element::Bitfield { nbytes, order } => json!(format!("{}u{nbytes}", sign(order))),
        Element::Enumeration { base, .. } => of_element(base),
        Element::Array { shape, element } => json!({"of": of_element(element), "shape": shape}),
        Element::Compound { nbytes, fields } => {
            let fields =
                fields.iter().map(|field| json!([field.name, field.offset, of_element(&field.element)]));
            json!({"nbytes": nbytes, "fields": fields.collect::<Vec<_>>()})
        }
        _ => Value::Null,
    }
}
