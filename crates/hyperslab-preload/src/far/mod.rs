//! Files at URLs, opened by programs as if they were here.
//!
//! libhdf5 reads them by a driver of ours, which keeps what it fetches; arrays that our engine reads come side by side and
//! are not kept. netCDF-C is given the name of an empty file that begins as the one far away does, and then opens that by
//! libhdf5; or, if it is of netCDF-3, reads it through us.
//!
//! | what | home |
//! |---|---|
//! | a file; how its bytes come, and which are kept | `file` |
//! | the same for our engine | `view` |
//! | how a URL is reached: credentials, limits | `reaching` |
//! | where a file may lead | `leading` |
//! | `H5Fopen` of a URL | `opening` |
//! | `nc_open` of a URL; files of netCDF-3; what netCDF-C says of failures | `netcdf`; `classic`; `told` |
//! | all that are open | this file |

mod classic;
mod file;
pub(crate) mod leading;
pub(crate) mod netcdf;
pub(crate) mod opening;
pub(crate) mod reaching;
mod told;
mod view;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

pub(crate) use file::FarFile;
use hyperslab_engine::URL_SCHEMES;
pub(crate) use view::FarView;

use crate::settings::{is_serving, settings};
use crate::shared::{OverFork, Shared};

/// Those that are open, by number.
#[derive(Default)]
struct Open(HashMap<u64, Weak<FarFile>>);

static OPEN: Shared<Open> = Shared::new();
/// Whether the process has ever opened one.
static HAS_ANY: AtomicBool = AtomicBool::new(false);

thread_local! {
    static HELD: OverFork<Open> = const { OverFork::new() };
}

/// Whether the process has ever opened a file at a URL.
pub(crate) fn has_any() -> bool {
    HAS_ANY.load(Ordering::Relaxed)
}

/// The file of this number, if it is open.
pub(crate) fn file(number: u64) -> Option<Arc<FarFile>> {
    OPEN.lock()?.0.get(&number)?.upgrade()
}

fn register(file: &Arc<FarFile>) {
    if !HAS_ANY.swap(true, Ordering::Relaxed) {
        crate::known::share_memory();
    }
    if let Some(mut open) = OPEN.lock() {
        open.0.retain(|_, file| file.strong_count() > 0);
        open.0.insert(file.number(), Arc::downgrade(file));
    }
}

/// The URL that a name is, if we open such names now; `None` for all others.
pub(crate) fn url(name: &[u8]) -> Option<&str> {
    let end = name.iter().position(|&byte| byte == b':')?;
    if !name[end..].starts_with(b"://") || !settings().urls || !is_serving() {
        return None;
    }
    let name = std::str::from_utf8(name).ok()?;
    URL_SCHEMES.iter().any(|scheme| name[..end].eq_ignore_ascii_case(scheme)).then_some(name)
}

/// The process is about to fork.
pub(crate) fn before_fork() {
    HELD.with(|held| held.hold(&OPEN));
}

/// It has forked, and this is the parent.
pub(crate) fn after_fork() {
    drop(HELD.with(OverFork::take));
}

/// It has forked, and this is the child.
pub(crate) fn forked() {
    if HELD.with(OverFork::take).is_none() && !OPEN.is_unused() {
        OPEN.forget();
    }
    netcdf::forked();
}
