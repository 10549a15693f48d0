//! The floor of reading deflated and shuffled chunks: fetch, inflate, unshuffle, put in place, and nothing else.
//!
//! No file format, plan or scheduling: threads share the list of chunks that they are given. What a reader takes
//! beyond this is its own cost. `benchmarks/peers.py` runs it, in turn with the readers that it is the floor of:
//!
//! `inflate_floor FILE DECODER THREADS ELEMENT_NBYTES CHUNK_ROWS CHUNK_ROW_NBYTES ACROSS`
//!
//! DECODER is `libdeflate`, the library as it is, or `ours`, what the engine inflates with. Chunks stand `ACROSS`
//! side by side in an array; their offsets and lengths in the file come first on standard input, in C order, one
//! chunk a line, then an empty line. After that each line is an order, answered by a line with a number: `read`
//! reads everything into new memory, `sum` answers with its CRC-32, `drop` gives it back.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // an example may panic

use std::fs::File;
use std::io::{self, BufRead, Write};
use std::os::unix::fs::FileExt;
use std::sync::Mutex;

use hyperslab_core::{Codec, known};
use hyperslab_engine::codecs::{Decoded, Scratch, decode, unshuffle_into};

struct Chunk {
    offset: u64,
    nbytes: usize,
}

struct Field {
    file: File,
    libdeflate: bool,
    threads: usize,
    element_nbytes: usize,
    chunk_rows: usize,
    chunk_row_nbytes: usize,
    across: usize,
    chunks: Vec<Chunk>,
}

impl Field {
    fn chunk_nbytes(&self) -> usize {
        self.chunk_rows * self.chunk_row_nbytes
    }

    /// All elements, in new memory. Threads take bands of adjacent chunks, whose rows alternate in the output.
    fn read(&self) -> Vec<u8> {
        let mut out = vec![0; self.chunks.len() * self.chunk_nbytes()];
        let bands = out.chunks_mut(self.across * self.chunk_nbytes()).zip(self.chunks.chunks(self.across));
        let bands = Mutex::new(bands);
        std::thread::scope(|scope| {
            for _ in 0..self.threads {
                scope.spawn(|| {
                    let mut worker = Worker::new(self);
                    loop {
                        let Some((out, chunks)) = bands.lock().unwrap().next() else { break };
                        for (column, chunk) in chunks.iter().enumerate() {
                            worker.place(chunk, column, out);
                        }
                    }
                });
            }
        });
        out
    }
}

/// What a thread keeps from chunk to chunk.
struct Worker<'a> {
    field: &'a Field,
    encoded: Vec<u8>,
    planes: Vec<u8>,
    libdeflate: libdeflater::Decompressor,
    scratch: Scratch,
}

impl<'a> Worker<'a> {
    fn new(field: &'a Field) -> Self {
        Self {
            field,
            encoded: vec![0; field.chunks.iter().map(|chunk| chunk.nbytes).max().unwrap_or(0)],
            planes: vec![0; field.chunk_nbytes()],
            libdeflate: libdeflater::Decompressor::new(),
            scratch: Scratch::default(),
        }
    }

    /// Reads one chunk into its column of a band.
    fn place(&mut self, chunk: &Chunk, column: usize, band: &mut [u8]) {
        let field = self.field;
        let encoded = &mut self.encoded[..chunk.nbytes];
        field.file.read_exact_at(encoded, chunk.offset).expect("a chunk of the file");
        let planes = if field.libdeflate {
            self.libdeflate.zlib_decompress(encoded, &mut self.planes).expect("a zlib stream");
            &self.planes
        } else {
            match decode(
                &[Codec::known(&known::zlib)],
                0,
                0,
                encoded,
                field.chunk_nbytes(),
                &mut self.scratch,
            )
            .expect("a zlib stream")
            {
                Decoded::Plain(planes) => planes,
                Decoded::Shuffled { .. } => panic!("nothing was to be unshuffled"),
            }
        };
        let row = field.chunk_row_nbytes;
        for (number, line) in band.chunks_mut(row * field.across).enumerate() {
            let first_element = number * row / field.element_nbytes;
            unshuffle_into(planes, field.element_nbytes, first_element, &mut line[column * row..][..row]);
        }
    }
}

fn main() {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, decoder, numbers @ ..] = words.as_slice() else { panic!("see the first lines of the source") };
    let numbers: Vec<usize> = numbers.iter().map(|word| word.parse().expect("a number")).collect();
    let &[threads, element_nbytes, chunk_rows, chunk_row_nbytes, across] = numbers.as_slice() else {
        panic!("five numbers, not {}", numbers.len())
    };
    let mut lines = io::stdin().lock().lines().map(Result::unwrap);
    let chunks = lines.by_ref().take_while(|line| !line.is_empty()).map(|line| chunk(&line)).collect();
    let file = File::open(file).expect("the file");
    let libdeflate = match decoder.as_str() {
        "libdeflate" => true,
        "ours" => false,
        other => panic!("no decoder {other}: libdeflate or ours"),
    };
    let field =
        Field { file, libdeflate, threads, element_nbytes, chunk_rows, chunk_row_nbytes, across, chunks };
    let mut out = Vec::new();
    for order in lines {
        match order.as_str() {
            "read" => out = field.read(),
            "drop" => out = Vec::new(),
            _ => {}
        }
        println!("{}", if order == "sum" { sum(&out) } else { 0 });
        io::stdout().flush().unwrap();
    }
}

fn sum(bytes: &[u8]) -> u32 {
    let mut crc = flate2::Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn chunk(line: &str) -> Chunk {
    let (offset, nbytes) = line.split_once(' ').expect("an offset and a length");
    Chunk { offset: offset.parse().expect("an offset"), nbytes: nbytes.parse().expect("a length") }
}
