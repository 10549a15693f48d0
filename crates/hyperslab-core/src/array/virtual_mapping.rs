//! Which parts of which other arrays a virtual array is made of. Pure data: sources are opened elsewhere.

use std::sync::Arc;

use crate::selection::points::Points;

/// A part of a virtual array, and the part of another array that it shows.
///
/// Both selections have the same number of elements, and elements correspond in row-major order. Of two mappings
/// that reach the same element the later one counts. Where no source is found, elements are the virtual array's
/// fill value.
///
/// *Unlimited* mappings grow with their sources: the target's unlimited axis is cut to what the source's unlimited
/// axis has. *Numbered* mappings (`is_numbered`) are a row of sources: block `n` along the target's unlimited axis
/// shows the whole source selection of the file and array that [`VirtualMapping::source_names`] gives for `n`; the
/// row ends before the first source that is not there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualMapping {
    /// The source's file as the virtual array says it, relative to its own file; "." is that file itself.
    pub file: Arc<str>,
    /// The source array's path in that file.
    pub path: Arc<str>,
    /// What is taken from the source.
    pub source: VirtualSelection,
    /// Where it goes in the virtual array.
    pub target: VirtualSelection,
}

/// Elements of an array; unlike a `Selection` it can grow without limit along one axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VirtualSelection {
    /// Every element.
    All,
    /// No element.
    Nothing,
    /// Regularly spaced blocks: their product over the axes.
    Regular(Vec<VirtualAxis>),
    /// The union of boxes that do not overlap; elements are in row-major order over all of them together.
    Boxes(Vec<VirtualBox>),
    /// Elements one by one, in this order.
    Points(Points),
}

/// Blocks along one axis of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VirtualAxis {
    /// Where the first block starts.
    pub start: u64,
    /// From the start of a block to the start of the next.
    pub stride: u64,
    /// How many blocks; `None` for as many as there will be.
    pub count: Option<u64>,
    /// Elements of a block; `None` for as many as there will be.
    pub block: Option<u64>,
}

/// A box of an array: half-open, one entry an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VirtualBox {
    /// The first element on each axis.
    pub start: Vec<u64>,
    /// One past the last element on each axis.
    pub stop: Vec<u64>,
}

impl VirtualMapping {
    /// Whether the names stand for a row of sources: `%b` in one of them is the number of the block.
    pub fn is_numbered(&self) -> bool {
        is_numbered(&self.file, &self.path)
    }

    /// The file and the path of the source for block `number`; of mappings without numbers for any.
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

/// Whether the names of a source stand for a row of them.
pub(crate) fn is_numbered(file: &str, path: &str) -> bool {
    [file, path].into_iter().any(|name| parts(name).any(|part| part == Part::Number))
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Number,
}

/// A name as HDF5's `H5Pset_virtual` reads it: `%b` is a number, `%%` a percent sign, other signs are themselves.
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
