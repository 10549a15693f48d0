//! References: whatever the bytes, tables and manifests or errors, in bounded memory.

use hyperslab_parsers::Memory;
use hyperslab_parsers::references::References;

use crate::memory;
use crate::parse::allowance;

/// The tables, then the manifests of each array.
pub fn references(data: &[u8]) {
    let source = Memory(data);
    memory::bounded(allowance(data.len()), || {
        let Ok(found) = References::read(&source) else { return };
        for number in 0..found.tree.arrays.len() {
            let _ = found.array(&source, number);
        }
    });
}
