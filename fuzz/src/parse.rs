//! Runs a parser on any bytes: the result must be a tree or an error, in bounded memory.

use hyperslab_core::{Attribute, Link, Tree, Unreadable};
use hyperslab_parsers::{Error, Memory, Pages, Policy};

use crate::memory;

/// A parser of files.
pub type Parser = fn(&mut Pages<'_>) -> Result<Tree, Error>;

/// Pages so small that every structure lacks bytes at first.
const SMALL_PAGES: Policy = Policy { page_nbytes: 64, first_nbytes: 64, last_nbytes: 0, gap_pages: 0 };

/// How many bytes parsing a file of this length may hold.
pub fn allowance(length: usize) -> usize {
    (64 << 20) + 64 * length
}

/// A parser returns a tree or an error.
pub fn parse(parser: Parser, data: &[u8], policy: Policy) -> Result<Tree, Error> {
    let source = Memory(data);
    let tree = memory::bounded(allowance(data.len()), || parser(&mut Pages::new(&source, policy)));
    tree.inspect(|tree| check(tree, data.len() as u64))
}

/// The result does not depend on how the file is cut into pages.
pub fn parse_twice(parser: Parser, data: &[u8]) {
    let tree = parse(parser, data, Policy::LOCAL);
    if data.len() < 4096 {
        let again = parse(parser, data, SMALL_PAGES);
        assert!(tree.is_ok() == again.is_ok(), "{:?} but in small pages {:?}", tree.err(), again.err());
        if let (Ok(tree), Ok(again)) = (tree, again) {
            assert_eq!(without_reasons(tree), without_reasons(again), "in small pages");
        }
    }
}

/// A small file has few chunks, and links lead somewhere.
fn check(tree: &Tree, file_length: u64) {
    let segments = tree.arrays.iter().filter_map(|array| array.segments.as_ref().ok()).flatten();
    let chunk_count: u64 = segments.map(|segment| segment.manifest.chunk_count()).sum();
    assert!(chunk_count <= 16 * (file_length + 1), "{chunk_count} chunks of {file_length} bytes");
}

/// With several faults, the one that is found first depends on the pages.
fn without_reasons(mut tree: Tree) -> String {
    let arrays = tree.arrays.iter_mut();
    let mut reasons: Vec<&mut Unreadable> = Vec::new();
    let mut attributes: Vec<&mut Attribute> = Vec::new();
    for array in arrays {
        reasons.extend(array.segments.as_mut().err());
        attributes.extend(&mut array.attributes);
    }
    for group in &mut tree.groups {
        attributes.extend(&mut group.attributes);
        for (_, link) in &mut group.links {
            if let Link::Unreadable(reason) = link {
                reasons.push(reason);
            }
        }
    }
    reasons.extend(attributes.into_iter().filter_map(|attribute| attribute.value.as_mut().err()));
    reasons.into_iter().for_each(|reason| *reason = Unreadable::damaged(""));
    format!("{tree:?}")
}
