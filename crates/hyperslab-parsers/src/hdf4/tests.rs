//! Hand-made files: groups of the DFSD interface over every kind of special element, good and damaged.

use hyperslab_core::{ByteRange, Codec, StoredChunk, Unreadable, known};

use super::*;
use crate::hostile::{damage, parsed};

/// Objects by tag and reference number; `file` lays them out behind one block of descriptors.
type Objects = Vec<(u16, u16, Vec<u8>)>;

/// Tag 702 with the bit of special elements.
const SPECIAL_DATA: u16 = 0x42be;

fn shorts(numbers: &[u16]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

fn words(numbers: &[u32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_be_bytes()).collect()
}

/// A numeric data group of 6 by 4 shorts; its data are object 702/4.
fn group() -> Objects {
    vec![
        (106, 1, vec![1, 22, 16, 1]),
        (701, 2, [shorts(&[2]), words(&[6, 4]), shorts(&[106, 1, 106, 1, 106, 1])].concat()),
        (720, 3, shorts(&[701, 2, 702, 4])),
    ]
}

fn file(objects: &Objects, next: u32) -> Vec<u8> {
    let mut bytes = [vec![0x0e, 0x03, 0x13, 0x01], shorts(&[objects.len() as u16]), words(&[next])].concat();
    let mut offset = bytes.len() + 12 * objects.len();
    for (tag, reference, content) in objects {
        bytes.extend([shorts(&[*tag, *reference]), words(&[offset as u32, content.len() as u32])].concat());
        offset += content.len();
    }
    bytes.extend(objects.iter().flat_map(|(_, _, content)| content.clone()));
    bytes
}

fn offset_of(bytes: &[u8], tag: u16, reference: u16) -> u64 {
    let key = shorts(&[tag, reference]);
    let descriptor =
        bytes.get(10..).unwrap().chunks(12).find(|descriptor| descriptor.starts_with(&key)).unwrap();
    u64::from(u32::from_be_bytes(descriptor.get(4..8).unwrap().try_into().unwrap()))
}

fn segment(tree: &Tree) -> &hyperslab_core::Segment {
    &tree.arrays[0].segments.as_ref().unwrap()[0]
}

fn chunks(tree: &Tree) -> Vec<StoredChunk> {
    segment(tree).manifest.stored().collect()
}

fn linked(first: usize) -> Objects {
    let header = [shorts(&[1]), words(&[48, 16, 2]), shorts(&[10])].concat();
    let mut objects = group();
    objects.push((SPECIAL_DATA, 4, header));
    objects.push((20, 10, shorts(&[11, 12, 13])));
    objects.push((20, 11, shorts(&[0, 14, 0])));
    objects.push((20, 12, vec![1; first]));
    objects.push((1, 0, vec![0; 8])); // so that the blocks are not next to one another
    objects.push((20, 13, vec![2; 16]));
    objects.push((1, 0, vec![0; 8]));
    objects.push((20, 14, vec![3; 16]));
    objects
}

#[test]
fn contiguous_data() {
    let mut objects = group();
    objects.push((702, 4, vec![0; 48]));
    let bytes = file(&objects, 0);
    let tree = parsed(parse, &bytes).unwrap();
    assert_eq!(tree.groups[0].links[0].0, "Data-Set-3");
    assert_eq!(tree.arrays[0].shape, Some(vec![6, 4]));
    assert_eq!(chunks(&tree)[0].range, ByteRange { offset: offset_of(&bytes, 702, 4), length: 48 });
}

#[test]
fn data_too_short_are_named() {
    let mut objects = group();
    objects.push((702, 4, vec![0; 47]));
    let tree = parsed(parse, &file(&objects, 0)).unwrap();
    assert!(tree.arrays[0].segments.as_ref().unwrap_err().to_string().contains("47 bytes"));
}

#[test]
fn small_linked_blocks_are_inline() {
    let tree = parsed(parse, &file(&linked(16), 0)).unwrap();
    let expected = [vec![1; 16], vec![2; 16], vec![3; 16]].concat();
    assert_eq!(segment(&tree).manifest.state(0), hyperslab_core::ChunkState::Inline(&expected));
}

#[test]
fn a_first_block_has_its_own_length() {
    let tree = parsed(parse, &file(&linked(20), 0)).unwrap();
    let expected = [vec![1; 20], vec![2; 16], vec![3; 12]].concat();
    assert_eq!(segment(&tree).manifest.state(0), hyperslab_core::ChunkState::Inline(&expected));
}

#[test]
fn a_cycle_of_block_tables_is_named() {
    let mut objects = linked(16);
    objects.retain(|(tag, reference, _)| (*tag, *reference) != (20, 11));
    objects.push((20, 11, shorts(&[10])));
    let tree = parsed(parse, &file(&objects, 0)).unwrap();
    let Link::Unreadable(Unreadable::Damaged { problem: reason }) = &tree.groups[0].links[0].1 else {
        panic!("it was read")
    };
    assert!(reason.contains("back to itself"), "{reason}");
}

#[test]
fn blocks_larger_than_the_file_are_bounded() {
    let mut objects = vec![
        (106, 1, vec![1, 20, 8, 1]),
        (701, 2, [shorts(&[1]), words(&[u32::MAX]), shorts(&[106, 1])].concat()),
        (SPECIAL_DATA, 4, [shorts(&[1]), words(&[u32::MAX, 1 << 20, 2]), shorts(&[10])].concat()),
        (20, 10, shorts(&[0, 12, 13])),
        (20, 12, vec![1; 7]),
        (20, 13, vec![1; 7]),
    ];
    objects.extend((100..200).map(|reference| (720, reference, shorts(&[701, 2, 702, 4]))));
    let tree = parsed(parse, &file(&objects, 0)).unwrap();
    assert_eq!(tree.arrays.len(), 100);
    assert!(tree.arrays.iter().all(|array| array.segments.is_err()));
}

#[test]
fn arrays_of_one_name_get_numbers() {
    let mut names = HashMap::new();
    let given: Vec<String> =
        ["a", "a", "a_2", "a", "b/c"].iter().map(|name| free(&mut names, name)).collect();
    assert_eq!(given, ["a", "a_2", "a_2_2", "a_3", "b_c"]);
}

#[test]
fn deflated_data() {
    let mut objects = group();
    objects.push((SPECIAL_DATA, 4, [shorts(&[3, 0]), words(&[48]), shorts(&[7, 0, 4, 6])].concat()));
    objects.push((40, 7, vec![9; 11]));
    let bytes = file(&objects, 0);
    let tree = parsed(parse, &bytes).unwrap();
    assert_eq!(segment(&tree).codecs, [Codec::known(&known::zlib)]);
    assert_eq!(chunks(&tree)[0].range, ByteRange { offset: offset_of(&bytes, 40, 7), length: 11 });
}

fn chunked() -> Objects {
    let axes = words(&[0, 6, 4, 0, 4, 3]);
    let head =
        [vec![0], words(&[0, 48, 24, 2]), shorts(&[1962, 20, 0, 0]), words(&[2]), axes, words(&[2])].concat();
    let header = [shorts(&[5]), words(&[head.len() as u32 + 2]), head, vec![0xff, 0xfe]].concat();
    let counted = |text: &str| [shorts(&[text.len() as u16]), text.as_bytes().to_vec()].concat();
    let names = [counted("origin"), counted("chk_tag"), counted("chk_ref")].concat();
    let fields = shorts(&[12, 3, 24, 23, 23, 8, 2, 2, 0, 8, 10, 2, 1, 1]);
    let table =
        [shorts(&[0]), words(&[2]), fields, names, counted("table"), counted("_HDF_CHK_TBL_0")].concat();
    let record =
        |row: u32, column: u32, reference| [words(&[row, column]), shorts(&[61, reference])].concat();
    let mut objects = group();
    objects.push((SPECIAL_DATA, 4, header));
    objects.push((1962, 20, table));
    objects.push((1963, 20, [record(1, 0, 30), record(0, 1, 31)].concat()));
    objects.push((61, 30, vec![1; 24]));
    objects.push((61, 31, vec![2; 24]));
    objects
}

#[test]
fn chunked_data() {
    let bytes = file(&chunked(), 0);
    let tree = parsed(parse, &bytes).unwrap();
    assert_eq!(segment(&tree).grid.chunk_shape(), [4, 3]);
    assert_eq!(segment(&tree).fill, hyperslab_core::Fill::Value(vec![0xff, 0xfe]));
    let found: Vec<_> = chunks(&tree).iter().map(|chunk| (chunk.index, chunk.range.offset)).collect();
    assert_eq!(found, [(1, offset_of(&bytes, 61, 31)), (2, offset_of(&bytes, 61, 30))]);
}

#[test]
fn a_cycle_of_descriptor_blocks_is_named() {
    assert!(matches!(parsed(parse, &file(&group(), 4)), Err(Error::Cycle { offset: 4, .. })));
}

#[test]
fn damage_is_survived() {
    damage(parse, &file(&linked(16), 0));
    damage(parse, &file(&chunked(), 0));
}
