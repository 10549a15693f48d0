//! Mappings as HDF5 1.10 to 2.0 write them, and damaged ones.

#![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

use std::borrow::Cow;

use super::super::lookup3::lookup3;
use super::*;

const SIZES: Sizes = Sizes { offset: 8, length: 8, base: 0 };
const ALL: [u8; 16] = [3, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

fn read(parts: &[&[u8]]) -> Result<Vec<VirtualMapping>, Error> {
    let mut bytes = parts.concat();
    bytes.extend(lookup3(&bytes).to_le_bytes());
    read_mappings(&bytes, 99, SIZES).map(|read| read.iter().map(Cow::into_owned).collect())
}

fn selection(bytes: &[u8]) -> Result<VirtualSelection, Error> {
    read(&[&[0, 1, 0, 0, 0, 0, 0, 0, 0], b"f\0d\0", &ALL, bytes]).map(|mappings| mappings[0].target.clone())
}

fn axis(start: u64, stride: u64, count: Option<u64>, block: Option<u64>) -> VirtualAxis {
    VirtualAxis { start, stride, count, block }
}

#[test]
fn names_shared_since_version_1() {
    let count = [1, 4, 0, 0, 0, 0, 0, 0, 0];
    let shared = |number: u64| number.to_le_bytes();
    let entries: [&[u8]; 4] = [b"\0one\0p\0", &[1], &[2, b't', 0], &[4, b'q', 0]];
    let numbers: [&[u8]; 4] = [&[], &shared(0), &shared(1), &[]];
    let last: [&[u8]; 4] = [&[], b"q\0", &[], &[]];
    let parts: Vec<&[u8]> = std::iter::once(&count[..])
        .chain((0..4).flat_map(|entry| [entries[entry], numbers[entry], last[entry], &ALL[..], &ALL[..]]))
        .collect();
    let names: Vec<_> =
        read(&parts).unwrap().iter().map(|m| (m.file.to_string(), m.path.to_string())).collect();
    let expected = [("one", "p"), ("one", "q"), ("t", "q"), (".", "q")];
    assert_eq!(names, expected.map(|(file, path)| (file.to_owned(), path.to_owned())));
}

#[test]
fn a_name_shared_with_a_later_entry() {
    let number = 1_u64.to_le_bytes();
    let error =
        read(&[&[1, 2, 0, 0, 0, 0, 0, 0, 0], b"\0f\0p\0", &ALL, &ALL, &[1], &number, b"q\0", &ALL, &ALL]);
    assert!(matches!(error, Err(Error::Invalid { .. })));
}

#[test]
fn regular_selections() {
    let words = |numbers: &[u64]| numbers.iter().flat_map(|n| n.to_le_bytes()).collect::<Vec<u8>>();
    let old =
        [&b"\x02\0\0\0\x02\0\0\0\x01\x44\0\0\0\x02\0\0\0"[..], &words(&[3, 2, 4, 1, 0, 1, 1, u64::MAX])]
            .concat();
    let expected = vec![axis(3, 2, Some(4), Some(1)), axis(0, 1, Some(1), None)];
    assert_eq!(selection(&old), Ok(VirtualSelection::Regular(expected)));
    let new = b"\x02\0\0\0\x03\0\0\0\x01\x02\x01\0\0\0\x05\0\x02\0\xff\xff\x02\0";
    let target = selection(new).unwrap();
    assert_eq!(target, VirtualSelection::Regular(vec![axis(5, 2, None, Some(2))]));
    assert_eq!(target.unlimited_axis(), Some(0));
}

#[test]
fn boxes_and_points() {
    let boxes = VirtualSelection::Boxes(vec![
        VirtualBox { start: vec![0, 0], stop: vec![1, 3] },
        VirtualBox { start: vec![3, 1], stop: vec![5, 3] },
    ]);
    let numbers = [2_u32, 0, 0, 0, 2, 3, 1, 4, 2];
    let old: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
    let old = [&b"\x02\0\0\0\x01\0\0\0\0\0\0\0\x28\0\0\0\x02\0\0\0"[..], &old].concat();
    assert_eq!(selection(&old), Ok(boxes.clone()));
    let new = b"\x02\0\0\0\x03\0\0\0\0\x02\x02\0\0\0\x02\0\0\0\0\0\0\0\x02\0\x03\0\x01\0\x04\0\x02\0";
    assert_eq!(selection(new), Ok(boxes));
    let points = VirtualSelection::Points(Points::new(1, vec![7, 5]).unwrap());
    assert_eq!(selection(b"\x01\0\0\0\x02\0\0\0\x02\x01\0\0\0\x02\0\x07\0\x05\0"), Ok(points));
    assert_eq!(selection(&[0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]), Ok(VirtualSelection::Nothing));
}

#[test]
fn damaged_selections() {
    let bad: [&[u8]; 8] = [
        b"\x02\0\0\0\x03\0\0\0\x01\x02\x01\0\0\0\x05\0\x01\0\x03\0\x02\0", // blocks that overlap
        b"\x02\0\0\0\x03\0\0\0\x01\x02\x00\0\0\0",                         // no axes
        b"\x02\0\0\0\x03\0\0\0\x01\x02\xff\xff\xff\xff",                   // too many axes
        b"\x02\0\0\0\x03\0\0\0\x01\x03\x01\0\0\0\x05\0\x01\0\x01\0\x01\0", // numbers of three bytes
        b"\x02\0\0\0\x03\0\0\0\0\x02\x01\0\0\0\xff\xff\x05\0\x06\0",       // boxes that end too soon
        b"\x02\0\0\0\x03\0\0\0\0\x02\x01\0\0\0\x01\0\x06\0\x05\0",         // a box that ends before it starts
        b"\x01\0\0\0\x02\0\0\0\x08\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff", // points without end
        b"\x07\0\0\0\x01\0\0\0",                                           // an unknown kind
    ];
    for bytes in bad {
        assert!(selection(bytes).is_err(), "{bytes:?}");
    }
}

#[test]
fn damaged_mappings() {
    let count = |count: u64| count.to_le_bytes();
    assert!(matches!(read_mappings(&[0; 20], 99, SIZES), Err(Error::Checksum { offset: 99, .. })));
    assert!(matches!(read(&[&[2], &count(0)]), Err(Error::Unsupported { .. })));
    assert!(matches!(read(&[&[0], &count(u64::MAX)]), Err(Error::Invalid { .. })));
    assert!(matches!(read(&[&[0], &count(1), b"name without end"]), Err(Error::Invalid { .. })));
    assert!(matches!(read(&[&[0], &count(1), b"\xff\0d\0", &ALL, &ALL]), Err(Error::Unsupported { .. })));
    assert!(matches!(read(&[&[1], &count(1), b"\x05\0d\0", &ALL, &ALL]), Err(Error::Unsupported { .. })));
    assert_eq!(read(&[&[0], &count(0)]), Ok(Vec::new()));
}

/// A box in version 1.
fn one_box(first: &[u32], last: &[u32]) -> Vec<u8> {
    let ndim = u32::try_from(first.len()).unwrap();
    let words = [&[2, 1, 0, 8 * ndim + 8, ndim, 1], first, last].concat();
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

#[test]
fn boxes_of_one_array_are_numbers() {
    let count = [0, 3, 0, 0, 0, 0, 0, 0, 0];
    let names = b".\0/data/raw\0";
    let boxes = [
        (one_box(&[4, 0], &[5, 2]), one_box(&[0, 0], &[1, 2])),
        (one_box(&[0, 0], &[1, 1]), one_box(&[0, 3], &[1, 4])),
        (one_box(&[9, 0], &[9, 2]), one_box(&[u32::MAX, 0], &[u32::MAX, 2])),
    ];
    let block = |names: [&[u8]; 3], boxes: &[(Vec<u8>, Vec<u8>); 3]| {
        let entries =
            boxes.iter().zip(names).flat_map(|((source, target), names)| [names, source, target].concat());
        let mut bytes: Vec<u8> = count.into_iter().chain(entries).collect();
        bytes.extend(lookup3(&bytes).to_le_bytes());
        bytes
    };
    // Both ways give the same result, both for what they can read and for what they cannot.
    let both = |bytes: &[u8]| {
        let quick = read_mappings(bytes, 0, SIZES);
        let is_quick = matches!(quick, Ok(VirtualMappings::Boxes(_)));
        let mut cursor = Cursor::new(MAPPINGS, 0, &bytes[..bytes.len() - 4]);
        cursor.skip(9).unwrap();
        let count = u64::from_le_bytes(*bytes[1..].first_chunk().unwrap());
        let slow = read_each(cursor, 0, count, SIZES);
        let quick = quick.map(|read| read.iter().map(Cow::into_owned).collect::<Vec<_>>());
        assert_eq!(quick, slow);
        (is_quick, quick.map(|read| read.len()))
    };
    let whole = block([names; 3], &boxes);
    assert_eq!(both(&whole), (true, Ok(3)));
    // One with another name, one of another shape, one that ends before it starts.
    let other = block([names, names, b".\0/data/rew\0"], &boxes);
    assert_eq!(both(&other), (false, Ok(3)));
    let mut turned = boxes.clone();
    turned[1].0 = one_box(&[0, 0], &[3, 0]);
    assert_eq!(both(&block([names; 3], &turned)), (false, Ok(3)));
    turned[1].0 = one_box(&[2, 0], &[1, 1]);
    let (is_quick, read) = both(&block([names; 3], &turned));
    assert!(!is_quick && matches!(read, Err(Error::Invalid { .. })));
    // Every single-byte change, with a matching checksum.
    for offset in 1..whole.len() - 4 {
        for bits in [1, 0x80] {
            let mut damaged = whole[..whole.len() - 4].to_vec();
            damaged[offset] ^= bits;
            damaged.extend(lookup3(&damaged).to_le_bytes());
            drop(both(&damaged));
        }
    }
}
