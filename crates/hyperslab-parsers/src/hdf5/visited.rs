//! The nodes that a walk has seen, so that it does not follow a damaged index for ever.

use std::cell::{Cell, RefCell};
use std::collections::HashSet;

use crate::error::Error;

/// The nodes of one tree. In a sound file, no node is met twice, and together they are not longer than the file.
#[derive(Debug, Default)]
pub(crate) struct Visited {
    offsets: RefCell<HashSet<u64>>,
    nbytes: Cell<u64>,
}

impl Visited {
    /// Counts a node whose bytes are held. Call it once for each node, never in a step that may be repeated.
    pub fn enter(&self, what: &'static str, offset: u64, nbytes: u64, file_length: u64) -> Result<(), Error> {
        if !self.offsets.borrow_mut().insert(offset) {
            return Err(Error::Cycle { what, offset });
        }
        self.nbytes.set(self.nbytes.get().saturating_add(nbytes));
        if self.nbytes.get() > file_length {
            return Err(Error::invalid(what, offset, "it and its siblings overlap: they exceed the file"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn twice_or_too_much_is_refused() {
        let visited = Visited::default();
        assert_eq!(visited.enter("a node", 8, 60, 100), Ok(()));
        assert_eq!(visited.enter("a node", 8, 10, 100), Err(Error::Cycle { what: "a node", offset: 8 }));
        assert!(matches!(visited.enter("a node", 9, 60, 100), Err(Error::Invalid { .. })));
    }
}
