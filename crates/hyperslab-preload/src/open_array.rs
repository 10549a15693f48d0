//! Arrays of files that libhdf5 has open, as our engine reads them.

use std::sync::Arc;

use hyperslab_archive::{Archive, ArchiveArray, ArraySelection, OpenOptions, ReadOptions};
use hyperslab_core::{Codec, Element};
use hyperslab_engine::default_thread_count;

use crate::byte_order::swap;
use crate::dataspace::{Dataspace, Selected};
use crate::open_file::OpenFile;
use crate::reason::Reason;
use crate::settings::settings;
use crate::signals::{Blocked, LetThrough};

/// An array, parsed.
pub(crate) struct OpenArray {
    array: ArchiveArray,
    /// The file that it is in.
    pub file: OpenFile,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Bytes of an element, in the file as in memory.
    pub width: u64,
}

impl OpenArray {
    /// Parses the array whose header is at an address of a file.
    pub fn at(file: OpenFile, address: u64, cache_nbytes: usize) -> Result<Self, Reason> {
        let store = file.store().ok_or(Reason::Failed)?;
        let interrupts = Arc::new(LetThrough);
        let options = OpenOptions { chunk_cache_nbytes: cache_nbytes, interrupts, ..OpenOptions::default() };
        let archive = Archive::open_hdf5_array(Arc::new(store), address, String::new(), &options);
        let archive = Arc::new(archive.map_err(|_| Reason::Failed)?);
        if !archive.tree().other_files.is_empty() {
            return Err(Reason::Layout);
        }
        let array = ArchiveArray::new(&archive, 0, String::new()).ok_or(Reason::Failed)?;
        let described = array.described();
        if !described.virtual_mappings.is_empty() {
            return Err(Reason::Layout);
        }
        if described.element.has_pointers() {
            return Err(Reason::Pointers);
        }
        let Ok(segments) = &described.segments else { return Err(Reason::Layout) };
        let codecs = || segments.iter().flat_map(|segment| &segment.codecs);
        let is_other = |codec: &Codec| matches!(codec, Codec::Convert { .. } | Codec::Unpack { .. });
        if codecs().any(is_other) || !is_plain(&described.element) {
            return Err(Reason::Conversion);
        }
        if !matches!(array.unreadable(), Ok(None)) {
            return Err(Reason::Layout);
        }
        let shape = described.shape.clone().ok_or(Reason::Layout)?;
        let width = described.element.nbytes();
        Ok(Self { array, file, shape, width })
    }

    /// Reads what is selected, in the order in which libhdf5 visits it, and in the other byte order if that is asked for.
    pub fn read(&self, selected: &Dataspace, is_swapped: bool, out: &mut [u8]) -> Result<(), Reason> {
        let axes = selected.orthogonal();
        let selection = match (&selected.selected, axes) {
            (Selected::Points(points), _) => ArraySelection::Points(points),
            (_, Some(axes)) => ArraySelection::Axes(axes),
            (_, None) => return Err(Reason::Selection),
        };
        let thread_count = settings().thread_count;
        let options = ReadOptions { thread_count, keeps_bytes: true, ..ReadOptions::default() };
        let _blocked = Blocked::new();
        self.array.read_into(&selection, out, options).map_err(|_| Reason::Failed)?;
        if is_swapped {
            let width = usize::try_from(self.width).unwrap_or(usize::MAX);
            swap(out, width, thread_count.unwrap_or_else(default_thread_count));
        }
        Ok(())
    }
}

/// Whether all bits of the elements mean something. What filters do with others is not for sure the same everywhere.
fn is_plain(element: &Element) -> bool {
    match element {
        Element::Integer { nbytes, bit_offset, precision, .. } => {
            *bit_offset == 0 && u64::from(*precision) == nbytes.saturating_mul(8)
        }
        Element::Compound { fields, .. } => fields.iter().all(|field| is_plain(&field.element)),
        Element::Array { element, .. } => is_plain(element),
        Element::Enumeration { base, .. } => is_plain(base),
        Element::Bitfield { .. } => false,
        _ => true,
    }
}
