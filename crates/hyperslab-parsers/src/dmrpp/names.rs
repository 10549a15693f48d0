//! What the variables of a document refer to by path.

use std::cell::Cell;
use std::collections::HashMap;

use hyperslab_core::Unreadable;

use super::xml::Node;
use crate::error::Error;

/// The limit for all text arrays of a document together, padded as they are in memory.
const MAX_TEXT_NBYTES: usize = 512 << 20;
/// The longest path of a group. Each name in the group includes it.
const MAX_PATH_NBYTES: usize = 4096;
/// The path of the group that contains something.
pub(super) type Scope<'s> = &'s str;

/// What variables refer to by path.
pub(super) struct Names<'n> {
    dimensions: HashMap<String, u64>,
    enumerations: HashMap<String, &'n Node>,
    /// Bytes of texts that may still be used.
    room: Cell<usize>,
}

/// The lengths of axes, and their names if all have one.
pub(super) type Shape = (Vec<u64>, Option<Vec<String>>);

impl<'n> Names<'n> {
    pub fn of(root: &'n Node) -> Result<Self, Error> {
        let room = Cell::new(MAX_TEXT_NBYTES);
        let mut names = Self { dimensions: HashMap::new(), enumerations: HashMap::new(), room };
        let mut waiting = vec![(root, String::new())];
        while let Some((group, path)) = waiting.pop() {
            if path.len() > MAX_PATH_NBYTES {
                let limit = MAX_PATH_NBYTES as u64;
                return Err(Error::TooMany { what: "bytes of a group's path", limit });
            }
            for child in &group.children {
                let named = format!("{path}/{}", child.attribute("name").unwrap_or_default());
                match child.name.as_str() {
                    "Group" => waiting.push((child, named)),
                    "Dimension" => {
                        let length = child.attribute("size").and_then(|text| text.trim().parse().ok());
                        names.dimensions.extend(length.map(|length| (named, length)));
                    }
                    "Enumeration" => {
                        names.enumerations.insert(named, child);
                    }
                    _ => {}
                }
            }
        }
        Ok(names)
    }

    /// Counts the bytes of texts before they are allocated, because a short document can demand many.
    pub fn spend(&self, nbytes: usize) -> Result<(), Unreadable> {
        let left = self.room.get().checked_sub(nbytes);
        let problem = || format!("texts of more than {MAX_TEXT_NBYTES} bytes in one document");
        self.room.set(left.ok_or_else(|| Unreadable::unsupported(problem()))?);
        Ok(())
    }

    pub fn shape(&self, node: &Node, scope: Scope<'_>) -> Result<Shape, Unreadable> {
        let (mut lengths, mut named) = (Vec::new(), Some(Vec::new()));
        for dimension in node.children("Dim") {
            let own = dimension.attribute("size").and_then(|text| text.trim().parse().ok());
            let name = dimension.attribute("name");
            let known = name.and_then(|name| found(&self.dimensions, name, scope)).copied();
            let length = known.or(own);
            let missing =
                || Unreadable::damaged(format!("a dimension without a length: {}", name.unwrap_or("?")));
            lengths.push(length.ok_or_else(missing)?);
            let last = name.and_then(|name| name.rsplit('/').next());
            named = named.zip(last).map(|(mut names, last)| {
                names.push(last.to_owned());
                names
            });
        }
        Ok((lengths, named))
    }

    pub fn enumeration(&self, name: &str, scope: Scope<'_>) -> Option<&'n Node> {
        found(&self.enumerations, name, scope).copied()
    }
}

/// Looks up a name: a path from the root, or a name in the group or in a group around it.
fn found<'m, T>(known: &'m HashMap<String, T>, name: &str, scope: Scope<'_>) -> Option<&'m T> {
    if name.starts_with('/') {
        return known.get(name);
    }
    let mut around = Some(scope);
    while let Some(path) = around {
        if let Some(value) = known.get(&format!("{path}/{name}")) {
            return Some(value);
        }
        around = path.rsplit_once('/').map(|(parent, _)| parent);
    }
    None
}
