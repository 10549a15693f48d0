//! Decodes DEFLATE streams (RFC 1951) in zlib's framing (RFC 1950), up to three side by side in one thread.
//!
//! It accepts and refuses what libdeflate does, and gives the same bytes.

// Tables, cursors and lanes are indexed by numbers that were masked or counted; a wrong one would panic.
#![allow(clippy::cast_possible_truncation, clippy::inline_always, clippy::large_stack_arrays)]

mod adler;
mod bits;
#[allow(unsafe_code, clippy::cast_ptr_alignment)] // what needs no alignment is loaded and stored
mod copies;
#[allow(unsafe_code)]
mod fast;
mod huffman;
mod stream;
mod tables;

use copies::Copies;
use stream::Stream;
use tables::{Kind, Tables};

/// How many streams are open, so that some are found whose blocks are of one kind.
const OPEN: usize = 6;

/// Why a stream was not decoded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Failure {
    /// It is not a complete stream with a correct checksum.
    Damaged,
    /// The output does not fit.
    TooLong,
}

/// A stream to decode.
pub struct Job<'j> {
    input: &'j [u8],
    output: &'j mut [u8],
    /// How many bytes of output there are, once it is decoded.
    pub outcome: Result<usize, Failure>,
}

impl<'j> Job<'j> {
    /// Decodes `input` into `output`. Of `output`, bytes beyond those that are counted may change too.
    pub fn new(input: &'j [u8], output: &'j mut [u8]) -> Self {
        Self { input, output, outcome: Err(Failure::Damaged) }
    }
}

/// A decoder, which keeps its tables from stream to stream.
pub struct Inflate {
    tables: Box<[Tables; OPEN]>,
    has_avx2: bool,
}

impl Default for Inflate {
    fn default() -> Self {
        Self::new()
    }
}

impl Inflate {
    /// A decoder for the processor that it runs on.
    pub fn new() -> Self {
        #[cfg(target_arch = "x86_64")]
        let has_avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("bmi1")
            && is_x86_feature_detected!("bmi2");
        #[cfg(not(target_arch = "x86_64"))]
        let has_avx2 = false;
        Self { has_avx2, ..Self::portable() }
    }

    /// A decoder that uses nothing that a processor may lack.
    pub fn portable() -> Self {
        Self { tables: Box::new([const { Tables::new() }; OPEN]), has_avx2: false }
    }

    /// Decodes streams in zlib's framing. Bytes after a stream's end are ignored.
    pub fn zlib(&mut self, jobs: &mut [Job<'_>]) {
        #[cfg(target_arch = "x86_64")]
        if self.has_avx2 {
            // SAFETY: `new` asked the processor.
            #[allow(unsafe_code)]
            unsafe {
                zlib_avx2(&mut self.tables, jobs);
            }
            return;
        }
        zlib::<copies::Portable>(&mut self.tables, jobs);
    }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
fn zlib_avx2(tables: &mut [Tables; OPEN], jobs: &mut [Job<'_>]) {
    zlib::<copies::Avx2>(tables, jobs);
}

/// A stream that is being decoded.
struct Running<'r> {
    stream: Stream<'r>,
    outcome: &'r mut Result<usize, Failure>,
    /// The whole input: the checksum follows the stream.
    framed: &'r [u8],
}

impl<'r> Running<'r> {
    /// Begins a stream, up to where a fast loop can run. `None` if it is done already.
    fn start<C: Copies>(job: &'r mut Job<'_>, tables: &mut Tables) -> Option<Self> {
        let framed = job.input;
        let Some(raw) = raw(framed) else {
            job.outcome = Err(Failure::Damaged);
            return None;
        };
        let stream = Stream::new(raw, job.output);
        Self { stream, outcome: &mut job.outcome, framed }.go_on::<C>(tables)
    }

    /// Does what a fast loop cannot. `None` if the stream is done.
    fn go_on<C: Copies>(mut self, tables: &mut Tables) -> Option<Self> {
        match self.stream.settle(tables) {
            Ok(false) => return Some(self),
            Ok(true) => *self.outcome = self.check::<C>(),
            Err(failure) => *self.outcome = Err(failure),
        }
        None
    }

    fn check<C: Copies>(&self) -> Result<usize, Failure> {
        let end = self.framed.get(2 + self.stream.bits.next..).and_then(<[u8]>::first_chunk);
        let stored = u32::from_be_bytes(*end.ok_or(Failure::Damaged)?);
        let written = self.stream.output.get(..self.stream.written).unwrap_or(&[]);
        // SAFETY: who uses these copies has asked the processor.
        #[allow(unsafe_code)]
        let sums = |rows: &[[u8; adler::ROW]]| unsafe { C::sums(rows) };
        if adler::adler32(written, sums) == stored { Ok(written.len()) } else { Err(Failure::Damaged) }
    }
}

/// What is between the header and the place of the checksum, if the header is right and names no dictionary.
fn raw(framed: &[u8]) -> Option<&[u8]> {
    let (&[method, flags], rest) = framed.split_first_chunk()?;
    let is_header = u16::from_be_bytes([method, flags]).is_multiple_of(31);
    let is_deflate = method & 15 == 8 && method >> 4 <= 7 && flags & 32 == 0;
    let raw = rest.get(..rest.len().checked_sub(4)?)?;
    (is_header && is_deflate).then_some(raw)
}

#[inline(always)]
fn zlib<C: Copies>(tables: &mut [Tables; OPEN], jobs: &mut [Job<'_>]) {
    let mut waiting = jobs.iter_mut();
    let mut running = [const { None }; OPEN];
    while start_all::<C>(&mut running, &mut waiting, tables) {
        let (lanes, kind) = group(&running, tables);
        let stopped = match *lanes.as_slice() {
            [a, b, c] => run::<C, 3>([a, b, c], kind, &mut running, tables, fast::run_three::<C>),
            [a, b] => run::<C, 2>([a, b], kind, &mut running, tables, fast::run_two::<C>),
            [a] => run::<C, 1>([a], kind, &mut running, tables, fast::run_one::<C>),
            _ => return,
        };
        let Some(stopped) = stopped else { return };
        let stream = running[stopped].take();
        running[stopped] = stream.and_then(|stream| stream.go_on::<C>(&mut tables[stopped]));
    }
}

/// Runs these lanes. Returns which of them needs care.
#[inline(always)]
fn run<C: Copies, const N: usize>(
    lanes: [usize; N],
    kind: Kind,
    running: &mut [Option<Running<'_>>; OPEN],
    tables: &mut [Tables; OPEN],
    fast: impl FnOnce([&mut Stream<'_>; N], [&Tables; N], Kind) -> usize,
) -> Option<usize> {
    for lane in lanes {
        tables[lane].make_steps();
    }
    let streams = running.get_disjoint_mut(lanes).ok()?.map(|running| match running {
        Some(running) => &mut running.stream,
        None => unreachable!("only lanes that run are chosen"),
    });
    lanes.get(fast(streams, lanes.map(|lane| &tables[lane]), kind)).copied()
}

/// Lanes whose blocks are of one kind, as many as are decoded fastest side by side.
fn group(running: &[Option<Running<'_>>; OPEN], tables: &[Tables; OPEN]) -> (Vec<usize>, Kind) {
    let open = || (0..OPEN).filter(|&lane| running[lane].is_some());
    let of = |kind: Kind| open().filter(move |&lane| tables[lane].kind() == kind);
    let kind = open().map(|lane| tables[lane].kind()).max_by_key(|&kind| of(kind).count());
    let kind = kind.unwrap_or(Kind::Plain);
    (of(kind).take(kind.side_by_side()).collect(), kind)
}

/// Gives every free lane a stream, as long as some wait. Returns whether any runs.
fn start_all<'r, C: Copies>(
    running: &mut [Option<Running<'r>>; OPEN],
    waiting: &mut std::slice::IterMut<'r, Job<'_>>,
    tables: &mut [Tables; OPEN],
) -> bool {
    for lane in 0..OPEN {
        while running[lane].is_none() {
            let Some(job) = waiting.next() else { break };
            running[lane] = Running::start::<C>(job, &mut tables[lane]);
        }
    }
    running.iter().any(Option::is_some)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::io::Write;

    use super::*;

    /// The only test that Miri can run: libdeflate is C.
    #[test]
    fn what_zlib_wrote_is_decoded_within_its_output() {
        let far: Vec<u8> =
            (0..3000_u32).map(|index| (index.wrapping_mul(2_654_435_761) >> 28) as u8).collect();
        let near: Vec<u8> =
            (0..3000).map(|index| [1, 2, 3, index as u8][(index % 4) & (index / 700)]).collect();
        let coded: Vec<Vec<u8>> = [&far, &near, &far]
            .map(|bytes| {
                let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::new(6));
                encoder.write_all(bytes).unwrap();
                encoder.finish().unwrap()
            })
            .to_vec();
        let mut outputs = vec![vec![0; 3000]; 3];
        let mut jobs: Vec<Job<'_>> =
            coded.iter().zip(&mut outputs).map(|(input, output)| Job::new(input, output)).collect();
        Inflate::portable().zlib(&mut jobs);
        assert!(jobs.iter().all(|job| job.outcome == Ok(3000)));
        assert_eq!(outputs, [far.clone(), near, far]);
    }
}
