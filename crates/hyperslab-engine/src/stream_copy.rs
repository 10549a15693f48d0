//! Copies past the caches. With memory larger than the caches, a plain store first fetches the line that it overwrites,
//! which adds half again to the traffic.
//!
//! This is one of the files with `unsafe`: vector stores through pointers.
#![allow(unsafe_code)]

use std::io::IoSliceMut;

/// Fills the slices, one after another, with `bytes`. Ignores bytes that are left over.
pub(crate) fn copy_past_caches(mut bytes: &[u8], slices: &mut [IoSliceMut<'_>]) {
    for slice in slices {
        let Some((now, later)) = bytes.split_at_checked(slice.len()) else { return };
        stream(now, slice);
        bytes = later;
    }
    finish();
}

/// Copies between slices of one length: whole aligned vectors past the caches, the ends as usual.
#[cfg(target_arch = "x86_64")]
fn stream(source: &[u8], out: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_stream_si128};

    assert_eq!(source.len(), out.len(), "slices of one length");
    // SAFETY: a vector is sixteen bytes, and all values are valid.
    let (head, vectors, tail) = unsafe { out.align_to_mut::<__m128i>() };
    let (source_head, rest) = source.split_at(head.len());
    let (body, source_tail) = rest.split_at(size_of_val(vectors));
    head.copy_from_slice(source_head);
    tail.copy_from_slice(source_tail);
    for (vector, bytes) in vectors.iter_mut().zip(body.chunks_exact(size_of::<__m128i>())) {
        // SAFETY: the load reads sixteen bytes from anywhere; the store goes to an aligned vector that is borrowed
        // here.
        unsafe { _mm_stream_si128(vector, _mm_loadu_si128(bytes.as_ptr().cast())) };
    }
}

#[cfg(not(target_arch = "x86_64"))]
fn stream(source: &[u8], out: &mut [u8]) {
    out.copy_from_slice(source);
}

/// Makes streamed bytes visible to other threads that are notified afterwards.
#[cfg(target_arch = "x86_64")]
fn finish() {
    // SAFETY: every x86-64 has SSE.
    unsafe { std::arch::x86_64::_mm_sfence() };
}

#[cfg(not(target_arch = "x86_64"))]
fn finish() {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_copies_as_any_copy_does() {
        let bytes: Vec<u8> = (0..=250).cycle().take(500).collect();
        for start in 0..20 {
            for cut in [0, 1, 15, 16, 17, 100, 300] {
                let mut out = vec![0xFF; 600];
                let (first, second) = out[start..start + 400].split_at_mut(cut);
                copy_past_caches(&bytes, &mut [IoSliceMut::new(first), IoSliceMut::new(second)]);
                assert_eq!(out[start..start + 400], bytes[..400]);
                assert!(out[..start].iter().chain(&out[start + 400..]).all(|byte| *byte == 0xFF));
            }
        }
    }
}
