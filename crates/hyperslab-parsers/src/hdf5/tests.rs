//! Small hand-made files that no library writes but a parser must survive.

use hyperslab_core::{ByteOrder, Element, Link, Tree, Unreadable};

use super::{is_hdf5, lookup3, parse, resolve};
use crate::error::Error;
use crate::pages::{Memory, Pages, Policy};

/// A version 2 superblock with addresses and lengths of eight bytes, followed by the root's header.
fn superblock(user_block: usize) -> Vec<u8> {
    let mut bytes = vec![0_u8; user_block];
    bytes.extend(b"\x89HDF\r\n\x1a\n\x02\x08\x08\x00");
    for address in [0, u64::MAX, 4096, 48] {
        bytes.extend(u64::to_le_bytes(address));
    }
    bytes.extend(lookup3::lookup3(&bytes[user_block..]).to_le_bytes());
    bytes
}

/// A version 1 message of an object header.
fn message(kind: u16, body: &[u8]) -> Vec<u8> {
    let length = u16::try_from(body.len()).unwrap_or(u16::MAX);
    let mut bytes = [kind.to_le_bytes(), length.to_le_bytes(), [0; 2], [0; 2]].concat();
    bytes.extend(body);
    bytes
}

/// A version 1 object header that claims to be `length` bytes long.
fn header(messages: &[Vec<u8>], length: Option<u32>) -> Vec<u8> {
    let content = messages.concat();
    let length = length.unwrap_or_else(|| u32::try_from(content.len()).unwrap_or(u32::MAX));
    let mut bytes = vec![1, 0, 1, 0, 1, 0, 0, 0];
    bytes.extend(length.to_le_bytes());
    bytes.extend([0; 4]);
    bytes.extend(content);
    bytes
}

fn file(messages: &[Vec<u8>]) -> Vec<u8> {
    [superblock(0), header(messages, None)].concat()
}

fn read(bytes: &[u8]) -> Result<Tree, Error> {
    let source = Memory(bytes);
    parse(&mut Pages::new(
        &source,
        Policy { page_nbytes: 16, first_nbytes: 16, last_nbytes: 0, gap_pages: 0 },
    ))
}

/// A link message: version 1, no flags, a name of three bytes.
fn link(name: [u8; 3], address: u64) -> Vec<u8> {
    let mut body = vec![1, 0, 3];
    body.extend(name);
    body.extend(address.to_le_bytes());
    message(0x06, &body)
}

const SCALAR: &[u8] = &[2, 0, 0, 0];
const I4: &[u8] = &[0x10, 8, 0, 0, 4, 0, 0, 0, 0, 0, 32, 0];

/// A dataspace of one axis.
fn line(length: u64) -> Vec<u8> {
    let mut body = vec![2, 1, 0, 1];
    body.extend(length.to_le_bytes());
    message(0x01, &body)
}

/// A root group with one link, to the array described by these messages.
fn one_array(messages: &[Vec<u8>]) -> Vec<u8> {
    let root = header(&[link(*b"one", 256)], None);
    let mut bytes = [superblock(0), root].concat();
    bytes.resize(256, 0);
    bytes.extend(header(messages, None));
    bytes.resize(bytes.len() + 64, 7);
    bytes
}

#[test]
fn the_signature_is_found_behind_user_blocks() {
    for user_block in [0, 512, 1024, 2048] {
        let source = Memory(&superblock(user_block));
        assert_eq!(is_hdf5(&mut Pages::new(&source, Policy::LOCAL)), Ok(true));
    }
    for bytes in [superblock(256), Vec::new(), vec![0; 5000]] {
        let source = Memory(&bytes);
        assert_eq!(is_hdf5(&mut Pages::new(&source, Policy::LOCAL)), Ok(false));
    }
}

#[test]
fn addresses_count_from_the_superblock() {
    let bytes = [superblock(512), header(&[link(*b"one", 48)], None)].concat();
    assert_eq!(read(&bytes).map(|tree| tree.groups[0].links[0].clone()), Ok(("one".into(), Link::Group(0))));
}

#[test]
fn a_superblock_with_a_wrong_checksum_is_refused() {
    let mut bytes = file(&[link(*b"one", 48)]);
    bytes[12] ^= 1;
    assert!(cfg!(fuzzing) || matches!(read(&bytes), Err(Error::Checksum { .. })));
}

#[test]
fn every_truncation_is_an_error_or_less() {
    let bytes = one_array(&[
        line(4),
        message(0x03, I4),
        message(0x08, &[3, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]),
    ]);
    assert_eq!(read(&bytes).map(|tree| tree.arrays.len()), Ok(1));
    for length in 0..bytes.len() {
        if let Ok(tree) = read(&bytes[..length]) {
            assert!(tree.arrays.len() == 1 || matches!(tree.groups[0].links[0].1, Link::Unreadable(_)));
        }
    }
}

#[test]
fn a_group_may_hold_itself() {
    let tree = read(&file(&[link(*b"me_", 48)])).unwrap_or_default();
    assert_eq!((tree.groups.len(), &tree.groups[0].links[0].1), (1, &Link::Group(0)));
}

#[test]
fn continuations_that_lead_back_are_refused() {
    let continuation = [64_u64.to_le_bytes(), 24_u64.to_le_bytes()].concat();
    let found = read(&file(&[message(0x10, &continuation)]));
    assert!(found.is_err_and(|error| error.to_string().contains("leads back to itself")));
}

/// An old-style root group. The node of its B-tree is at 512 and has these children.
fn old_group(children: &[u64]) -> Vec<u8> {
    let put = |bytes: &mut Vec<u8>, offset: usize, content: Vec<u8>| {
        bytes.resize(offset, 0);
        bytes.extend(content);
    };
    let words = |words: &[u64]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut bytes = file(&[message(0x11, &words(&[512, 256]))]);
    put(&mut bytes, 256, [b"HEAP\0\0\0\0".to_vec(), words(&[16, u64::MAX, 288])].concat());
    put(&mut bytes, 288, b"one\0\0\0\0\0two\0\0\0\0\0".to_vec());
    let links = [words(&[0, 48, 0, 0, 0]), words(&[8, 48, 0, 0, 0])].concat();
    put(&mut bytes, 320, [b"SNOD\x01\0\x02\0".to_vec(), links].concat());
    let count = u16::try_from(children.len()).unwrap_or(u16::MAX).to_le_bytes();
    let head = [&b"TREE\0\0"[..], &count[..], &[0xff; 16]].concat();
    let entries = children.iter().flat_map(|child| words(&[0, *child])).collect();
    put(&mut bytes, 512, [head, entries, words(&[0])].concat());
    bytes
}

#[test]
fn nodes_of_a_group_are_read_once() {
    let links = read(&old_group(&[320])).map(|tree| tree.groups[0].links.clone()).unwrap_or_default();
    assert_eq!(links, [("one".to_owned(), Link::Group(0)), ("two".to_owned(), Link::Group(0))]);
    for children in [vec![512], vec![320, 320], vec![512; 3000]] {
        let found = read(&old_group(&children));
        assert!(found.is_err_and(|error| error.to_string().contains("leads back to itself")));
    }
}

#[test]
fn a_header_longer_than_the_file_is_an_error() {
    let bytes = [superblock(0), header(&[link(*b"one", 48)], Some(1 << 20))].concat();
    assert!(read(&bytes).is_err_and(|error| error.to_string().contains("truncated")));
}

#[test]
fn a_damaged_object_is_only_its_own_damage() {
    let mut bytes = [superblock(0), header(&[link(*b"bad", 8), link(*b"own", 48)], None)].concat();
    bytes.resize(200, 0);
    let links = read(&bytes).map(|tree| tree.groups[0].links.clone()).unwrap_or_default();
    assert!(matches!(&links[..], [(_, Link::Unreadable(Unreadable::Damaged { .. })), (_, Link::Group(0))]));
}

fn array_problem(messages: &[Vec<u8>]) -> String {
    let tree = read(&one_array(messages)).unwrap_or_default();
    match &tree.groups[0].links[0].1 {
        Link::Array(number) => {
            tree.arrays[*number].segments.clone().err().map_or_else(String::new, |error| error.to_string())
        }
        other => format!("{other:?}"),
    }
}

#[test]
fn sizes_that_lie_are_refused_by_name() {
    let contiguous = |address: u64, length: u64| {
        let body = [vec![3, 1], address.to_le_bytes().into(), length.to_le_bytes().into()].concat();
        message(0x08, &body)
    };
    let element = message(0x03, I4);
    let problem = |shape: u64, layout: Vec<u8>| array_problem(&[line(shape), element.clone(), layout]);
    assert_eq!(problem(4, contiguous(16, 16)), "");
    assert!(problem(4, contiguous(16, 15)).contains("15 bytes are stored, but 16 are needed"));
    assert!(problem(1 << 40, contiguous(16, 1 << 42)).contains("past the end"));
    assert!(problem(1 << 62, contiguous(16, u64::MAX)).contains("2^64"));
    assert!(problem(4, message(0x08, &[3, 0, 200, 0])).contains("it ends before the next"));
    assert!(problem(4, message(0x08, &[9, 0])).contains("version 9 is not supported"));
}

#[test]
fn datatypes_nested_without_end_are_refused() {
    let sequence = [0x19, 0, 0, 0, 16, 0, 0, 0].repeat(4000);
    let layout = message(0x08, &[3, 0, 0, 0]);
    let found = array_problem(&[message(0x01, SCALAR), message(0x03, &sequence), layout]);
    assert!(found.contains("datatypes within datatypes"), "{found}");
}

#[test]
fn pointers_into_a_collection_are_followed() {
    let mut bytes = superblock(0);
    let (start, text) = (bytes.len() as u64, b"some text");
    bytes.extend(b"GCOL\x01\0\0\0");
    bytes.extend(64_u64.to_le_bytes());
    bytes.extend([7, 0, 1, 0, 0, 0, 0, 0]);
    bytes.extend((text.len() as u64).to_le_bytes());
    bytes.extend(text);
    bytes.resize(bytes.len() + 64, 0);
    let pointer = |length: u32, address: u64, index: u32| {
        [length.to_le_bytes().to_vec(), address.to_le_bytes().into(), index.to_le_bytes().into()].concat()
    };
    let source = Memory(&bytes);
    let mut pages =
        Pages::new(&source, Policy { page_nbytes: 16, first_nbytes: 16, last_nbytes: 0, gap_pages: 0 });
    let raw = [pointer(9, start, 7), pointer(0, 0, 0), pointer(9, start, 7)].concat();
    let order = ByteOrder::Little;
    let sequences = Element::Vlen { nbytes: 16, element: Box::new(Element::integer(1, false, order)) };
    let mut followed = |raw: &[u8]| resolve(&mut pages, &sequences, raw);
    assert_eq!(followed(&raw), Ok(vec![text.to_vec(), Vec::new(), text.to_vec()]));
    assert!(followed(&pointer(9, start, 8)).is_err());
    assert!(followed(&pointer(9, start + 8, 7)).is_err());
    // An object has exactly the bytes of the elements that its pointer claims; each pointer takes sixteen.
    let nested = Element::Vlen { nbytes: 16, element: Box::new(sequences.clone()) };
    for (element, length) in [(&sequences, 8), (&sequences, 10), (&nested, 9), (&nested, 1)] {
        let found = resolve(&mut pages, element, &pointer(length, start, 7));
        assert!(found.is_err_and(|error| error.to_string().contains("object 7 has 9 bytes")));
    }
}

#[test]
fn a_root_that_is_no_group_is_refused() {
    let layout = message(0x08, &[3, 0, 4, 0, 1, 2, 3, 4]);
    let found = read(&file(&[message(0x01, SCALAR), message(0x03, I4), layout]));
    assert!(found.is_err_and(|error| error.to_string().contains("not a group")));
}
