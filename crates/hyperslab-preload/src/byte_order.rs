//! Elements in the other byte order.

/// How many bytes are worth another thread.
const NBYTES_PER_THREAD: usize = 4 << 20;

/// Reverses the bytes of each element, with several threads if there are many.
pub(crate) fn swap(elements: &mut [u8], width: usize, thread_count: usize) {
    let count = elements.len() / width.max(1);
    let threads = thread_count.min(elements.len() / NBYTES_PER_THREAD).max(1);
    let share = count.div_ceil(threads).max(1) * width.max(1);
    let mut shares = elements.chunks_mut(share);
    let Some(own) = shares.next() else { return };
    std::thread::scope(|scope| {
        for share in shares {
            scope.spawn(move || swap_each(share, width));
        }
        swap_each(own, width);
    });
}

fn swap_each(elements: &mut [u8], width: usize) {
    match width {
        2 => reverse::<2>(elements),
        4 => reverse::<4>(elements),
        8 => reverse::<8>(elements),
        _ => elements.chunks_exact_mut(width.max(1)).for_each(<[u8]>::reverse),
    }
}

/// Of a width that the compiler knows, so that it uses vector instructions.
fn reverse<const WIDTH: usize>(elements: &mut [u8]) {
    for element in elements.as_chunks_mut::<WIDTH>().0 {
        element.reverse();
    }
}
