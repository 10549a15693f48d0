//! Lists the arrays of a file, or plans and reads a selection of one of them.
//!
//! ```text
//! cargo run -p hyperslab-archive --example read -- FILE
//! cargo run -p hyperslab-archive --example read -- FILE ARRAY 0:10,5:100:3
//! ```

use std::error::Error;
use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use hyperslab_archive::{Archive, ArchiveArray, ArraySelection, OpenOptions, ReadOptions};
use hyperslab_core::{AxisIndices, AxisSelection, Orthogonal};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    run(&arguments, &mut std::io::stdout())
}

/// Does what the arguments ask for, and prints to `out`.
pub fn run(arguments: &[String], out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    let [file, rest @ ..] = arguments else { return Err("usage: read FILE [ARRAY [SELECTION]]".into()) };
    let archive = Arc::new(Archive::open(Path::new(file), &OpenOptions::default())?);
    match rest {
        [] => list(&archive, out),
        [path] => read(&archive, path, "", out),
        [path, selection, ..] => read(&archive, path, selection, out),
    }
}

fn list(archive: &Archive, out: &mut dyn Write) -> Result<(), Box<dyn Error>> {
    writeln!(out, "{}: {}", archive.name(), archive.format().name())?;
    for (path, array) in archive.array_paths().into_iter().zip(&archive.tree().arrays) {
        writeln!(out, "  {} {:?}", path.unwrap_or_else(|| "(no path)".to_owned()), array.shape)?;
    }
    Ok(())
}

fn read(
    archive: &Arc<Archive>,
    path: &str,
    selection: &str,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let array = ArchiveArray::at(archive, path)?.ok_or_else(|| format!("there is no array {path}"))?;
    let shape = array.shape()?.ok_or("the array has no elements")?;
    let selection = parse(selection, &shape)?;
    let plan = array.plan(&selection)?;
    let totals = plan.totals();
    writeln!(
        out,
        "{path}: shape {:?}, {} chunks, {} requests, {} bytes fetched, {} bytes of output",
        plan.shape(),
        totals.chunk_count,
        totals.request_count,
        totals.fetched_nbytes,
        totals.output_nbytes
    )?;
    let mut bytes = vec![0; usize::try_from(totals.output_nbytes)?];
    array.read_into(&ArraySelection::Axes(selection), &mut bytes, ReadOptions::default())?;
    let first: Vec<String> = bytes.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    writeln!(out, "first bytes: {}", first.join(" "))?;
    Ok(())
}

/// `start:stop:step` for each axis, separated by commas. Omitted axes are read completely.
fn parse(selection: &str, shape: &[u64]) -> Result<Orthogonal, Box<dyn Error>> {
    let mut given = selection.split(',');
    let axes = shape.iter().enumerate().map(|(axis, &length)| {
        let mut numbers = given.next().unwrap_or_default().split(':');
        let mut number = |default: u64| match numbers.next().unwrap_or_default() {
            "" => Ok(default),
            text => text.parse::<u64>(),
        };
        let (start, stop, step) = (number(0)?, number(length)?.min(length), number(1)?.max(1));
        let count = stop.saturating_sub(start).div_ceil(step);
        Ok(AxisIndices::Regular(AxisSelection::new(axis, start, step, count, 1)?))
    });
    Ok(Orthogonal::new(axes.collect::<Result<Vec<_>, Box<dyn Error>>>()?)?)
}
