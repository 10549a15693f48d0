//! Prints an HDF5 file's tree, as one JSON object per line: for `tests/engine/compare_structure.py` and for people.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;

use hyperslab_core::{Array, Attribute, ByteRange, Link, Tree, Value};
use hyperslab_parsers::{FetchError, Pages, Policy, Source, hdf5};

/// A local file.
struct Local {
    file: File,
    length: u64,
}

impl Source for Local {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
        ranges.iter().map(|range| self.read(*range)).collect()
    }
}

impl Local {
    fn read(&self, range: ByteRange) -> Result<Vec<u8>, FetchError> {
        let length = usize::try_from(range.length).map_err(|error| FetchError(error.to_string()))?;
        let mut bytes = vec![0; length];
        let read = self.file.read_exact_at(&mut bytes, range.offset);
        read.map(|()| bytes).map_err(|error| FetchError(error.to_string()))
    }
}

/// A JSON string.
fn quoted(text: &str) -> String {
    let escaped = |character: char| match character {
        '"' | '\\' => format!("\\{character}"),
        control if control < ' ' => format!("\\u{:04x}", u32::from(control)),
        other => other.to_string(),
    };
    format!("\"{}\"", text.chars().map(escaped).collect::<Vec<_>>().concat())
}

fn names(attributes: &[Attribute]) -> String {
    let name = |attribute: &Attribute| match &attribute.value {
        Ok(_) => quoted(&attribute.name),
        Err(problem) => format!("[{}, {}]", quoted(&attribute.name), quoted(&problem.to_string())),
    };
    let names: Vec<String> = attributes.iter().map(name).collect();
    format!("[{}]", names.join(", "))
}

/// The attributes' values as hexadecimal digits, including the values that pointers lead to.
fn values(attributes: &[Attribute]) -> String {
    let digits = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat();
    let hexadecimal = |bytes: &Vec<u8>| quoted(&digits(bytes));
    let readable =
        attributes.iter().filter_map(|attribute| Some((attribute, attribute.value.as_ref().ok()?)));
    let value = |(attribute, value): (&Attribute, &Value)| {
        let heap: Vec<String> = value.heap.iter().map(hexadecimal).collect();
        format!("{}: [{}, [{}]]", quoted(&attribute.name), hexadecimal(&value.bytes), heap.join(", "))
    };
    format!("{{{}}}", readable.map(value).collect::<Vec<_>>().join(", "))
}

fn array_line(path: &str, array: &Array) -> String {
    let (error, chunks, nbytes, codecs) = match &array.segments {
        Err(problem) => (quoted(&problem.to_string()), 0, 0, Vec::new()),
        Ok(segments) => {
            let chunks = segments.iter().map(|segment| segment.manifest.chunk_count()).sum();
            let nbytes = segments.iter().map(|segment| segment.manifest.stored_nbytes()).sum();
            let codecs = segments.iter().flat_map(|segment| &segment.codecs);
            ("null".to_string(), chunks, nbytes, codecs.map(|codec| quoted(codec.name())).collect::<Vec<_>>())
        }
    };
    let shape = array.shape.as_ref().map_or("null".to_string(), |shape| format!("{shape:?}"));
    let dimensions = array.dimensions.iter().flatten().map(|name| quoted(name)).collect::<Vec<_>>();
    format!(
        "{{\"array\": {}, \"shape\": {shape}, \"nbytes\": {}, \"element\": {}, \"codecs\": [{}], \"chunks\": {chunks}, \
         \"stored\": {nbytes}, \"dimensions\": [{}], \"virtual\": {}, \"attributes\": {}, \"values\": {}, \
         \"error\": {error}}}",
        quoted(path),
        array.element.nbytes(),
        quoted(&format!("{:?}", array.element)),
        codecs.join(", "),
        dimensions.join(", "),
        array.virtual_mappings.len(),
        names(&array.attributes),
        values(&array.attributes),
    )
}

/// Every group and array, by the first path that leads to it, and every other link.
fn print(tree: &Tree, out: &mut impl Write) -> std::io::Result<()> {
    let mut seen_groups = vec![false; tree.groups.len()];
    let mut seen_arrays = vec![false; tree.arrays.len()];
    let mut queue = std::collections::VecDeque::from([(0, String::from("/"))]);
    while let Some((number, path)) = queue.pop_front() {
        if std::mem::replace(&mut seen_groups[number], true) {
            continue;
        }
        let group = &tree.groups[number];
        let attributes = (names(&group.attributes), values(&group.attributes));
        let path_text = quoted(&path);
        writeln!(
            out,
            "{{\"group\": {path_text}, \"attributes\": {}, \"values\": {}}}",
            attributes.0, attributes.1
        )?;
        for (name, link) in &group.links {
            let child = format!("{}/{name}", path.trim_end_matches('/'));
            match link {
                Link::Group(number) => queue.push_back((*number, child)),
                Link::Array(number) => {
                    if !std::mem::replace(&mut seen_arrays[*number], true) {
                        writeln!(out, "{}", array_line(&child, &tree.arrays[*number]))?;
                    }
                }
                other => {
                    let (link, kind) = (quoted(&child), quoted(&format!("{other:?}")));
                    writeln!(out, "{{\"link\": {link}, \"to\": {kind}}}")?;
                }
            }
        }
    }
    Ok(())
}

fn dump(path: &str, policy: Policy, out: &mut impl Write) -> Result<(), Box<dyn std::error::Error>> {
    let file = File::open(path)?;
    let length = file.metadata()?.len();
    let source = Local { file, length };
    let mut pages = Pages::new(&source, policy);
    let tree = hdf5::parse(&mut pages)?;
    print(&tree, out)?;
    let statistics = pages.statistics();
    writeln!(
        out,
        "{{\"rounds\": {}, \"requests\": {}, \"fetched\": {}, \"other_files\": {}}}",
        statistics.round_count,
        statistics.request_count,
        statistics.fetched_nbytes,
        tree.other_files.len()
    )?;
    Ok(())
}

fn main() {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    let remote = std::env::args().any(|argument| argument == "--remote");
    let policy = if remote { Policy::REMOTE } else { Policy::LOCAL };
    for path in std::env::args().skip(1).filter(|argument| !argument.starts_with("--")) {
        let _ = writeln!(out, "{{\"file\": {}}}", quoted(&path));
        if let Err(error) = dump(&path, policy, &mut out) {
            let _ = writeln!(out, "{{\"error\": {}}}", quoted(&error.to_string()));
        }
    }
}
