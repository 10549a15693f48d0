//! Damages files for tests: cuts them everywhere, and changes each byte (in runs of one value only the edges). Parsers
//! may return anything, but must return soon.

use hyperslab_core::Tree;

use crate::error::Error;
use crate::pages::{Memory, Pages, Policy};

const POLICY: Policy = Policy { page_nbytes: 64, first_nbytes: 64, last_nbytes: 0, gap_pages: 0 };

/// A parser of files.
pub(crate) type Parser = fn(&mut Pages<'_>) -> Result<Tree, Error>;

/// Parses bytes, in small pages so that there are many rounds.
pub(crate) fn parsed(parser: Parser, bytes: &[u8]) -> Result<Tree, Error> {
    let source = Memory(bytes);
    parser(&mut Pages::new(&source, POLICY))
}

/// Damages a file at every offset. The file itself must be good, and must stay small.
pub(crate) fn damage(parser: Parser, bytes: &[u8]) {
    assert!(parsed(parser, bytes).is_ok(), "the file must be good before it is damaged");
    let is_edge =
        |offset: usize| bytes.get(offset.saturating_sub(1)) != bytes.get(offset) || offset.is_multiple_of(64);
    for offset in (0..bytes.len()).filter(|&offset| is_edge(offset)) {
        bounded(parser, bytes.get(..offset).unwrap_or_default());
        for value in [0x00, 0x01, 0x7f, 0x80, 0xff] {
            let mut changed = bytes.to_vec();
            changed.iter_mut().skip(offset).take(1).for_each(|byte| *byte = value);
            bounded(parser, &changed);
            changed.iter_mut().skip(offset).take(8).for_each(|byte| *byte = value);
            bounded(parser, &changed);
        }
    }
}

fn bounded(parser: Parser, bytes: &[u8]) {
    let Ok(tree) = parsed(parser, bytes) else { return };
    let segments = tree.arrays.iter().filter_map(|array| array.segments.as_ref().ok()).flatten();
    let chunk_count: u64 = segments.map(|segment| segment.manifest.chunk_count()).sum();
    assert!(chunk_count <= 16 * (bytes.len() as u64 + 1), "{chunk_count} chunks of {} bytes", bytes.len());
}
