//! Damaged HDF5 files: the parser must answer in bounded time, whatever the bytes are.
//!
//! The files to damage are those below the directories in `HYPERSLAB_CORPUS` (separated by colons), up to 1 MB each.
//! Without it, nothing is damaged. `HYPERSLAB_DAMAGES` is the number of damages to each file.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use hyperslab_parsers::{Memory, Pages, Policy, hdf5};

const MAX_FILE_NBYTES: u64 = 1 << 20;
const MAX_FILES: usize = 400;
const PATIENCE: Duration = Duration::from_secs(30);

/// Pages so small that every structure lacks bytes at first.
const SMALL_PAGES: Policy = Policy { page_nbytes: 64, first_nbytes: 64, last_nbytes: 0, gap_pages: 0 };

/// Marsaglia's xorshift, so every run makes the same damages.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap_or(0) % limit.max(1)
    }
}

fn files(directory: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = std::fs::read_dir(directory) else { return };
    let mut paths: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            files(&path, found);
        } else if path.metadata().is_ok_and(|metadata| metadata.len() <= MAX_FILE_NBYTES) {
            found.push(path);
        }
    }
}

fn corpus() -> Vec<(PathBuf, Vec<u8>)> {
    let directories = std::env::var("HYPERSLAB_CORPUS").unwrap_or_default();
    let mut paths = Vec::new();
    directories
        .split(':')
        .filter(|directory| !directory.is_empty())
        .for_each(|directory| files(Path::new(directory), &mut paths));
    let read = |path: PathBuf| Some((path.clone(), std::fs::read(&path).ok()?));
    let hdf5 = |bytes: &[u8]| {
        [0, 512]
            .into_iter()
            .any(|offset| bytes.get(offset..).is_some_and(|rest| rest.starts_with(b"\x89HDF")))
    };
    paths.into_iter().filter_map(read).filter(|(_, bytes)| hdf5(bytes)).take(MAX_FILES).collect()
}

fn damaged(original: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = original.to_vec();
    if random.below(4) == 0 {
        bytes.truncate(random.below(original.len()));
        return bytes;
    }
    // Metadata usually come first, so most damages are there.
    let reach = if random.below(2) == 0 { original.len() } else { original.len().min(8192) };
    for _ in 0..=random.below(8) {
        let offset = random.below(reach);
        let Some(byte) = bytes.get_mut(offset) else { continue };
        match random.below(4) {
            0 => *byte = 0xff,
            1 => *byte = 0,
            _ => *byte ^= 1 << random.below(8),
        }
    }
    bytes
}

/// Reads it. Returns whether there was a tree, and how long it took.
fn outcome(bytes: &[u8], policy: Policy) -> (bool, Duration) {
    let source = Memory(bytes);
    let start = Instant::now();
    let read = hdf5::parse(&mut Pages::new(&source, policy)).is_ok();
    (read, start.elapsed())
}

#[test]
fn damages_are_survived() {
    let damages = std::env::var("HYPERSLAB_DAMAGES").ok().and_then(|text| text.parse().ok()).unwrap_or(20);
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut trees, mut tried) = (0_u32, 0_u32);
    for (path, original) in corpus() {
        for _ in 0..damages {
            let bytes = damaged(&original, &mut random);
            let (read, taken) = outcome(&bytes, Policy::LOCAL);
            assert!(taken < PATIENCE, "{} took {taken:?}", path.display());
            (trees, tried) = (trees + u32::from(read), tried + 1);
        }
    }
    println!("{trees} of {tried} damaged files still gave a tree");
}

/// The signatures of all structures that have one.
const SIGNATURES: [&[u8; 4]; 20] = [
    b"OHDR", b"OCHK", b"TREE", b"SNOD", b"HEAP", b"GCOL", b"FRHP", b"FHDB", b"FHIB", b"BTHD", b"BTIN",
    b"BTLF", b"FAHD", b"FADB", b"EAHD", b"EAIB", b"EASB", b"EADB", b"SMTB", b"SMLI",
];
/// The structures of one file that are cut, evenly chosen.
const MAX_STRUCTURES: usize = 50;

#[test]
fn a_cut_in_any_structure_is_survived() {
    for (path, bytes) in corpus() {
        let starts =
            bytes.windows(4).enumerate().filter(|(_, found)| SIGNATURES.iter().any(|it| it == found));
        let starts: Vec<usize> = starts.map(|(offset, _)| offset).collect();
        for start in starts.iter().step_by(starts.len().div_ceil(MAX_STRUCTURES).max(1)) {
            for length in [*start, start + 4, start + 7, start + 30] {
                let Some(left) = bytes.get(..length) else { continue };
                let (_, taken) = outcome(left, Policy::LOCAL);
                assert!(taken < PATIENCE, "{} cut to {length} bytes took {taken:?}", path.display());
            }
        }
    }
}

#[test]
fn pages_do_not_change_the_tree() {
    for (path, bytes) in corpus().into_iter().filter(|(_, bytes)| bytes.len() < 1 << 17) {
        let (one, other) = (Memory(&bytes), Memory(&bytes));
        let whole = hdf5::parse(&mut Pages::new(&one, Policy::REMOTE));
        let small = hdf5::parse(&mut Pages::new(&other, SMALL_PAGES));
        assert!(whole == small, "{}: {:?} {:?}", path.display(), whole.err(), small.err());
    }
}
