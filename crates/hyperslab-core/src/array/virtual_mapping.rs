//! Which parts of other arrays make up a virtual array. Pure data: sources are opened elsewhere.

use std::sync::Arc;

use crate::selection::points::Points;

/// A part of a virtual array, and the part of another array that it shows.
///
/// Both selections have the same number of elements, and elements correspond in row-major order. If two mappings cover
/// the same element, the later one counts. Elements without a source are the virtual array's fill value.
///
/// *Unlimited* mappings grow with their sources: the target's unlimited axis is cut to the length of the source's
/// unlimited axis. *Numbered* mappings (`is_numbered`) are a row of sources: block `n` along the target's unlimited
/// axis shows the whole source selection of the file and array that [`VirtualMapping::source_names`] gives for `n`. The
/// row ends before the first source that does not exist.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualMapping {
    /// The source's file, relative to the file of the virtual array; "." is that file itself.
    pub file: Arc<str>,
    /// The source array's path in that file.
    pub path: Arc<str>,
    /// The selection of the source.
    pub source: VirtualSelection,
    /// The selection of the virtual array.
    pub target: VirtualSelection,
}

/// A selection of elements. Unlike a `Selection`, it can be unlimited along one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VirtualSelection {
    /// Every element.
    All,
    /// No element.
    Nothing,
    /// Regularly spaced blocks: the product over the axes.
    Regular(Vec<VirtualAxis>),
    /// The union of boxes that do not overlap. Elements are in row-major order over all boxes together.
    Boxes(Vec<VirtualBox>),
    /// Elements one by one, in this order.
    Points(Points),
}

/// Blocks along one axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualAxis {
    /// Where the first block starts.
    pub start: u64,
    /// The distance from the start of a block to the start of the next.
    pub stride: u64,
    /// The number of blocks; `None` for unlimited.
    pub count: Option<u64>,
    /// The length of a block; `None` for unlimited.
    pub block: Option<u64>,
}

/// A half-open box of an array, with one entry for each axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualBox {
    /// The first element on each axis.
    pub start: Vec<u64>,
    /// One past the last element on each axis.
    pub stop: Vec<u64>,
}

impl VirtualMapping {
    /// Whether the names stand for a row of sources: they contain `%b`, the number of the block.
    pub fn is_numbered(&self) -> bool {
        is_numbered(&self.file, &self.path)
    }

    /// The file and path of the source for block `number`. Mappings without numbers have the same for every block.
    pub fn source_names(&self, number: u64) -> (String, String) {
        (with_number(&self.file, number), with_number(&self.path, number))
    }
}

impl VirtualSelection {
    /// The axis along which the selection grows with its array.
    pub fn unlimited_axis(&self) -> Option<usize> {
        match self {
            Self::Regular(axes) => axes.iter().position(|axis| axis.count.is_none() || axis.block.is_none()),
            _ => None,
        }
    }
}

/// Whether a source's names stand for a row of sources.
pub(crate) fn is_numbered(file: &str, path: &str) -> bool {
    [file, path].into_iter().any(|name| parts(name).any(|part| part == Part::Number))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Number,
}

/// Parses a name as HDF5's `H5Pset_virtual` does: `%b` is a number, `%%` a percent sign, other signs stand for
/// themselves.
fn parts(name: &str) -> impl Iterator<Item = Part<'_>> {
    let mut rest = name;
    std::iter::from_fn(move || {
        let (part, length) = match rest.find('%') {
            _ if rest.is_empty() => return None,
            Some(0) if rest.starts_with("%b") => (Part::Number, 2),
            Some(0) if rest.starts_with("%%") => (Part::Text("%"), 2),
            Some(0) => (Part::Text("%"), 1),
            Some(position) => (Part::Text(rest.get(..position)?), position),
            None => (Part::Text(rest), rest.len()),
        };
        rest = rest.get(length..)?;
        Some(part)
    })
}

fn with_number(name: &str, number: u64) -> String {
    let text = |part| match part {
        Part::Text(text) => text.to_owned(),
        Part::Number => number.to_string(),
    };
    parts(name).map(text).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mapping(file: &str, path: &str) -> VirtualMapping {
        let source = VirtualSelection::All;
        let axis = VirtualAxis { start: 0, stride: 2, count: None, block: Some(2) };
        let target = VirtualSelection::Regular(vec![axis]);
        VirtualMapping { file: file.into(), path: path.into(), source, target }
    }

    #[test]
    fn numbered_names() {
        let numbered = mapping("f-%b.h5", "100%%/d%b%b%");
        assert!(numbered.is_numbered());
        assert_eq!(numbered.source_names(12), ("f-12.h5".into(), "100%/d1212%".into()));
    }

    #[test]
    fn plain_names() {
        let plain = mapping("%%b.h5", "%d/é");
        assert!(!plain.is_numbered());
        assert_eq!(plain.source_names(0), ("%b.h5".into(), "%d/é".into()));
    }

    #[test]
    fn unlimited_axis() {
        assert_eq!(mapping("f", "d").target.unlimited_axis(), Some(0));
        assert_eq!(VirtualSelection::All.unlimited_axis(), None);
    }
}
