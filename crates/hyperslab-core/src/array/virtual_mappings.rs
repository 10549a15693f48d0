//! All mappings of a virtual array. If each of them shows a box of the same source array, they are stored as plain
//! numbers instead of one object each. Files with versions have one such mapping for each chunk.

use std::borrow::Cow;
use std::sync::Arc;

use crate::array::virtual_mapping::{VirtualAxis, VirtualMapping, VirtualSelection};

/// The mappings of a virtual array, in order: later ones count over earlier ones. Arrays that are not virtual have
/// none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum VirtualMappings {
    /// Mappings of any kind.
    Each(Vec<VirtualMapping>),
    /// Boxes of one array.
    Boxes(MappedBoxes),
}

/// Mappings that each show a box of one array as a box of the same shape.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedBoxes {
    file: Arc<str>,
    path: Arc<str>,
    ndim: usize,
    axes: Vec<MappedAxis>,
}

/// What a mapping shows along one axis. The numbers have 32 bits, because there may be very many.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedAxis {
    /// The start in the virtual array.
    pub start: u32,
    /// The start in the source.
    pub source_start: u32,
    /// The length.
    pub length: u32,
}

impl MappedBoxes {
    /// Boxes of the array at `path` of `file`. `axes` lists the axes of one box after another, `ndim` for each box.
    /// `None` if the count does not divide evenly or a box is empty.
    pub fn new(file: Arc<str>, path: Arc<str>, ndim: usize, axes: Vec<MappedAxis>) -> Option<Self> {
        let is_even = axes.len().checked_rem(ndim) == Some(0);
        let are_sound = is_even && axes.iter().all(|axis| axis.length > 0);
        are_sound.then_some(Self { file, path, ndim, axes })
    }

    /// The number of axes of both arrays.
    pub fn ndim(&self) -> usize {
        self.ndim
    }

    /// The axes of each box.
    pub fn boxes(&self) -> impl ExactSizeIterator<Item = &[MappedAxis]> {
        self.axes.chunks_exact(self.ndim)
    }

    fn mapping(&self, axes: &[MappedAxis]) -> VirtualMapping {
        let shown = |start: fn(&MappedAxis) -> u32| {
            let axis = |axis: &MappedAxis| {
                let (start, length) = (u64::from(start(axis)), u64::from(axis.length));
                VirtualAxis { start, stride: length, count: Some(1), block: Some(length) }
            };
            VirtualSelection::Regular(axes.iter().map(axis).collect())
        };
        VirtualMapping {
            file: Arc::clone(&self.file),
            path: Arc::clone(&self.path),
            source: shown(|axis| axis.source_start),
            target: shown(|axis| axis.start),
        }
    }
}

impl VirtualMappings {
    /// The mappings of an array that is not virtual.
    pub const NONE: Self = Self::Each(Vec::new());

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Each(mappings) => mappings.len(),
            Self::Boxes(mapped) => mapped.boxes().len(),
        }
    }

    /// Each mapping.
    pub fn iter(&self) -> impl Iterator<Item = Cow<'_, VirtualMapping>> {
        let (each, mapped) = match self {
            Self::Each(mappings) => (mappings.as_slice(), None),
            Self::Boxes(mapped) => (&[][..], Some(mapped)),
        };
        let boxes = mapped.into_iter().flat_map(|mapped| mapped.boxes().map(|axes| mapped.mapping(axes)));
        each.iter().map(Cow::Borrowed).chain(boxes.map(Cow::Owned))
    }

    /// File and path of the only source; `None` if there are several sources or no mappings.
    pub fn one_source(&self) -> Option<(&Arc<str>, &Arc<str>)> {
        match self {
            Self::Boxes(mapped) => (!mapped.axes.is_empty()).then_some((&mapped.file, &mapped.path)),
            Self::Each(mappings) => {
                let first = mappings.first()?;
                let is_same = |one: &VirtualMapping| one.file == first.file && one.path == first.path;
                mappings.iter().all(is_same).then_some((&first.file, &first.path))
            }
        }
    }

    /// Whether some mappings grow with their sources.
    pub fn grow(&self) -> bool {
        match self {
            Self::Boxes(_) => false,
            Self::Each(mappings) => mappings.iter().any(|one| one.target.unlimited_axis().is_some()),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)] // a failed unwrap is a failed test

    use super::*;

    fn axis(start: u32, source_start: u32, length: u32) -> MappedAxis {
        MappedAxis { start, source_start, length }
    }

    fn boxes(ndim: usize, axes: Vec<MappedAxis>) -> Option<MappedBoxes> {
        MappedBoxes::new(".".into(), "/raw".into(), ndim, axes)
    }

    #[test]
    fn boxes_are_mappings() {
        let mappings = VirtualMappings::Boxes(boxes(1, vec![axis(0, 6, 3), axis(3, 0, 2)]).unwrap());
        let shown: Vec<_> = mappings.iter().map(Cow::into_owned).collect();
        let selected = |start, length| {
            let axis = VirtualAxis { start, stride: length, count: Some(1), block: Some(length) };
            VirtualSelection::Regular(vec![axis])
        };
        assert_eq!((&shown[1].source, &shown[1].target), (&selected(0, 2), &selected(3, 2)));
        let same = VirtualMappings::Each(shown);
        assert_eq!((same.len(), same.one_source(), same.grow()), (2, mappings.one_source(), false));
        assert_eq!(VirtualMappings::NONE.one_source(), None);
    }

    #[test]
    fn what_is_no_box_is_refused() {
        assert!(boxes(0, Vec::new()).is_none());
        assert!(boxes(2, vec![axis(0, 0, 1)]).is_none());
        assert!(boxes(1, vec![axis(0, 0, 0)]).is_none());
        assert_eq!(boxes(2, Vec::new()).map(|mapped| mapped.boxes().len()), Some(0));
    }
}
