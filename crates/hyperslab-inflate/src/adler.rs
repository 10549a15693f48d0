//! The checksum of zlib's framing (RFC 1950).

const MODULUS: u32 = 65521;
/// So many bytes can be summed before the sums must be reduced.
const RUN: usize = 5552 / 32 * 32;
const LANES: usize = 32;

/// The Adler-32 of the bytes.
#[inline(always)]
pub(crate) fn adler32(bytes: &[u8]) -> u32 {
    let (mut low, mut high) = (1, 0);
    for run in bytes.chunks(RUN) {
        let (rows, rest) = run.as_chunks::<LANES>();
        let mut sums = [0_u32; LANES]; // of each column
        let mut weighted = [0_u32; LANES]; // of the sums before each row
        for row in rows {
            for ((sum, weighted), &byte) in sums.iter_mut().zip(&mut weighted).zip(row) {
                *weighted += *sum;
                *sum += u32::from(byte);
            }
        }
        let nbytes = (rows.len() * LANES) as u32;
        high += low * nbytes + LANES as u32 * weighted.iter().sum::<u32>() % MODULUS;
        high += (0..).zip(&sums).map(|(column, sum)| (LANES as u32 - column) * sum % MODULUS).sum::<u32>();
        low += sums.iter().sum::<u32>();
        for &byte in rest {
            low += u32::from(byte);
            high += low;
        }
        low %= MODULUS;
        high %= MODULUS;
    }
    high << 16 | low
}
