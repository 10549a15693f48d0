//! The checksum of zlib's framing (RFC 1950).

const MODULUS: u32 = 65521;
/// How many bytes are summed side by side.
pub(crate) const ROW: usize = 32;
/// So many bytes can be summed before the sums must be reduced.
const RUN: usize = 5552 / ROW * ROW;

/// What a run of rows adds up to.
#[derive(Default)]
pub(crate) struct Sums {
    /// Of all bytes.
    pub(crate) bytes: u32,
    /// Of the sums of all bytes in the rows before each row.
    pub(crate) before: u32,
    /// Of each byte, times how many bytes of its row come after the one before it: from 32 to 1.
    pub(crate) weighted: u32,
}

/// The Adler-32 of the bytes. `sums` adds up to 173 rows.
#[inline(always)]
pub(crate) fn adler32(bytes: &[u8], sums: impl Fn(&[[u8; ROW]]) -> Sums) -> u32 {
    let (mut low, mut high) = (1, 0);
    for run in bytes.chunks(RUN) {
        let (rows, rest) = run.as_chunks();
        let Sums { bytes, before, weighted } = sums(rows);
        high += low * (rows.len() * ROW) as u32 + ROW as u32 * before % MODULUS + weighted % MODULUS;
        low += bytes;
        for &byte in rest {
            low += u32::from(byte);
            high += low;
        }
        low %= MODULUS;
        high %= MODULUS;
    }
    high << 16 | low
}

/// Sums for any processor.
pub(crate) fn portable(rows: &[[u8; ROW]]) -> Sums {
    let mut columns = [0; ROW];
    let mut before = [0; ROW];
    for row in rows {
        for ((column, before), &byte) in columns.iter_mut().zip(&mut before).zip(row) {
            *before += *column;
            *column += u32::from(byte);
        }
    }
    let weighted = (1..=ROW as u32).rev().zip(&columns).map(|(weight, column)| weight * column).sum();
    Sums { bytes: columns.iter().sum(), before: before.iter().sum(), weighted }
}

/// The same with AVX2.
#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,bmi1,bmi2")]
pub(crate) fn avx2(rows: &[[u8; ROW]]) -> Sums {
    use std::arch::x86_64::{
        __m256i, _mm256_add_epi32, _mm256_madd_epi16, _mm256_maddubs_epi16, _mm256_sad_epu8,
        _mm256_set1_epi16, _mm256_setzero_si256,
    };
    let zero = _mm256_setzero_si256();
    let weights = vector(&std::array::from_fn(|column| (ROW - column) as u8));
    let (mut bytes, mut before, mut weighted): (__m256i, __m256i, __m256i) = (zero, zero, zero);
    for row in rows {
        let row = vector(row);
        before = _mm256_add_epi32(before, bytes);
        bytes = _mm256_add_epi32(bytes, _mm256_sad_epu8(row, zero));
        // At most 255 * (32 + 31), which fits into 16 bits.
        let pairs = _mm256_maddubs_epi16(row, weights);
        weighted = _mm256_add_epi32(weighted, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
    }
    Sums { bytes: total(bytes), before: total(before), weighted: total(weighted) }
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn vector(row: &[u8; ROW]) -> std::arch::x86_64::__m256i {
    let [a, b, c, d] = std::array::from_fn(|part| {
        let mut word = [0; 8];
        word.copy_from_slice(&row[8 * part..8 * part + 8]);
        i64::from_le_bytes(word)
    });
    std::arch::x86_64::_mm256_set_epi64x(d, c, b, a)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2")]
fn total(sums: std::arch::x86_64::__m256i) -> u32 {
    use std::arch::x86_64::_mm256_extract_epi64;
    let words = [
        _mm256_extract_epi64::<0>(sums),
        _mm256_extract_epi64::<1>(sums),
        _mm256_extract_epi64::<2>(sums),
        _mm256_extract_epi64::<3>(sums),
    ];
    words.iter().map(|word| word.cast_unsigned()).map(|word| word as u32 + (word >> 32) as u32).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As RFC 1950 defines it.
    fn by_definition(bytes: &[u8]) -> u32 {
        let (low, high) = bytes.iter().fold((1, 0), |(low, high), &byte| {
            let low = (low + u32::from(byte)) % MODULUS;
            (low, (high + low) % MODULUS)
        });
        high << 16 | low
    }

    #[test]
    fn sums_of_rows_are_those_of_the_definition() {
        for nbytes in [0, 1, 31, 32, 33, 1000, RUN - 1, RUN, RUN + 40, 3 * RUN + 7] {
            for bytes in
                [vec![255; nbytes], (0..nbytes).map(|index| (index * 7 + index / 300) as u8).collect()]
            {
                let expected = by_definition(&bytes);
                assert_eq!(adler32(&bytes, portable), expected);
                #[cfg(target_arch = "x86_64")]
                if is_x86_feature_detected!("avx2") {
                    #[allow(unsafe_code)]
                    // SAFETY: the processor has it.
                    let found = adler32(&bytes, |rows| unsafe { avx2(rows) });
                    assert_eq!(found, expected);
                }
            }
        }
    }
}
