//! Elements in the other byte order.

use crate::threads::in_shares;

/// Reverses the bytes of each element, with several threads if there are many.
pub(crate) fn swap(elements: &mut [u8], width: usize, thread_count: usize) {
    in_shares(elements, width, thread_count, |_, share| match width {
        2 => reverse::<2>(share),
        4 => reverse::<4>(share),
        8 => reverse::<8>(share),
        _ => share.chunks_exact_mut(width.max(1)).for_each(<[u8]>::reverse),
    });
}

/// Of a width that the compiler knows, so that it uses vector instructions.
fn reverse<const WIDTH: usize>(elements: &mut [u8]) {
    for element in elements.as_chunks_mut::<WIDTH>().0 {
        element.reverse();
    }
}
