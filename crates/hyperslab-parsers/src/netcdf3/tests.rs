//! Hand-made headers, good and damaged.

use hyperslab_core::{ByteRange, StoredChunk};

use super::*;
use crate::hostile::{damage, parsed};

fn name(text: &str) -> Vec<u8> {
    let mut bytes = (text.len() as u32).to_be_bytes().to_vec();
    bytes.extend(text.as_bytes());
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// CDF-1: a fixed variable of 3 shorts, and record variables of the given types, with 5 elements in each record.
fn file(record_count: u32, kinds: &[u32], data_nbytes: usize) -> Vec<u8> {
    let mut bytes = [b"CDF\x01".to_vec(), words(&[record_count, 0x0A, 3])].concat();
    for (text, length) in [("time", 0), ("x", 5), ("y", 3)] {
        bytes.extend([name(text), words(&[length])].concat());
    }
    bytes.extend([words(&[0x0C, 1]), name("title"), words(&[2, 4]), b"made".to_vec()].concat());
    bytes.extend(words(&[0x0B, kinds.len() as u32 + 1]));
    bytes.extend([name("fixed"), words(&[1, 2, 0, 0, 3, 8, 1000])].concat());
    for (number, kind) in kinds.iter().enumerate() {
        let begin = 1008 + 100 * number as u32;
        bytes.extend([name("record"), words(&[2, 0, 1, 0, 0, *kind, 0, begin])].concat());
    }
    bytes.resize(1008 + data_nbytes, 0);
    bytes
}

fn chunks(tree: &Tree, array: usize) -> Vec<StoredChunk> {
    tree.arrays[array].segments.as_ref().unwrap()[0].manifest.stored().collect()
}

#[test]
fn a_fixed_variable_is_one_piece() {
    let tree = parsed(parse, &file(0, &[], 0)).unwrap();
    assert_eq!(tree.arrays[0].shape, Some(vec![3]));
    assert_eq!(chunks(&tree, 0)[0].range, ByteRange { offset: 1000, length: 6 });
    assert_eq!(tree.groups[0].attributes[0].value.as_ref().unwrap().bytes, b"made");
}

#[test]
fn records_of_several_variables_are_padded() {
    let tree = parsed(parse, &file(3, &[1, 3], 200)).unwrap(); // 5 bytes and 10 bytes: 8 + 12 a record
    let offsets = |array| chunks(&tree, array).iter().map(|chunk| chunk.range.offset).collect::<Vec<_>>();
    assert_eq!(offsets(1), [1008, 1028, 1048]);
    assert_eq!(offsets(2), [1108, 1128, 1148]);
    assert_eq!(tree.arrays[1].max_shape, [None, Some(5)]);
}

#[test]
fn a_lone_record_variable_is_not_padded() {
    let tree = parsed(parse, &file(3, &[1], 15)).unwrap();
    assert_eq!(chunks(&tree, 1)[0].range, ByteRange { offset: 1008, length: 15 });
}

#[test]
fn a_streamed_file_says_its_records_by_its_length() {
    let tree = parsed(parse, &file(u32::MAX, &[1], 22)).unwrap();
    assert_eq!(tree.arrays[1].shape, Some(vec![4, 5]));
}

#[test]
fn missing_records_are_named() {
    let tree = parsed(parse, &file(1_000_000, &[1, 3], 200)).unwrap();
    let problem = tree.arrays[1].segments.as_ref().unwrap_err();
    assert!(matches!(problem, hyperslab_core::Unreadable::Damaged { .. }), "{problem}");
}

/// CDF-5: one variable of doubles over dimensions of these lengths.
fn wide(lengths: &[u64], record_count: u64) -> Vec<u8> {
    let long = |number: u64| number.to_be_bytes().to_vec();
    let text = [long(1), b"x\0\0\0".to_vec()].concat();
    let mut bytes = [b"CDF\x05".to_vec(), long(record_count)].concat();
    bytes.extend([words(&[0x0A]), long(lengths.len() as u64)].concat());
    bytes.extend(lengths.iter().flat_map(|&length| [text.clone(), long(length)].concat()));
    bytes.extend([words(&[0]), long(0), words(&[0x0B]), long(1), text, long(lengths.len() as u64)].concat());
    bytes.extend((0..lengths.len() as u64).flat_map(long));
    bytes.extend([words(&[0]), long(0), words(&[6]), long(0), long(200)].concat());
    bytes.resize(400, 0);
    bytes
}

#[test]
fn lengths_that_no_file_has_are_named() {
    assert_eq!(parsed(parse, &wide(&[2, 3], 0)).unwrap().arrays[0].shape, Some(vec![2, 3]));
    let most = u64::MAX;
    for lengths in
        [vec![1 << 63], vec![most], vec![1 << 32, 1 << 32], vec![most; 5], vec![1 << 62, 0, 1 << 62]]
    {
        let tree = parsed(parse, &wide(&lengths, 0));
        assert!(tree.as_ref().map_or(true, |tree| tree.arrays[0].segments.is_err()), "{lengths:?} {tree:?}");
    }
    for record_count in [1 << 61, 1 << 63, most - 1] {
        let tree = parsed(parse, &wide(&[0, 3], record_count));
        assert!(tree.map_or(true, |tree| tree.arrays[0].segments.is_err()), "{record_count}");
    }
}

#[test]
fn damage_is_survived() {
    damage(parse, &file(3, &[1, 3], 200));
}

#[test]
fn long_headers_take_few_rounds() {
    let mut bytes =
        [b"CDF\x01".to_vec(), words(&[0, 0, 0, 0x0C, 1]), name("long"), words(&[1, 900_000])].concat();
    bytes.resize(bytes.len() + 900_000, 7);
    bytes.extend(words(&[0, 0]));
    let source = crate::Memory(&bytes);
    for policy in [crate::Policy::LOCAL, crate::Policy::REMOTE] {
        let mut pages = Pages::new(&source, policy);
        assert!(parse(&mut pages).is_ok());
        assert!(pages.statistics().round_count <= 3);
    }
}
