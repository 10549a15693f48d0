//! Compares the stored bytes of chunks of two files, with several threads.

use std::fs::File;
use std::io::{self, ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use hyperslab_engine::{default_thread_count, with_helpers};
use hyperslab_parsers::open_regular;

use crate::chunk_gathering::FEW_NBYTES;

/// Where chunks lie: how long each is, which is the same in both files, and where it starts in each.
#[derive(Clone, Copy, Debug)]
pub struct StoredPairs<'a> {
    /// The bytes of each chunk.
    pub lengths: &'a [u64],
    /// Where each starts in the first file.
    pub first: &'a [u64],
    /// Where each starts in the second file.
    pub second: &'a [u64],
}

/// Bytes that lie one after the other in both files.
struct Piece {
    /// The first chunk that it has bytes of, and how many of the chunk's bytes are before it.
    chunk: usize,
    skipped: u64,
    nbytes: usize,
}

/// Whether each chunk is stored with the same bytes in both files. Chunks that lie one after the other in both are read
/// together, in pieces of at most `piece_nbytes`, so that two of them stay in the cache of a processor. What lies beyond
/// the end of a file differs.
pub fn same_stored(
    paths: (&Path, &Path),
    pairs: StoredPairs<'_>,
    piece_nbytes: usize,
) -> io::Result<Vec<bool>> {
    let piece_nbytes = piece_nbytes.max(1);
    let pieces = pieces_of(pairs, piece_nbytes);
    let differs: Vec<AtomicBool> = pairs.lengths.iter().map(|_| AtomicBool::new(false)).collect();
    let next = AtomicUsize::new(0);
    let work = || {
        let files = (open_regular(paths.0)?, open_regular(paths.1)?);
        let mut memory = (vec![0; piece_nbytes], vec![0; piece_nbytes]);
        while let Some(piece) = pieces.get(next.fetch_add(1, Ordering::Relaxed)) {
            compare(&files, pairs, piece, (&mut memory.0, &mut memory.1), &differs)?;
        }
        Ok(())
    };
    let failed = Mutex::new(None);
    let note = |done: io::Result<()>| {
        if let Err(error) = done {
            next.store(pieces.len(), Ordering::Relaxed); // the others stop, too
            failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        }
    };
    let nbytes = pairs.lengths.iter().fold(0, |sum: u64, length| sum.saturating_add(*length));
    let helpers = if nbytes < FEW_NBYTES as u64 { 0 } else { default_thread_count() - 1 };
    with_helpers(helpers.min(pieces.len().saturating_sub(1)), |_| note(work()), || note(work()));
    match failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error),
        None => Ok(differs.into_iter().map(|one| !one.into_inner()).collect()),
    }
}

fn pieces_of(pairs: StoredPairs<'_>, most: usize) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    let mut stop = None; // where the last piece ends in both files
    for (chunk, length) in pairs.lengths.iter().enumerate() {
        let (first, second) = (pairs.first[chunk], pairs.second[chunk]);
        let mut skipped = 0;
        if stop == Some((first, second))
            && let Some(last) = pieces.last_mut()
        {
            let room = (most - last.nbytes) as u64;
            skipped = room.min(*length);
            last.nbytes += usize::try_from(skipped).unwrap_or(0);
        }
        while skipped < *length {
            let nbytes = (*length - skipped).min(most as u64);
            pieces.push(Piece { chunk, skipped, nbytes: usize::try_from(nbytes).unwrap_or(0) });
            skipped += nbytes;
        }
        stop = first.checked_add(*length).zip(second.checked_add(*length));
    }
    pieces
}

fn compare(
    files: &(File, File),
    pairs: StoredPairs<'_>,
    piece: &Piece,
    (one, other): (&mut [u8], &mut [u8]),
    differs: &[AtomicBool],
) -> io::Result<()> {
    let at = |starts: &[u64]| starts[piece.chunk].saturating_add(piece.skipped);
    let left = read(&files.0, at(pairs.first), &mut one[..piece.nbytes])?;
    let right = read(&files.1, at(pairs.second), &mut other[..piece.nbytes])?;
    if left.len() == piece.nbytes && left == right {
        return Ok(());
    }
    let (mut start, mut chunk, mut skipped) = (0, piece.chunk, piece.skipped);
    while start < piece.nbytes {
        let rest = usize::try_from(pairs.lengths[chunk] - skipped).unwrap_or(usize::MAX);
        let stop = start.saturating_add(rest).min(piece.nbytes);
        let is_same = left.get(start..stop).is_some_and(|part| right.get(start..stop) == Some(part));
        if !is_same {
            differs[chunk].store(true, Ordering::Relaxed);
        }
        (start, chunk, skipped) = (stop, chunk + 1, 0);
    }
    Ok(())
}

/// Reads as many of these bytes as the file has.
fn read<'a>(mut file: &File, offset: u64, into: &'a mut [u8]) -> io::Result<&'a [u8]> {
    file.seek(SeekFrom::Start(offset))?;
    let mut done = 0;
    while done < into.len() {
        match file.read(&mut into[done..]) {
            Ok(0) => break,
            Ok(count) => done += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(&into[..done])
}
