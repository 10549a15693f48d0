//! Whole files, opened, planned and read without Python, give the same values as h5py, netCDF4 and zarr.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)] // its `main`
#[path = "../examples/read.rs"]
mod example;
mod samples;

use std::sync::Arc;

use hyperslab_archive::{Archive, ArchiveArray, ArraySelection, Error, OpenOptions, ReadOptions};
use hyperslab_core::{AxisIndices, AxisSelection, Orthogonal};

use samples::{Expected, ExpectedArray, sha256};

#[test]
fn arrays_hold_what_others_read_of_them() {
    let Some(directory) = samples::directory() else { return };
    let (mut array_count, mut refused_count, mut faults) = (0, 0, Vec::new());
    for Expected { file, arrays } in samples::expected(&directory) {
        let archive = match Archive::open(&file, &OpenOptions::default()) {
            Ok(archive) => Arc::new(archive),
            Err(error) => {
                faults.push(error.to_string());
                continue;
            }
        };
        for expected in &arrays {
            array_count += 1;
            match compared(&archive, expected) {
                Ok(()) => {}
                // A filter whose decoder is an h5py plugin. We only need to name it.
                Err(fault) if fault.ends_with("is not supported") => refused_count += 1,
                Err(fault) => faults.push(format!("{}: {}: {fault}", file.display(), expected.path)),
            }
        }
    }
    assert!(faults.is_empty(), "{} of {array_count} arrays:\n{}", faults.len(), faults.join("\n"));
    assert!(
        array_count > 0 && refused_count * 100 <= array_count,
        "{refused_count} of {array_count} refused"
    );
}

fn compared(archive: &Arc<Archive>, expected: &ExpectedArray) -> Result<(), String> {
    let said = |error: Error| error.to_string();
    let array = ArchiveArray::at(archive, &expected.path).map_err(said)?.ok_or("there is no such array")?;
    let shape = array.shape().map_err(said)?.unwrap_or_default();
    if shape != expected.shape {
        return Err(format!("its shape is {shape:?}, not {:?}", expected.shape));
    }
    let all = Orthogonal::all(&shape).map_err(|error| error.to_string())?;
    for (selection, sha) in [(all, &expected.sha256), (expected.part(), &expected.part_sha256)] {
        let nbytes = array.plan(&selection).map_err(said)?.totals().output_nbytes;
        let mut bytes = vec![0xaa; usize::try_from(nbytes).unwrap()];
        let read = array.read_into(&ArraySelection::Axes(selection), &mut bytes, ReadOptions::default());
        read.map_err(said)?;
        if sha256(&bytes) != *sha {
            return Err(format!("{nbytes} bytes that others read otherwise"));
        }
    }
    Ok(())
}

/// Reads as a library on behalf of others would: many threads, each with a list of hyperslabs and one buffer.
#[test]
fn threads_read_lists_of_hyperslabs_into_their_buffers() {
    let Some(directory) = samples::directory() else { return };
    let archive = Archive::open(&directory.join("virtual.h5"), &OpenOptions::default()).unwrap();
    let array = ArchiveArray::at(&Arc::new(archive), "shown").unwrap().unwrap();
    let rows = |start: u64| {
        let axes = [(start, 10), (3, 50)].into_iter().enumerate();
        let axes = axes.map(|(axis, (start, count))| AxisSelection::new(axis, start, 1, count, 1).unwrap());
        Orthogonal::new(axes.map(AxisIndices::Regular).collect()).unwrap()
    };
    let mut expected = vec![0_u8; 100 * 100 * 4];
    let all = ArraySelection::Axes(Orthogonal::all(&[100, 100]).unwrap());
    array.read_into(&all, &mut expected, ReadOptions::default()).unwrap();
    let expected =
        expected.chunks_exact(400).flat_map(|row| row[3 * 4..53 * 4].to_vec()).collect::<Vec<u8>>();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut buffer = vec![0_u8; 100 * 50 * 4];
                let parts = buffer.chunks_exact_mut(10 * 50 * 4);
                let mut reads: Vec<_> = (0..)
                    .step_by(10)
                    .zip(parts)
                    .map(|(row, part)| (ArraySelection::Axes(rows(row)), part))
                    .collect();
                array
                    .read_each(
                        &mut reads,
                        ReadOptions { thread_count: Some(2), is_reused: true, keeps_bytes: false },
                    )
                    .unwrap();
                assert!(buffer == expected);
            });
        }
    });
}

#[test]
fn a_list_with_a_hyperslab_outside_the_array_reads_nothing() {
    let Some(directory) = samples::directory() else { return };
    let archive = Archive::open(&directory.join("latest.h5"), &OpenOptions::default()).unwrap();
    let array = ArchiveArray::at(&Arc::new(archive), "contiguous").unwrap().unwrap();
    let row = |start: u64, out| {
        let axes = [(start, 1), (0, 100)].into_iter().enumerate();
        let axes = axes.map(|(axis, (start, count))| AxisSelection::new(axis, start, 1, count, 1).unwrap());
        (ArraySelection::Axes(Orthogonal::new(axes.map(AxisIndices::Regular).collect()).unwrap()), out)
    };
    let (mut first, mut second) = (vec![0xaa; 400], vec![0xaa; 400]);
    let mut reads = [row(0, first.as_mut_slice()), row(60, second.as_mut_slice())];
    let error = array.read_each(&mut reads, ReadOptions::default()).unwrap_err();
    assert!(error.to_string().contains("index 60 is outside an array of length 60"), "{error}");
    assert_eq!(first, [0xaa; 400]);
}

#[test]
fn the_example_lists_plans_and_reads() {
    let Some(directory) = samples::directory() else { return };
    let file = directory.join("latest.h5").to_str().unwrap().to_owned();
    let run = |arguments: &[&str]| {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let mut out = Vec::new();
        example::run(&arguments, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    };
    let listed = run(&[&file]);
    assert!(listed.contains(": hdf5\n") && listed.contains("  sparse Some([1000, 1000])\n"), "{listed}");
    let read = run(&[&file, "chunked", "1:9:2,10:20"]);
    assert!(read.starts_with("chunked: shape [4, 10], 2 chunks, "), "{read}");
    assert!(read.ends_with("first bytes: 6e 00 00 00 6f 00 00 00 70 00 00 00 71 00 00 00\n"), "{read}");
}
