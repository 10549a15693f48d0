//! Files at URLs, opened by programs as if they were here.
//!
//! libhdf5 reads them by a driver of ours, which keeps what it fetches; arrays that our engine reads come side by side and
//! are not kept. netCDF-C is given the name of an empty file that begins as the one far away does, and then opens that by
//! libhdf5; or, if it is of netCDF-3, reads it through us.
//!
//! | what | home |
//! |---|---|
//! | a file; how its bytes come, and which are kept; all that are open | `file` |
//! | whether there has been any; why one cannot be opened | `presence`; `failure` |
//! | the same for our engine | `view` |
//! | which names are URLs, and how one is reached: credentials, limits | `reaching` |
//! | where a file may lead | `leading` |
//! | `H5Fopen` of a URL | `opening` |
//! | `nc_open` of a URL; files of netCDF-3; what netCDF-C says of failures | `netcdf`; `classic`; `told` |
//! | what a fork does | this file |

mod classic;
mod failure;
mod file;
pub(crate) mod leading;
pub(crate) mod netcdf;
pub(crate) mod opening;
mod presence;
pub(crate) mod reaching;
mod told;
mod view;

pub(crate) use file::{FarFile, numbered};
pub(crate) use presence::has_any;
pub(crate) use view::FarView;

use crate::shared::OverFork;

thread_local! {
    static HELD: OverFork<file::Open> = const { OverFork::new() };
}

/// The process is about to fork.
pub(crate) fn before_fork() {
    HELD.with(|held| held.hold(&file::OPEN));
}

/// It has forked, and this is the parent.
pub(crate) fn after_fork() {
    drop(HELD.with(OverFork::take));
}

/// It has forked, and this is the child.
pub(crate) fn forked() {
    if HELD.with(OverFork::take).is_none() && !file::OPEN.is_unused() {
        file::OPEN.forget();
    }
    netcdf::forked();
}
