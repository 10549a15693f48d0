//! References from any bytes: the result must be tables and manifests, or errors, in bounded memory.

use hyperslab_parsers::references::References;
use hyperslab_parsers::{Memory, dmrpp};

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

/// A DMR++ document.
pub fn dmrpp(data: &[u8]) {
    memory::bounded(allowance(data.len()), || drop(dmrpp::parse(&Memory(data))));
}
