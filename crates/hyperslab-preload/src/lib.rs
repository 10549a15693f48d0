//! A library for `LD_PRELOAD`: programs that read HDF5 files through libhdf5 get their reads served by our engine,
//! or recorded.
//!
//! ```text
//! program ─► H5Dread (hooks) ─► the libhdf5 of the caller (libhdf5) ─► request: selections, types
//!                                   ▲ anything in doubt                  │
//!                                   └──────────────── serving: policy ◄──┴─► known: files, arrays ─► archive
//! ```
//!
//! | what | home |
//! |---|---|
//! | where calls arrive and go on; how they are made again; what stands for which function | `entries`; `instructions`; `stand_ins`, `gates` |
//! | functions that replace libhdf5's and libc's | `hooks` |
//! | which library a function belongs to; its lock, while threads wait; Python's own lock meanwhile | `owners`; `lock`; `python` |
//! | which libhdf5 a call means; its functions, and modules' tables | `calling`, `binding`, `callers`; the crate `hyperslab-libhdf5` |
//! | the beginning of a process, its forks and its end | `lifetime` |
//! | whether a write is ours, and the write; writes that wait, and before which calls they are stored | `writing`, `write_reason`, `whole_chunks`; `write_queue`, `settling` |
//! | changes to the tables of loaded modules | `patching` |
//! | what a call asks for | `request` |
//! | whether a read is ours, and the read | `serving`, `reason` |
//! | what is known of open files and arrays; what is guessed | `files`, `open_file`, `writers`, `known`, `open_array`; `hints` |
//! | files at URLs | `far` |
//! | copies that the program reads in the place of its files | `instead` |
//! | files that change while they are open | `fallback`, `kept_bytes`, `mapped` |
//! | state behind a lock that nobody waits for | `shared` |
//! | reads of several arrays in one call | `several` |
//! | how long libhdf5 would have taken | `comparing`, `comparison`, `chunk_box` |
//! | the order of an array's reads; the next one, done ahead | `pattern`; `prefetching` |
//! | elements into memory with gaps; of another type | `scatter`; `conversion`, `byte_order`, `threads` |
//! | what the program reads and writes, for `hyperslab trace` | `recording` |
//! | what `hyperslab.accelerate` calls | `accelerating` |
//! | signals while our threads work; threads with small stacks | `signals`; `stack` |
//! | counts, for the command that started the program | `counts` |
//! | settings in the environment; folders of the command; limits of the system | `settings`; `folders`; `limits` |
//!
//! Nothing here may change what the program sees, except how long it takes. A read that is not served, or that fails,
//! goes to libhdf5 as if we were not there. We call libhdf5 only from within the program's own calls, and we open no
//! file: the bytes come through the descriptor that libhdf5 has open, because closing another one would release the
//! locks that the program holds.

#![cfg(target_os = "linux")]

mod accelerating;
mod binding;
mod byte_order;
mod callers;
mod calling;
mod chunk_box;
mod comparing;
mod comparison;
mod conversion;
mod counts;
mod entries;
mod fallback;
mod far;
mod files;
mod folders;
mod gates;
mod hints;
mod hooks;
mod instead;
mod instructions;
mod kept_bytes;
mod known;
mod lifetime;
mod limits;
mod lock;
mod mapped;
mod open_array;
mod open_file;
mod owners;
mod patching;
mod pattern;
mod prefetching;
mod python;
mod reason;
mod recording;
mod request;
mod scatter;
mod serving;
mod settings;
mod settling;
mod several;
mod shared;
mod signals;
mod stack;
mod stand_ins;
mod threads;
mod whole_chunks;
mod write_queue;
mod write_reason;
mod writers;
mod writing;
