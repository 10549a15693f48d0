//! Plans and reads hand-made arrays: segments of any grids over a raw file, compared with the elements themselves.
#![allow(missing_docs, clippy::unwrap_used)] // a test's name says what it does; it fails by panicking

use std::io::IoSliceMut;
use std::path::Path;
use std::sync::{Arc, Mutex};

use hyperslab_core::{
    Array, AxisIndices, AxisSelection, ByteOrder, ByteRange, ChunkGrid, CoalescePolicy, Codec, Element, Fill,
    Manifest, Notes, Orthogonal, ReadPlan, Role, Segment, SegmentAxis, StoredChunk, VirtualMappings, known,
};
use hyperslab_engine::{ChunkCache, Execution, FileStore, ReadError, Store, Stores, execute};
use proptest::prelude::*;

const FILL: u16 = 0xfefe;
const UNWRITTEN: u16 = 0xabab;

/// One segment of the test: the location of its box, how much larger its source is, and how the source is cut.
#[derive(Clone, Debug)]
struct Made {
    origin: Vec<u64>,
    shape: Vec<u64>,
    before: Vec<u64>,
    after: Vec<u64>,
    chunk_shape: Vec<u64>,
    kind: u8,
    missing: Vec<bool>,
}

/// The element of segment `segment` at `index` of the source.
fn element(segment: usize, index: &[u64]) -> u16 {
    let position = index.iter().fold(7_u64, |sum, &index| sum * 31 + index);
    u16::try_from((position * 2654 + segment as u64 * 977) % 65521).unwrap()
}

fn indices(shape: &[u64]) -> Vec<Vec<u64>> {
    shape.iter().fold(vec![Vec::new()], |found, &length| {
        let more = |index: Vec<u64>| (0..length).map(move |last| [index.clone(), vec![last]].concat());
        found.into_iter().flat_map(more).collect()
    })
}

fn encode(made: &Made, elements: &[u16]) -> (Vec<u8>, u32) {
    let plain: Vec<u8> = elements.iter().flat_map(|element| element.to_le_bytes()).collect();
    let shuffled: Vec<u8> = (0..2).flat_map(|byte| plain.iter().skip(byte).step_by(2).copied()).collect();
    match made.kind {
        0 | 3 => (plain, 0),
        1 => (shuffled, 0),
        _ => (plain, 1), // the chunk skipped its codec
    }
}

fn codecs(made: &Made) -> Vec<Codec> {
    match made.kind {
        0 => vec![],
        3 => vec![Codec::Transpose { order: (0..made.shape.len()).rev().collect() }],
        _ => vec![Codec::Shuffle { element_nbytes: 2 }],
    }
}

impl Made {
    fn grid(&self) -> ChunkGrid {
        let source =
            (0..self.shape.len()).map(|axis| self.before[axis] + self.shape[axis] + self.after[axis]);
        ChunkGrid::new(source.collect(), self.chunk_shape.clone()).unwrap()
    }

    fn is_missing(&self, chunk: u64) -> bool {
        self.missing[usize::try_from(chunk).unwrap() % self.missing.len()]
    }

    /// Appends the chunks to a file's bytes.
    fn stored(&self, number: usize, file: &mut Vec<u8>) -> Segment {
        let grid = self.grid();
        let mut chunks = Vec::new();
        for index in (0..grid.chunk_count()).filter(|&index| !self.is_missing(index)) {
            let corner = grid.chunk_index(index).unwrap();
            let mut within = indices(&self.chunk_shape);
            if self.kind == 3 {
                within.sort_by_key(|index| index.iter().rev().copied().collect::<Vec<_>>());
            }
            let source = |within: &Vec<u64>| -> Vec<u64> {
                (0..corner.len()).map(|axis| corner[axis] * self.chunk_shape[axis] + within[axis]).collect()
            };
            let elements: Vec<u16> = within.iter().map(|within| element(number, &source(within))).collect();
            let (bytes, filter_mask) = encode(self, &elements);
            let range = ByteRange { offset: file.len() as u64 + 3, length: bytes.len() as u64 };
            file.extend([9, 9, 9]);
            file.extend(bytes);
            chunks.push(StoredChunk { index, file: 0, range, filter_mask });
        }
        Segment {
            axes: SegmentAxis::of_box(&self.origin, &self.shape, &self.before).unwrap(),
            grid,
            codecs: codecs(self),
            element: Element::integer(2, false, ByteOrder::Little),
            plain_edge_chunks: false,
            manifest: Manifest::of_chunks(chunks).into(),
            fill: Fill::Value(UNWRITTEN.to_le_bytes().to_vec()),
        }
    }

    /// The element at an index of the array, if it is in this segment.
    fn at(&self, number: usize, index: &[u64]) -> Option<u16> {
        let inside =
            |axis: usize| (self.origin[axis]..self.origin[axis] + self.shape[axis]).contains(&index[axis]);
        if !(0..index.len()).all(inside) {
            return None;
        }
        let source: Vec<u64> =
            (0..index.len()).map(|axis| index[axis] - self.origin[axis] + self.before[axis]).collect();
        let corner: Vec<u64> =
            source.iter().zip(&self.chunk_shape).map(|(index, chunk)| index / chunk).collect();
        let chunk = self.grid().linear_index(&corner).unwrap();
        Some(if self.is_missing(chunk) { UNWRITTEN } else { element(number, &source) })
    }
}

fn array(shape: &[u64], segments: Vec<Segment>) -> Array {
    Array {
        shape: Some(shape.to_vec()),
        max_shape: vec![None; shape.len()],
        element: Element::integer(2, false, ByteOrder::Little),
        fill: Fill::Value(FILL.to_le_bytes().to_vec()),
        segments: Ok(segments),
        is_chunked: true,
        notes: Notes::default(),
        role: Role::default(),
        virtual_mappings: VirtualMappings::NONE,
        dimensions: None,
        attributes: Vec::new(),
    }
}

/// A file that records the requests to it, and wants small ones.
struct NotingStore {
    file: FileStore,
    noted: Mutex<Vec<ByteRange>>,
}

const POLICY: CoalescePolicy = CoalescePolicy { gap_nbytes: 7, most_nbytes: 60, ..CoalescePolicy::LOCAL };

impl NotingStore {
    fn open(path: &Path) -> Self {
        Self { file: FileStore::open(path).unwrap(), noted: Mutex::default() }
    }

    fn note(&self, offset: u64, nbytes: usize) {
        self.noted.lock().unwrap().push(ByteRange { offset, length: nbytes as u64 });
    }

    fn noted(&self) -> Vec<ByteRange> {
        let mut noted = std::mem::take(&mut *self.noted.lock().unwrap());
        noted.sort_unstable();
        noted
    }
}

impl Store for NotingStore {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn nbytes(&self) -> u64 {
        self.file.nbytes()
    }

    fn policy(&self) -> CoalescePolicy {
        POLICY
    }

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<(), ReadError> {
        self.note(offset, out.len());
        self.file.read_into(offset, out)
    }

    fn read_vectored(&self, offset: u64, parts: &mut [IoSliceMut<'_>]) -> Result<(), ReadError> {
        self.note(offset, parts.iter().map(|part| part.len()).sum());
        self.file.read_vectored(offset, parts)
    }

    fn check_unchanged(&self) -> Result<(), ReadError> {
        self.file.check_unchanged()
    }
}

fn read(
    store: &Arc<NotingStore>,
    array: &Array,
    plan: &ReadPlan,
    thread_count: usize,
    cache: &ChunkCache,
) -> Vec<u16> {
    let opened: Arc<dyn Store> = Arc::<NotingStore>::clone(store);
    let stores = Stores::new(Some(opened), Path::new(""), Vec::new());
    let mut out = vec![1; usize::try_from(plan.element_count() * 2).unwrap()];
    let (array_name, array_number) = ("made", 0);
    let execution = Execution {
        plan,
        array,
        array_name,
        array_number,
        stores: &stores,
        cache,
        thread_count,
        is_reused: false,
        values: None,
    };
    execute(&execution, &mut out, &mut || false).unwrap();
    out.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect()
}

fn made(origin: Vec<u64>, shape: Vec<u64>) -> impl Strategy<Value = Made> {
    let ndim = shape.len();
    let small = || prop::collection::vec(0_u64..4, ndim);
    let chunk_shape = prop::collection::vec(1_u64..6, ndim);
    (small(), small(), chunk_shape, 0_u8..4, prop::collection::vec(prop::bool::weighted(0.2), 7)).prop_map(
        move |(before, after, chunk_shape, kind, missing)| Made {
            origin: origin.clone(),
            shape: shape.clone(),
            before,
            after,
            chunk_shape,
            kind,
            missing,
        },
    )
}

/// Consecutive segments along the first axis, of unequal lengths, with gaps or overlaps between them.
fn segments() -> impl Strategy<Value = (Vec<u64>, Vec<Made>)> {
    let lengths = prop::collection::vec((0_u64..7, -2_i64..4), 1..5);
    (lengths, prop::collection::vec(1_u64..8, 0..3)).prop_flat_map(|(lengths, rest)| {
        let (mut start, mut stop, mut all) = (0_i64, 0_i64, Vec::new());
        for (length, gap) in lengths {
            start = (start + gap).max(0);
            let origin = [vec![start.unsigned_abs()], vec![0; rest.len()]].concat();
            all.push(made(origin, [vec![length], rest.clone()].concat()));
            start += length.cast_signed();
            stop = stop.max(start);
        }
        (Just([vec![stop.unsigned_abs() + 1], rest].concat()), all)
    })
}

fn asked(length: u64) -> impl Strategy<Value = AxisIndices> {
    let regular = (0..length, 1_u64..4, 1_u64..4, 0_u64..6).prop_map(move |(start, block, extra, count)| {
        let stride = block + extra - 1;
        let room = length - start;
        let most = if room < block { 0 } else { (room - block) / stride + 1 };
        AxisIndices::Regular(AxisSelection::new(0, start, stride, count.min(most), block).unwrap())
    });
    let listed = prop::collection::vec(0..length, 0..6).prop_map(AxisIndices::Listed);
    let all = Just(AxisIndices::Regular(AxisSelection::new(0, 0, 1, length, 1).unwrap()));
    prop_oneof![all, regular, listed]
}

fn listed(asked: &AxisIndices) -> Vec<u64> {
    match asked {
        AxisIndices::Listed(indices) => indices.clone(),
        AxisIndices::Regular(axis) => (0..axis.count())
            .flat_map(|number| {
                (0..axis.block()).map(move |inner| axis.start() + number * axis.stride() + inner)
            })
            .collect(),
    }
}

fn case() -> impl Strategy<Value = (Vec<u64>, Vec<Made>, Vec<AxisIndices>)> {
    segments().prop_flat_map(|(shape, made)| {
        let axes: Vec<_> = shape.iter().map(|&length| asked(length)).collect();
        (Just(shape), Just(made), axes)
    })
}

/// What each element must be. If segments overlap, the later one counts.
fn expected(made: &[Made], axes: &[AxisIndices]) -> Vec<u16> {
    let lists: Vec<Vec<u64>> = axes.iter().map(listed).collect();
    let lengths: Vec<u64> = lists.iter().map(|list| list.len() as u64).collect();
    let chosen = |position: Vec<u64>| -> Vec<u64> {
        position
            .iter()
            .zip(&lists)
            .map(|(&position, list)| list[usize::try_from(position).unwrap()])
            .collect()
    };
    let value = |index: Vec<u64>| {
        made.iter().enumerate().rev().find_map(|(number, made)| made.at(number, &index)).unwrap_or(FILL)
    };
    indices(&lengths).into_iter().map(chosen).map(value).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn reads_are_the_elements_themselves((shape, made, axes) in case(), thread_count in 1_usize..4) {
        let mut file = Vec::new();
        let segments = made.iter().enumerate().map(|(number, made)| made.stored(number, &mut file)).collect();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("raw");
        std::fs::write(&path, &file).unwrap();
        let array = array(&shape, segments);
        let plan = ReadPlan::new(&array, &Orthogonal::new(axes.clone()).unwrap()).unwrap();
        let wanted = expected(&made, &axes);
        let (store, cache) = (Arc::new(NotingStore::open(&path)), ChunkCache::new(1000));
        prop_assert_eq!(&read(&store, &array, &plan, thread_count, &cache), &wanted);
        let noted = store.noted();
        prop_assert_eq!(&read(&store, &array, &plan, thread_count, &cache), &wanted);

        let requests: Vec<ByteRange> =
            plan.requests(&array, POLICY).iter().map(|request| request.range).collect();
        prop_assert_eq!(&requests, &noted);
        let totals = plan.totals(&array, POLICY);
        prop_assert_eq!(totals.output_nbytes, wanted.len() as u64 * 2);
        prop_assert_eq!(totals.request_count, requests.len() as u64);
        prop_assert_eq!(totals.fetched_nbytes, requests.iter().map(|range| range.length).sum::<u64>());
    }
}

#[test]
fn ten_million_chunks_make_a_small_plan() {
    let grid = ChunkGrid::new(vec![10_000, 10_000], vec![2, 5]).unwrap();
    let segment = Segment {
        axes: SegmentAxis::of_box(&[0, 0], &[10_000, 10_000], &[0, 0]).unwrap(),
        grid,
        codecs: vec![Codec::known(&known::zlib)],
        element: Element::integer(2, false, ByteOrder::Little),
        plain_edge_chunks: false,
        manifest: Manifest::empty().into(),
        fill: Fill::Zero,
    };
    let array = array(&[10_000, 10_000], vec![segment]);
    let plan = ReadPlan::new(&array, &Orthogonal::all(&[10_000, 10_000]).unwrap()).unwrap();
    assert_eq!(plan.read_count(), 10_000_000);
    let last = plan.read(9_999_999).unwrap();
    assert_eq!((last.chunk, last.placement.element_count()), (9_999_999, 10));
    assert!(plan.read(10_000_000).is_none());
}

#[test]
fn of_a_grid_of_mostly_missing_chunks_only_those_stored_are_visited() {
    let length = 1_u64 << 40;
    let stored = [3, 1 << 20, (1 << 30) - 1];
    let chunk = |(position, &index): (usize, &u64)| StoredChunk {
        index,
        file: 0,
        range: ByteRange { offset: 2048 * position as u64, length: 2048 },
        filter_mask: 0,
    };
    let segment = Segment {
        axes: SegmentAxis::of_box(&[0], &[length], &[0]).unwrap(),
        grid: ChunkGrid::new(vec![length], vec![1024]).unwrap(),
        codecs: Vec::new(),
        element: Element::integer(2, false, ByteOrder::Little),
        plain_edge_chunks: false,
        manifest: Manifest::of_chunks(stored.iter().enumerate().map(chunk).collect()).into(),
        fill: Fill::Value(FILL.to_le_bytes().to_vec()),
    };
    let array = array(&[length], vec![segment]);
    let everything = ReadPlan::new(&array, &Orthogonal::all(&[length]).unwrap()).unwrap();
    let totals = everything.totals(&array, CoalescePolicy::LOCAL);
    assert_eq!((totals.chunk_count, totals.missing_chunk_count), (1 << 30, (1 << 30) - 3));
    assert_eq!((totals.request_count, totals.fetched_nbytes), (1, 3 * 2048));

    // One element of each of 2^20 chunks. Only one chunk is stored.
    let strided = AxisSelection::new(0, 5, 1024, 1 << 20, 1).unwrap();
    let plan = ReadPlan::new(&array, &Orthogonal::new(vec![AxisIndices::Regular(strided)]).unwrap()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("raw");
    let elements: Vec<u8> = (0..3 * 1024_u16).flat_map(u16::to_le_bytes).collect();
    std::fs::write(&path, elements).unwrap();
    let store = Arc::new(NotingStore::open(&path));
    let mut wanted = vec![FILL; 1 << 20];
    wanted[3] = 5;
    assert_eq!(read(&store, &array, &plan, 2, &ChunkCache::new(0)), wanted);
    assert_eq!(store.noted(), [ByteRange { offset: 10, length: 2 }]);
}
