//! Reads points. Each group of points shares a chunk and has its own plan.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use hyperslab_core::{PlanError, PointGroup, ReadPlan};

use crate::execute::{Execution, execute};
use crate::read_error::ReadError;
use crate::scatter::index;
use crate::threads::{Helpers, with_helpers};

/// How many groups justify another thread.
const GROUPS_PER_THREAD: usize = 8;

/// Reads the points of `groups` into `out`, one element for each point. `like` has the options; its plan is not used.
///
/// The calling thread calls `poll` now and then; `true` cancels.
pub fn read_points(
    like: &Execution<'_>,
    groups: &[PointGroup],
    out: &mut [u8],
    poll: &mut dyn FnMut() -> bool,
) -> Result<(), ReadError> {
    let width = index(like.array.element.nbytes());
    let count: usize = groups.iter().map(|group| group.offsets.len()).sum();
    if out.len() != count * width {
        return Err(ReadError::OutputSize { expected: (count * width) as u64, found: out.len() as u64 });
    }
    let thread_count = like.thread_count.min(groups.len().div_ceil(GROUPS_PER_THREAD)).max(1);
    let (next, is_over) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (out, failure) = (Mutex::new(out), Mutex::new(None));
    let work = |poll: &mut dyn FnMut() -> bool| {
        while let Some(group) = groups.get(next.fetch_add(1, Ordering::Relaxed)) {
            if is_over.load(Ordering::Relaxed) {
                return;
            }
            let done = read_group(like, group, poll).map(|read| {
                let mut out = out.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
                offset(&read, group, width, &mut out);
            });
            if let Err(error) = done {
                is_over.store(true, Ordering::Relaxed);
                failure.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get_or_insert(error);
            }
        }
    };
    let helpers = Helpers::grant(thread_count - 1);
    with_helpers(index(helpers.count()), |_| work(&mut || false), || work(poll));
    failure.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner).map_or(Ok(()), Err)
}

/// Reads the elements around a group's points, on the calling thread.
fn read_group(
    like: &Execution<'_>,
    group: &PointGroup,
    poll: &mut dyn FnMut() -> bool,
) -> Result<Vec<u8>, ReadError> {
    let plan = ReadPlan::new(like.array, &group.around).map_err(|problem| refused(like, problem))?;
    let mut read = vec![0; index(plan.element_count() * plan.element_nbytes())];
    execute(&Execution { plan: &plan, thread_count: 1, ..*like }, &mut read, poll)?;
    Ok(read)
}

fn refused(like: &Execution<'_>, problem: PlanError) -> ReadError {
    ReadError::Plan { file: like.stores.name(), array: like.array_name.to_owned(), problem }
}

fn offset(read: &[u8], group: &PointGroup, width: usize, out: &mut [u8]) {
    for &(number, offset) in &group.offsets {
        let (from, to) = (index(offset) * width, index(number) * width);
        out[to..to + width].copy_from_slice(&read[from..from + width]);
    }
}
