//! HDF5's checksum, which its filter 3 appends to the data.

/// Whether this is the checksum of these bytes. HDF5 before 1.6.3 swapped the bytes of each half of the checksum on
/// little-endian machines. The library accepts both forms, and so do we.
pub fn fletcher32_is_right(data: &[u8], stored: u32) -> bool {
    let computed = fletcher32(data);
    stored == computed || stored == computed.swap_bytes().rotate_left(16)
}

/// The most words whose weighted sum fits into 32 bits: 65535 · (360 · 361 / 2) < 2³².
const BLOCK_WORDS: usize = 360;

/// Fletcher's sum of big-endian 16-bit words. An odd last byte is the high half of a word.
pub fn fletcher32(data: &[u8]) -> u32 {
    let (mut first, mut second) = (0_u64, 0_u64);
    let words = data.chunks(2 * BLOCK_WORDS);
    for block in words {
        let (sum, weighted, count) = block_sums(block);
        // Adding word by word would add `first` once for each word of the block.
        second = fold(second + count * first + weighted);
        first = fold(first + sum);
    }
    // `fold` leaves 16 bits, so nothing is lost.
    u32::try_from((second << 16) | first).unwrap_or(u32::MAX)
}

/// The sum of a block's words, the sum of their running sums, and their count.
fn block_sums(block: &[u8]) -> (u64, u64, u64) {
    let pairs = block.chunks_exact(2);
    let odd = pairs.remainder().first().map(|&byte| u32::from(byte) << 8);
    let word = |pair: &[u8]| match pair {
        [high, low] => (u32::from(*high) << 8) | u32::from(*low),
        _ => 0,
    };
    let count = block.len().div_ceil(2) as u64;
    let (mut sum, mut weighted) = (0_u32, 0_u32);
    let mut weight = u32::try_from(count).unwrap_or(0);
    for pair in pairs {
        sum += word(pair);
        weighted += word(pair) * weight;
        weight -= 1;
    }
    let odd = odd.unwrap_or(0); // its weight is one
    (u64::from(sum + odd), u64::from(weighted + odd), count)
}

/// The number modulo 65535, except that only 0 gives 0. Adding the carries back leaves this.
fn fold(sum: u64) -> u64 {
    if sum == 0 { 0 } else { (sum - 1) % 65535 + 1 }
}

#[cfg(test)]
mod tests {
    use super::fletcher32;

    /// HDF5's own way: word by word, carries added back.
    fn plain(data: &[u8]) -> u32 {
        let (mut first, mut second) = (0_u32, 0_u32);
        for pair in data.chunks(2) {
            let low = pair.get(1).copied().unwrap_or(0);
            first += (u32::from(pair[0]) << 8) | u32::from(low);
            first = (first & 0xffff) + (first >> 16);
            second += first;
            second = (second & 0xffff) + (second >> 16);
        }
        first = (first & 0xffff) + (first >> 16);
        second = (second & 0xffff) + (second >> 16);
        (second << 16) | first
    }

    #[test]
    fn blocks_equal_single_words() {
        let bytes: Vec<u8> = (0..5000_u32).map(|i| (i * i / 7).to_le_bytes()[0]).collect();
        for length in (0..20).chain(700..740).chain([4999, 5000]) {
            assert_eq!(fletcher32(&bytes[..length]), plain(&bytes[..length]), "{length} bytes");
        }
        for byte in [0, 255] {
            assert_eq!(fletcher32(&[byte; 4001]), plain(&[byte; 4001]));
        }
    }
}
