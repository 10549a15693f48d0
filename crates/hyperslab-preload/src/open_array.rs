//! Arrays of files that libhdf5 has open, as our engine reads them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab_archive::{Archive, ArchiveArray, ArraySelection, InterruptCheck, OpenOptions, ReadOptions};
use hyperslab_core::{AxisIndices, AxisSelection, Codec, Element};
use hyperslab_engine::{ChunkCache, Store, default_thread_count};
use hyperslab_libhdf5::{Dataspace, Selected};

use crate::byte_order::swap;
use crate::conversion::{Change, convert};
use crate::far::FarView;
use crate::kept_bytes::KeptBytes;
use crate::open_file::OpenFile;
use crate::reason::Reason;
use crate::settings::settings;
use crate::signals::{Blocked, LetThrough, OrInterrupted};

/// What is kept of one array is this part of all memory at most.
const KEPT_PART: u64 = 64;
/// Elements that are converted go through memory of this many bytes.
const MOST_PART_NBYTES: usize = 64 << 20;

/// Whether bytes are kept of any array that has no filters, so that small reads have to look whether its file has changed.
pub(crate) static KEEPS_UNCHECKED: AtomicBool = AtomicBool::new(false);

/// How an array is stored, as libhdf5 tells it.
#[derive(Clone, Debug)]
pub(crate) struct Facts {
    /// The shape of a chunk; that of some rows if it is not chunked.
    pub piece: Vec<u64>,
    /// How many chunks its grid has.
    pub chunk_count: u64,
    /// Whether it has filters.
    pub is_filtered: bool,
    /// Bytes of a decoded chunk, and of libhdf5's cache of chunks.
    pub chunk_nbytes: u64,
    pub cache_nbytes: u64,
    /// Bytes of a chunk for which libhdf5's cache is too small, so that each read of its own decodes the whole chunk; 0 if
    /// there are none.
    pub uncached_nbytes: u64,
    /// The most bytes of the array that libhdf5 keeps from one read to the next.
    pub kept_nbytes: u64,
    /// Whether its file is at a URL, where libhdf5 would fetch one chunk after the other.
    pub is_far: bool,
    /// A filter of the array that libhdf5 does not have and does not find, so that it can read none of it.
    pub lacked_filter: Option<u32>,
}

/// An array, parsed.
pub(crate) struct OpenArray {
    array: ArchiveArray,
    /// The file that it is in.
    pub file: OpenFile,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Bytes of an element, in the file as in memory.
    pub width: u64,
    /// What libhdf5 would have in its cache.
    pub kept: Arc<KeptBytes>,
    /// Whether it has filters.
    pub is_filtered: bool,
    /// A filter without which libhdf5 can read none of it.
    pub lacked_filter: Option<u32>,
}

impl OpenArray {
    /// Parses the array whose header is at an address of a file. Chunks that are read in part are kept in the cache.
    pub fn at(file: OpenFile, address: u64, cache: Arc<ChunkCache>, facts: &Facts) -> Result<Self, Reason> {
        let most_nbytes = facts.kept_nbytes.min(settings().memory_nbytes as u64 / KEPT_PART);
        let most_nbytes = if file.is_far() { 0 } else { most_nbytes };
        if most_nbytes > 0 && !facts.is_filtered {
            KEEPS_UNCHECKED.store(true, Ordering::Relaxed);
        }
        let kept = Arc::new(KeptBytes::new(usize::try_from(most_nbytes).unwrap_or(0)));
        let far = file.far().map(|far| Arc::new(FarView::of_array(far)));
        let store: Arc<dyn Store> = match &far {
            Some(far) => Arc::clone(far) as Arc<dyn Store>,
            None => Arc::new(file.store(Arc::clone(&kept)).ok_or(Reason::Failed)?),
        };
        let interrupts: Arc<dyn InterruptCheck> =
            if far.is_some() { Arc::new(OrInterrupted) } else { Arc::new(LetThrough) };
        let options = OpenOptions { cache: Some(cache), interrupts, ..OpenOptions::default() };
        let archive = Archive::open_hdf5_array(store, address, String::new(), &options);
        far.inspect(|far| far.is_parsed());
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
        let (is_filtered, lacked_filter) = (facts.is_filtered, facts.lacked_filter);
        Ok(Self { array, file, shape, width, kept, is_filtered, lacked_filter })
    }

    /// Reads what is selected, in the order in which libhdf5 visits it, as the program wants it.
    pub fn read(&self, selected: &Dataspace, change: Change, out: &mut [u8]) -> Result<(), Reason> {
        let _blocked = Blocked::new();
        self.kept.begin(out.len() as u64);
        match change {
            Change::None => self.read_stored(selected, out),
            Change::Swap(width) => {
                self.read_stored(selected, out)?;
                swap(out, width, thread_count());
                Ok(())
            }
            Change::Convert { from, is_swapped, to } => {
                for part in parts(selected, out.len() / to.width(), from.width())? {
                    let (first, count) = part.elements;
                    let mut stored = zeros(count * from.width())?;
                    self.read_stored(part.selected.as_ref().unwrap_or(selected), &mut stored)?;
                    if is_swapped {
                        swap(&mut stored, from.width(), thread_count());
                    }
                    let room = &mut out[first * to.width()..][..count * to.width()];
                    if !convert((from, to), &stored, room, thread_count()) {
                        return Err(Reason::Conversion);
                    }
                }
                Ok(())
            }
        }
    }

    fn read_stored(&self, selected: &Dataspace, out: &mut [u8]) -> Result<(), Reason> {
        let axes = selected.orthogonal();
        let selection = match (&selected.selected, axes) {
            (Selected::Points(points), _) => ArraySelection::Points(points),
            (_, Some(axes)) => ArraySelection::Axes(axes),
            (_, None) => return Err(Reason::Selection),
        };
        let options = ReadOptions {
            thread_count: settings().thread_count,
            keeps_bytes: true,
            ..ReadOptions::default()
        };
        self.array.read_into(&selection, out, options).map_err(|_| Reason::Failed)
    }
}

fn thread_count() -> usize {
    settings().thread_count.unwrap_or_else(default_thread_count)
}

/// Memory for so many bytes.
pub(crate) fn zeros(nbytes: usize) -> Result<Vec<u8>, Reason> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(nbytes).map_err(|_| Reason::Memory)?;
    memory.resize(nbytes, 0);
    Ok(memory)
}

/// A part of a selection.
struct Part {
    /// `None` for all of it.
    selected: Option<Dataspace>,
    /// The first element, and how many there are.
    elements: (usize, usize),
}

/// A selection in parts that need little memory beside the program's own.
fn parts(selected: &Dataspace, count: usize, width: usize) -> Result<Vec<Part>, Reason> {
    let most_nbytes = settings().memory_nbytes.min(MOST_PART_NBYTES);
    if count.saturating_mul(width) <= most_nbytes {
        return Ok(vec![Part { selected: None, elements: (0, count) }]);
    }
    let all = selected.orthogonal().ok_or(Reason::Memory)?;
    let Some((AxisIndices::Regular(first), others)) = all.axes().split_first() else {
        return Err(Reason::Memory);
    };
    let row: usize = others.iter().map(|axis| usize::try_from(axis.len()).unwrap_or(usize::MAX)).product();
    let rows = most_nbytes / row.saturating_mul(width).max(1);
    if rows == 0 || !first.is_contiguous() {
        return Err(Reason::Memory);
    }
    let starts = (first.start()..first.stop()).step_by(rows);
    let part = |start: u64| {
        let length = (rows as u64).min(first.stop() - start);
        let along = AxisSelection::interval(0, start, length).map_err(|_| Reason::Memory)?;
        let axes = std::iter::once(AxisIndices::Regular(along)).chain(others.iter().cloned()).collect();
        let selected = Dataspace { shape: selected.shape.clone(), selected: Selected::Axes(axes) };
        let before = usize::try_from(start - first.start()).map_err(|_| Reason::Memory)? * row;
        let count = usize::try_from(length).map_err(|_| Reason::Memory)? * row;
        Ok(Part { selected: Some(selected), elements: (before, count) })
    };
    starts.map(part).collect()
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
