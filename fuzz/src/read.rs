//! Opens a whole file as an archive, plans and reads it. Threads, cache and selection must not change the result.

use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use hyperslab_archive::{
    Archive, ArchiveArray, ArraySelection, OpenOptions, ReadOptions, SourceResolver, UrlResolver,
};
use hyperslab_core::{Array, AxisIndices, AxisSelection, CoalescePolicy, Codec, Orthogonal, ReadPlan};
use hyperslab_engine::{ChunkCache, Execution, Location, ReadError, RemoteOptions, Stores, execute};
use hyperslab_parsers::Allowed;

use crate::memory;
use crate::parse::allowance;

/// Limits for all outputs of an input, and for the decoded bytes of one, so that inputs stay quick.
const MOST_OUTPUT_NBYTES: u64 = 2 << 20;
const MOST_DECODED_NBYTES: u64 = 8 << 20;
const MOST_READS: u64 = 4096;
const MOST_ARRAYS: usize = 64;
const CACHE_NBYTES: usize = 1 << 20;

/// A folder for the inputs' files, in memory if `TMPDIR` is.
pub static FOLDER: LazyLock<PathBuf> =
    LazyLock::new(|| std::env::temp_dir().join(format!("hyperslab-fuzz-{}", std::process::id())));

/// The target.
pub fn read(data: &[u8]) {
    std::fs::create_dir_all(&*FOLDER).expect("a folder to fuzz in");
    let path = FOLDER.join("file");
    std::fs::write(&path, data).expect("a file to fuzz");
    memory::bounded(2 * allowance(data.len()), || read_archive(&path, data));
}

/// Inputs make up URLs. None is asked for.
struct NoUrls;

impl UrlResolver for NoUrls {
    fn location(&self, url: &str) -> Result<(Location, RemoteOptions), ReadError> {
        Err(ReadError::NotAllowed { said: url.to_owned() })
    }
}

/// Reads every array that is small enough, from an archive that is opened twice. Opens no file outside the folder.
pub fn read_archive(path: &Path, data: &[u8]) {
    let archives = [0, CACHE_NBYTES].map(|chunk_cache_nbytes| {
        let allowed = Allowed::only(&[FOLDER.clone()]);
        let resolver = SourceResolver::new("fuzzed".to_owned(), Some(Arc::new(NoUrls)), allowed, Vec::new());
        let options = OpenOptions { chunk_cache_nbytes, resolver, ..OpenOptions::default() };
        Archive::open(path, &options).map(Arc::new)
    });
    let [plain, cached] = archives;
    assert_eq!(plain.is_ok(), cached.is_ok(), "opened twice");
    let (Ok(plain), Ok(cached)) = (plain, cached) else { return };
    let mut left = MOST_OUTPUT_NBYTES;
    for number in 0..plain.tree().arrays.len().min(MOST_ARRAYS) {
        let array = |archive: &Arc<Archive>| {
            ArchiveArray::new(archive, number, "array".to_owned()).expect("an array")
        };
        let (plain, cached) = (array(&plain), array(&cached));
        let Ok(whole) = plain.whole() else { continue };
        let Some(shape) = whole.array().shape.clone() else { continue };
        if holds_values(whole.array()) {
            read_values(&plain, &cached, whole.array(), &shape, &mut left);
            continue;
        }
        let readable = Readable { array: whole.array(), data, left: &mut left };
        readable.check(&shape, |selection, reader| {
            let array = if reader.is_cached { &cached } else { &plain };
            let options = ReadOptions { thread_count: Some(reader.thread_count), is_reused: false };
            let selection = ArraySelection::Axes(selection.clone());
            move |out: &mut [u8]| array.read_into(&selection, out, options).is_ok()
        });
    }
}

/// Whether chunks hold values of variable length.
fn holds_values(array: &Array) -> bool {
    let segments = array.segments.as_deref().unwrap_or_default();
    segments.iter().flat_map(|segment| &segment.codecs).any(|codec| matches!(codec, Codec::Values { .. }))
}

/// Reads values of variable length twice. Both reads give the same values, or errors.
fn read_values(one: &ArchiveArray, other: &ArchiveArray, array: &Array, shape: &[u64], left: &mut u64) {
    let Ok(all) = Orthogonal::all(shape) else { return };
    let Ok(plan) = ReadPlan::new(array, &all) else { return };
    let nbytes = plan.element_count() * plan.element_nbytes();
    let decoded_nbytes = plan.totals(array, CoalescePolicy::LOCAL).decoded_nbytes;
    if nbytes > *left || plan.read_count() > MOST_READS || decoded_nbytes > MOST_DECODED_NBYTES {
        return;
    }
    *left -= nbytes;
    let read = |array: &ArchiveArray, thread_count| {
        let options = ReadOptions { thread_count: Some(thread_count), is_reused: false };
        let mut pointers = vec![0xaa; usize::try_from(nbytes).unwrap()];
        array.read_values(&ArraySelection::Axes(all.clone()), &mut pointers, options).ok()
    };
    assert_eq!(read(one, 1), read(other, 2), "with two threads and a cache");
}

/// Reads every array of a list that is small enough and whose files are present.
pub fn read_arrays(arrays: &[Array], stores: &Stores, data: &[u8]) {
    let mut left = MOST_OUTPUT_NBYTES;
    for array in arrays.iter().take(MOST_ARRAYS) {
        let Some(shape) = &array.shape else { continue };
        let caches = [ChunkCache::new(0), ChunkCache::new(CACHE_NBYTES)];
        Readable { array, data, left: &mut left }.check(shape, |selection, reader| {
            let cache = &caches[usize::from(reader.is_cached)];
            let plan = ReadPlan::new(array, selection).expect("a part of what could be planned");
            move |out: &mut [u8]| carried_out(array, &plan, stores, cache, reader.thread_count, out)
        });
    }
}

/// How to read.
#[derive(Clone, Copy)]
struct Reader {
    is_cached: bool,
    thread_count: usize,
}

/// An array of an input, and how many bytes of output it may still produce.
struct Readable<'a> {
    array: &'a Array,
    data: &'a [u8],
    left: &'a mut u64,
}

impl Readable<'_> {
    /// Reads it in several ways, if it is small enough. `read` returns a reader of a selection; the reader returns
    /// whether it succeeded.
    fn check<'r, R: Fn(&mut [u8]) -> bool + 'r>(
        self,
        shape: &[u64],
        read: impl Fn(&Orthogonal, Reader) -> R,
    ) {
        let Ok(all) = Orthogonal::all(shape) else { return };
        let Ok(plan) = ReadPlan::new(self.array, &all) else { return };
        let nbytes = plan.element_count() * plan.element_nbytes();
        if nbytes > *self.left || plan.read_count() > MOST_READS {
            return;
        }
        *self.left -= nbytes;
        if plan.totals(self.array, CoalescePolicy::LOCAL).decoded_nbytes > MOST_DECODED_NBYTES {
            return;
        }
        let output = |selection: &Orthogonal, nbytes: u64, reader: Reader, garbage: u8| {
            let mut out = vec![garbage; usize::try_from(nbytes).unwrap()];
            read(selection, reader)(&mut out).then_some(out)
        };
        let whole = output(&all, nbytes, Reader { is_cached: false, thread_count: 1 }, 0xaa);
        let again = output(&all, nbytes, Reader { is_cached: true, thread_count: 2 }, 0x55);
        assert_eq!(whole, again, "with two threads and a cache");
        let Some(whole) = whole else { return };
        let axes: Vec<AxisSelection> =
            (0..).zip(shape).map(|(axis, &length)| part(axis, length, self.data)).collect();
        let expected = picked(&whole, shape, &axes, usize::try_from(plan.element_nbytes()).unwrap());
        let selection = Orthogonal::new(axes.into_iter().map(AxisIndices::Regular).collect()).unwrap();
        for _ in 0..2 {
            let reader = Reader { is_cached: true, thread_count: 1 };
            let found = output(&selection, expected.len() as u64, reader, 0x33);
            assert_eq!(found.as_ref(), Some(&expected), "a part, with a cache");
        }
    }
}

/// What was read into memory that was full of `garbage`.
pub fn output(
    array: &Array,
    plan: &ReadPlan,
    stores: &Stores,
    cache: &ChunkCache,
    thread_count: usize,
    garbage: u8,
) -> Option<Vec<u8>> {
    let mut out = vec![garbage; usize::try_from(plan.element_count() * plan.element_nbytes()).unwrap()];
    carried_out(array, plan, stores, cache, thread_count, &mut out).then_some(out)
}

fn carried_out(
    array: &Array,
    plan: &ReadPlan,
    stores: &Stores,
    cache: &ChunkCache,
    thread_count: usize,
    out: &mut [u8],
) -> bool {
    let execution = Execution {
        plan,
        array,
        array_name: "array",
        array_number: 0,
        stores,
        cache,
        thread_count,
        is_reused: false,
        values: None,
    };
    execute(&execution, out, &mut || false).is_ok()
}

/// A part of an axis, chosen by the input's last bytes.
fn part(axis: usize, length: u64, data: &[u8]) -> AxisSelection {
    let byte = |back: usize| data.iter().rev().nth(axis * 3 + back).copied().map_or(0, u64::from);
    let start = if length == 0 { 0 } else { byte(0) % length };
    let stride = byte(1) % 5 + 1;
    let most = (length - start).div_ceil(stride);
    let count = if most == 0 { 0 } else { byte(2) % most + 1 };
    AxisSelection::new(axis, start, stride, count, 1).expect("within the axis")
}

/// The same elements, selected one by one.
fn picked(whole: &[u8], shape: &[u64], axes: &[AxisSelection], element_nbytes: usize) -> Vec<u8> {
    let mut positions = vec![0_u64];
    for (axis, &length) in axes.iter().zip(shape) {
        let indices = || (0..axis.count()).map(|k| axis.start() + k * axis.stride());
        positions = positions
            .iter()
            .flat_map(|position| indices().map(move |index| position * length + index))
            .collect();
    }
    let element =
        |position: u64| &whole[usize::try_from(position).unwrap() * element_nbytes..][..element_nbytes];
    positions.into_iter().flat_map(element).copied().collect()
}
