//! Prints every stored chunk of an HDF5 file, for `tests/engine/compare_chunks.py`:
//! `array-path linear-index offset length filter-mask`.

use std::collections::{BTreeSet, VecDeque};
use std::io::Write;

use hyperslab_core::{Array, Link, Tree};
use hyperslab_parsers::{Memory, Pages, Policy, hdf5};

fn print_array(path: &str, array: &Array, out: &mut impl Write) -> std::io::Result<()> {
    let segments = match &array.segments {
        Ok(segments) => segments,
        Err(problem) => {
            eprintln!("{path}: {problem}");
            return Ok(());
        }
    };
    for chunk in segments.iter().flat_map(|segment| segment.manifest.stored()) {
        let range = chunk.range;
        writeln!(out, "{path} {} {} {} {}", chunk.index, range.offset, range.length, chunk.filter_mask)?;
    }
    Ok(())
}

/// Every array, by the first path that leads to it.
fn print(tree: &Tree, out: &mut impl Write) -> std::io::Result<()> {
    let mut seen = BTreeSet::new();
    let mut queue = VecDeque::from([(Link::Group(0), String::new())]);
    while let Some((link, path)) = queue.pop_front() {
        match link {
            Link::Group(number) if seen.insert((0, number)) => {
                let links = tree.groups.get(number).into_iter().flat_map(|group| &group.links);
                queue.extend(links.map(|(name, link)| (link.clone(), format!("{path}/{name}"))));
            }
            Link::Array(number) if seen.insert((1, number)) => {
                tree.arrays.get(number).map_or(Ok(()), |array| print_array(&path, array, out))?;
            }
            _ => {}
        }
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut out = std::io::BufWriter::new(std::io::stdout().lock());
    for path in std::env::args().skip(1) {
        let file = std::fs::read(&path)?;
        let source = Memory(&file);
        print(&hdf5::parse(&mut Pages::new(&source, Policy::LOCAL))?, &mut out)?;
    }
    Ok(())
}
