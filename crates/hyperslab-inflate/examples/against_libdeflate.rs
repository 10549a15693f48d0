//! Measures time / libdeflate's time for files of streams (`make_streams.py` writes them), in runs that alternate.
//!
//! `cargo run --release -p hyperslab-inflate --example against_libdeflate -- ROUNDS FILE...`
#![allow(clippy::expect_used, clippy::cast_precision_loss, missing_docs)]

use hyperslab_inflate::{Inflate, Job};
use libdeflater::Decompressor;

struct Streams {
    name: String,
    coded: Vec<Vec<u8>>,
    outputs: Vec<Vec<u8>>,
}

fn streams(path: &str) -> Streams {
    let bytes = std::fs::read(path).expect("the file can be read");
    let mut rest = &bytes[..];
    let (mut coded, mut outputs) = (Vec::new(), Vec::new());
    while let Some((head, after)) = rest.split_first_chunk::<8>() {
        let number =
            |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]) as usize;
        let (stream, after) = after.split_at(number(0));
        coded.push(stream.to_vec());
        outputs.push(vec![0; number(4)]);
        rest = after;
    }
    while coded.len() < 12 {
        coded.extend_from_within(..coded.len().min(12 - coded.len()));
    }
    let outputs = (0..12).map(|index| vec![0; outputs[index % outputs.len()].len()]).collect();
    let name = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".streams").to_owned();
    Streams { name, coded, outputs }
}

/// Decodes all streams, so many at once; 0 is libdeflate.
fn decode(streams: &mut Streams, side_by_side: usize, inflate: &mut Inflate, libdeflate: &mut Decompressor) {
    if side_by_side == 0 {
        for (input, output) in streams.coded.iter().zip(&mut streams.outputs) {
            libdeflate.zlib_decompress(input, output).expect("libdeflate decodes");
        }
        return;
    }
    for (inputs, outputs) in streams.coded.chunks(side_by_side).zip(streams.outputs.chunks_mut(side_by_side))
    {
        let mut jobs: Vec<Job<'_>> =
            inputs.iter().zip(outputs).map(|(input, output)| Job::new(input, output)).collect();
        inflate.zlib(&mut jobs);
        assert!(jobs.iter().all(|job| job.outcome.is_ok()), "a stream was not decoded");
    }
}

/// Seconds that this process has had a processor: others on the machine count less.
fn processor_time() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

const KINDS: [(usize, &str); 5] = [(0, "libdeflate ns/KiB"), (1, "1"), (2, "2"), (4, "4"), (12, "12")];

fn main() {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().and_then(|rounds| rounds.parse().ok()).expect("how many rounds");
    let (mut inflate, mut libdeflate) = (Inflate::new(), Decompressor::new());
    if std::env::var_os("PORTABLE").is_some() {
        inflate = Inflate::portable();
    }
    let only = std::env::var("ONLY").ok().and_then(|kind| kind.parse::<usize>().ok());
    println!("{:30}{}", "streams", KINDS.map(|(_, name)| format!("{name:>10.10}")).concat());
    let mut logs = [0.0; KINDS.len()];
    let mut count = 0;
    for path in arguments {
        let mut streams = streams(&path);
        let nbytes: usize = streams.outputs.iter().map(Vec::len).sum();
        let mut times = KINDS.map(|_| Vec::new());
        for round in 0..rounds {
            for turn in 0..KINDS.len() {
                let kind = (round + turn) % KINDS.len();
                if only.is_some_and(|only| only != kind) {
                    continue;
                }
                let began = processor_time();
                decode(&mut streams, KINDS[kind].0, &mut inflate, &mut libdeflate);
                times[kind].push(processor_time() - began);
            }
        }
        // The machine is shared: the fastest quarter is what the processor needs.
        let typical = times.map(|mut times| {
            times.sort_by(f64::total_cmp);
            times.get(times.len() / 8).copied().unwrap_or(1.0)
        });
        let mut line = format!("{:30}{:10.0}", streams.name, typical[0] * 1e9 / nbytes as f64 * 1024.0);
        for kind in 1..KINDS.len() {
            let ratio = typical[kind] / typical[0];
            logs[kind] += ratio.ln();
            line = format!("{line}{ratio:10.3}");
        }
        count += 1;
        println!("{line}");
    }
    let means = (1..KINDS.len()).map(|kind| format!("{:10.3}", (logs[kind] / f64::from(count)).exp()));
    println!("{:40}{}", "geometric mean", means.collect::<String>());
}
