//! How matches are copied, by what the processor has.

use crate::adler::{self, ROW, Sums};
use crate::fast::{Cursor, Limits, rare};
use crate::tables::Tables;

/// Copies within the output. Both write up to 31 bytes more than they must.
pub(crate) trait Copies {
    /// Copies 32 bytes from at least 32 `back` before `output`; or 16 from anywhere, as if byte by byte, if they
    /// `MAY_OVERLAP`.
    ///
    /// # Safety
    /// `back`, which is not 0, bytes before `output`, and 32 after it belong to the same output.
    unsafe fn short<const MAY_OVERLAP: bool>(output: *mut u8, back: usize);

    /// Copies `length` bytes from `back` before `output`, as if byte by byte.
    ///
    /// # Safety
    /// `back`, which is not 0, bytes before `output`, and `length + 32` after it belong to the same output.
    unsafe fn long(output: *mut u8, back: usize, length: usize);

    /// What a checksum sums.
    ///
    /// # Safety
    /// The processor has what these copies use.
    unsafe fn sums(rows: &[[u8; ROW]]) -> Sums;

    /// [`crate::fast::rare`], as one function for the processor.
    ///
    /// # Safety
    /// As there.
    unsafe fn rare(cursor: Cursor, limits: Limits, tables: &Tables) -> Option<Cursor>;
}

/// # Safety
/// `NBYTES` bytes can be read and written.
#[inline(always)]
unsafe fn copy<const NBYTES: usize>(from: *const u8, to: *mut u8) {
    // SAFETY: the caller's promise. All bytes are read before any is written, so they may overlap.
    unsafe { to.cast::<[u8; NBYTES]>().write(from.cast::<[u8; NBYTES]>().read()) };
}

/// Copies blocks that do not overlap.
///
/// # Safety
/// As [`Copies::long`]; `back` is at least `NBYTES`, which is at most 32.
#[inline(always)]
unsafe fn blocks<const NBYTES: usize>(output: *mut u8, back: usize, length: usize) {
    let from = output.wrapping_sub(back);
    let mut done = 0;
    loop {
        // SAFETY: the caller's promise: at most `NBYTES - 1` more than `length` are written.
        unsafe { copy::<NBYTES>(from.wrapping_add(done), output.wrapping_add(done)) };
        done += NBYTES;
        if done >= length {
            break;
        }
    }
}

/// Any processor.
pub(crate) struct Portable;

impl Copies for Portable {
    #[inline(always)]
    unsafe fn short<const MAY_OVERLAP: bool>(output: *mut u8, back: usize) {
        // SAFETY: the caller's promise.
        unsafe {
            if MAY_OVERLAP && back < 32 {
                Self::long(output, back, 16);
            } else {
                copy::<32>(output.wrapping_sub(back), output);
            }
        }
    }

    #[inline(always)]
    unsafe fn long(output: *mut u8, back: usize, length: usize) {
        // SAFETY: the caller's promise, and the comparisons.
        unsafe {
            if back >= 32 {
                blocks::<32>(output, back, length);
            } else if back >= 8 {
                blocks::<8>(output, back, length);
            } else {
                near(output, back, length);
            }
        }
    }

    unsafe fn sums(rows: &[[u8; ROW]]) -> Sums {
        adler::portable(rows)
    }

    #[inline(never)]
    unsafe fn rare(cursor: Cursor, limits: Limits, tables: &Tables) -> Option<Cursor> {
        // SAFETY: the caller's promise.
        unsafe { rare::<Self>(cursor, limits, tables) }
    }
}

/// # Safety
/// As [`Copies::long`]; `back` is less than 8.
#[inline(always)]
unsafe fn near(output: *mut u8, back: usize, length: usize) {
    let mut pattern = [0; 8];
    for (index, byte) in pattern.iter_mut().enumerate() {
        // SAFETY: one of the `back` bytes before the output.
        *byte = unsafe { output.wrapping_sub(back).wrapping_add(index % back).read() };
    }
    let forward = 8 - 8 % back;
    let mut done = 0;
    while done < length {
        // SAFETY: at most 7 bytes more than `length` are written.
        unsafe { output.wrapping_add(done).cast::<[u8; 8]>().write(pattern) };
        done += forward;
    }
}

/// x86 with AVX2 and BMI2.
#[cfg(target_arch = "x86_64")]
pub(crate) struct Avx2;

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::{__m128i, _mm_load_si128, _mm_loadu_si128, _mm_shuffle_epi8, _mm_storeu_si128};

    use super::{Avx2, Copies, Cursor, Limits, ROW, Sums, Tables, adler, blocks, copy, rare};

    /// Which of the bytes from `back` before come next, if they repeat; and how many of these 16 are whole repeats.
    #[repr(align(64))]
    struct Patterns([[u8; 16]; 17], [u8; 17]);

    static PATTERNS: Patterns = {
        let mut patterns = [[0; 16]; 17];
        let mut forward = [16; 17];
        let mut back = 0;
        while back <= 16 {
            let mut index = 0;
            while index < 16 {
                let repeats = if back == 0 { 16 } else { back };
                patterns[back][index] = (index % repeats) as u8;
                index += 1;
            }
            if back > 0 {
                forward[back] = (16 - 16 % back) as u8;
            }
            back += 1;
        }
        Patterns(patterns, forward)
    };

    impl Copies for Avx2 {
        #[inline(always)]
        unsafe fn short<const MAY_OVERLAP: bool>(output: *mut u8, back: usize) {
            if !MAY_OVERLAP {
                // SAFETY: the caller's promise.
                return unsafe { copy::<32>(output.wrapping_sub(back), output) };
            }
            let from = output.wrapping_sub(back);
            // SAFETY: the caller's promise; the patterns are aligned.
            unsafe {
                let bytes = _mm_loadu_si128(from.cast::<__m128i>());
                let pattern = _mm_load_si128(PATTERNS.0[back.min(16)].as_ptr().cast::<__m128i>());
                _mm_storeu_si128(output.cast::<__m128i>(), _mm_shuffle_epi8(bytes, pattern));
            }
        }

        #[inline(always)]
        unsafe fn long(output: *mut u8, back: usize, length: usize) {
            // SAFETY: the caller's promise, and the comparisons.
            unsafe {
                if back >= 32 {
                    blocks::<32>(output, back, length);
                    return;
                }
                if back >= 16 {
                    blocks::<16>(output, back, length);
                } else {
                    repeat(output, back, length);
                }
            }
        }

        #[inline(always)]
        unsafe fn sums(rows: &[[u8; ROW]]) -> Sums {
            // SAFETY: the caller's promise.
            unsafe { adler::avx2(rows) }
        }

        #[inline(always)]
        unsafe fn rare(cursor: Cursor, limits: Limits, tables: &Tables) -> Option<Cursor> {
            // SAFETY: who uses these copies has asked the processor; the rest is the caller's promise.
            unsafe { rare_avx2(cursor, limits, tables) }
        }
    }

    #[inline(never)]
    #[target_feature(enable = "avx2,bmi1,bmi2")]
    unsafe fn rare_avx2(cursor: Cursor, limits: Limits, tables: &Tables) -> Option<Cursor> {
        // SAFETY: the caller's promise.
        unsafe { rare::<Avx2>(cursor, limits, tables) }
    }

    /// # Safety
    /// As [`Copies::long`]; `back` is less than 16.
    #[inline(always)]
    unsafe fn repeat(output: *mut u8, back: usize, length: usize) {
        let forward = usize::from(PATTERNS.1[back & 15]);
        let mut done = 0;
        // SAFETY: the caller's promise; at most 15 bytes more than `length` are written.
        unsafe {
            let bytes = _mm_loadu_si128(output.wrapping_sub(back).cast::<__m128i>());
            let pattern = _mm_load_si128(PATTERNS.0[back & 15].as_ptr().cast::<__m128i>());
            let bytes = _mm_shuffle_epi8(bytes, pattern);
            while done < length {
                _mm_storeu_si128(output.wrapping_add(done).cast::<__m128i>(), bytes);
                done += forward;
            }
        }
    }
}
