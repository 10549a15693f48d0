//! Interleaves planes with x86 vector instructions: AVX2 if the machine has it, otherwise SSE2.
//!
//! This is one of the files with `unsafe`: it loads and stores through pointers and calls AVX2 code.
#![allow(unsafe_code)]

use std::arch::is_x86_feature_detected;
#[allow(clippy::wildcard_imports)] // nothing but instructions
use std::arch::x86_64::*;

use super::planes::Planes;

/// Fills `out` with elements of 2, 4 or 8 bytes, or of a multiple of 8. Returns how many it wrote; the caller does the
/// rest, and all other widths.
pub(super) fn interleave(planes: Planes<'_>, element_nbytes: usize, out: &mut [u8]) -> usize {
    let narrow = |done: usize, out: &mut [u8]| {
        let (planes, out) = (planes.skip(done), &mut out[done * element_nbytes..]);
        // SAFETY: every x86-64 has SSE2.
        done + unsafe { sse2::interleave(planes, element_nbytes, out) }
    };
    match element_nbytes {
        2 | 4 | 8 if is_x86_feature_detected!("avx2") => {
            // SAFETY: the machine has AVX2.
            let done = unsafe { avx2::interleave(planes, element_nbytes, out) };
            narrow(done, out)
        }
        2 | 4 | 8 => narrow(0, out),
        // SAFETY: every x86-64 has SSE2.
        _ if element_nbytes.is_multiple_of(8) => unsafe {
            sse2::interleave_octets(planes, element_nbytes, out)
        },
        _ => 0,
    }
}

/// Turns two, four or eight registers of planes into as many registers of elements, for each instruction set.
macro_rules! interleavers {
    ($feature:literal, $register:ty, $width:literal, $load:ident, $store:ident, $in_order:ident,
     $low8:ident, $high8:ident, $low16:ident, $high16:ident, $low32:ident, $high32:ident) => {
        #[inline]
        #[target_feature(enable = $feature)]
        fn pairs(planes: [$register; 2]) -> [$register; 2] {
            let [a, b] = planes;
            [$low8(a, b), $high8(a, b)]
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn quads(planes: [$register; 4]) -> [$register; 4] {
            let [a, b, c, d] = planes;
            let [a, b] = [pairs([a, b]), pairs([c, d])];
            [$low16(a[0], b[0]), $high16(a[0], b[0]), $low16(a[1], b[1]), $high16(a[1], b[1])]
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn octets(planes: [$register; 8]) -> [$register; 8] {
            let [a, b, c, d, e, f, g, h] = planes;
            let [a, b] = [quads([a, b, c, d]), quads([e, f, g, h])];
            [
                $low32(a[0], b[0]),
                $high32(a[0], b[0]),
                $low32(a[1], b[1]),
                $high32(a[1], b[1]),
                $low32(a[2], b[2]),
                $high32(a[2], b[2]),
                $low32(a[3], b[3]),
                $high32(a[3], b[3]),
            ]
        }

        /// One register's width of bytes at each position.
        #[inline]
        #[target_feature(enable = $feature)]
        fn load<const N: usize>(planes: &[&[u8]; N], at: usize) -> [$register; N] {
            planes.map(|plane| {
                let bytes = &plane[at..at + $width];
                // SAFETY: `bytes` is as long as a register; the load needs no alignment.
                unsafe { $load(bytes.as_ptr().cast()) }
            })
        }

        #[inline]
        #[target_feature(enable = $feature)]
        fn store<const N: usize>(elements: [$register; N], out: &mut [u8]) {
            for (register, bytes) in $in_order(elements).into_iter().zip(out.chunks_exact_mut($width)) {
                // SAFETY: `bytes` is as long as a register; the store needs no alignment.
                unsafe { $store(bytes.as_mut_ptr().cast(), register) }
            }
        }

        /// Fills `out` with elements of 2, 4 or 8 bytes. Returns how many it wrote.
        #[target_feature(enable = $feature)]
        pub(super) fn interleave(planes: Planes<'_>, element_nbytes: usize, out: &mut [u8]) -> usize {
            let groups = out.chunks_exact_mut($width * element_nbytes);
            let done = groups.len() * $width;
            let positions = (0..).step_by($width);
            match element_nbytes {
                2 => {
                    let planes = std::array::from_fn(|index| planes.plane(index));
                    groups.zip(positions).for_each(|(group, at)| store(pairs(load(&planes, at)), group));
                }
                4 => {
                    let planes = std::array::from_fn(|index| planes.plane(index));
                    groups.zip(positions).for_each(|(group, at)| store(quads(load(&planes, at)), group));
                }
                8 => {
                    let planes = std::array::from_fn(|index| planes.plane(index));
                    groups.zip(positions).for_each(|(group, at)| store(octets(load(&planes, at)), group));
                }
                _ => return 0,
            }
            done
        }
    };
}

mod sse2 {
    //! Sixteen elements at a time.
    #[allow(clippy::wildcard_imports)]
    use super::*;

    interleavers!(
        "sse2",
        __m128i,
        16,
        _mm_loadu_si128,
        _mm_storeu_si128,
        in_order,
        _mm_unpacklo_epi8,
        _mm_unpackhi_epi8,
        _mm_unpacklo_epi16,
        _mm_unpackhi_epi16,
        _mm_unpacklo_epi32,
        _mm_unpackhi_epi32
    );

    #[inline]
    fn in_order<const N: usize>(registers: [__m128i; N]) -> [__m128i; N] {
        registers
    }

    /// Fills `out` with elements of a multiple of 8 bytes, eight planes at a time. Returns how many it wrote.
    #[target_feature(enable = "sse2")]
    pub(super) fn interleave_octets(planes: Planes<'_>, element_nbytes: usize, out: &mut [u8]) -> usize {
        let groups = out.chunks_exact_mut(16 * element_nbytes);
        let done = groups.len() * 16;
        for (group, at) in groups.zip((0..).step_by(16)) {
            for first in (0..element_nbytes).step_by(8) {
                let eight: [&[u8]; 8] = std::array::from_fn(|index| planes.plane(first + index));
                let pairs = octets(load(&eight, at));
                for (pair, elements) in pairs.into_iter().zip(group.chunks_exact_mut(2 * element_nbytes)) {
                    let (even, odd) = elements.split_at_mut(element_nbytes);
                    let (even, odd) = (&mut even[first..first + 8], &mut odd[first..first + 8]);
                    // SAFETY: both are eight bytes, half a register; the stores need no alignment.
                    unsafe {
                        _mm_storel_epi64(even.as_mut_ptr().cast(), pair);
                        _mm_storel_epi64(odd.as_mut_ptr().cast(), _mm_unpackhi_epi64(pair, pair));
                    }
                }
            }
        }
        done
    }
}

mod avx2 {
    //! Thirty-two elements at a time. Instructions work on each half of a register separately, so the halves are
    //! reordered at the end.
    #[allow(clippy::wildcard_imports)]
    use super::*;

    interleavers!(
        "avx2",
        __m256i,
        32,
        _mm256_loadu_si256,
        _mm256_storeu_si256,
        in_order,
        _mm256_unpacklo_epi8,
        _mm256_unpackhi_epi8,
        _mm256_unpacklo_epi16,
        _mm256_unpackhi_epi16,
        _mm256_unpacklo_epi32,
        _mm256_unpackhi_epi32
    );

    /// The low halves hold elements 0 to 15, the high ones 16 to 31.
    #[inline]
    #[target_feature(enable = "avx2")]
    fn in_order<const N: usize>(registers: [__m256i; N]) -> [__m256i; N] {
        std::array::from_fn(|index| {
            let pair = 2 * (index % (N / 2));
            let (first, second) = (registers[pair], registers[pair + 1]);
            if index < N / 2 {
                _mm256_permute2x128_si256::<0x20>(first, second)
            } else {
                _mm256_permute2x128_si256::<0x31>(first, second)
            }
        })
    }
}
