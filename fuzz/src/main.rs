//! Fuzz targets in one binary; `HYPERSLAB_FUZZ_TARGET` says which one runs. `make fuzz` runs each in turn.

#![no_main]

mod chain_line;
mod decode;
mod memory;
mod parse;
mod read;
mod references;
mod store;
mod versions;
mod zarr;

use std::sync::LazyLock;

use hyperslab_parsers::{Policy, fits, hdf4, hdf5, netcdf3};
use libfuzzer_sys::fuzz_target;

type Target = fn(&[u8]);

/// Every target except the families of codecs.
const TARGETS: [(&str, Target); 10] = [
    ("hdf5", |data| parse::parse_twice(hdf5::parse, data)),
    ("netcdf3", |data| parse::parse_twice(netcdf3::parse, data)),
    ("fits", |data| parse::parse_twice(fits::parse, data)),
    // HDF4's budget counts what a round reads again, so where it ends depends on the pages.
    ("hdf4", |data| drop(parse::parse(hdf4::parse, data, Policy::LOCAL))),
    ("zarr", zarr::zarr),
    ("read", read::read),
    ("references", references::references),
    ("dmrpp", references::dmrpp),
    ("versions", versions::versions),
    ("mappings", versions::mappings),
];

/// Families of codecs differ only in their seeds: the input selects the codecs.
static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let asked = std::env::var("HYPERSLAB_FUZZ_TARGET").unwrap_or_default();
    TARGETS.iter().find(|(name, _)| *name == asked).map_or(decode::decode as Target, |(_, target)| *target)
});

fuzz_target!(init: memory::lift_on_panic(), |data: &[u8]| TARGET(data));
