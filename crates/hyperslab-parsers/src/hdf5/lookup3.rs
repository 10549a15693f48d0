//! Bob Jenkins' lookup3 hash ("hashlittle", start value 0): the checksum of HDF5's structures since 1.8.

use crate::error::Error;

/// Bytes of the checksum at the end of a structure.
pub(crate) const CHECKSUM_NBYTES: usize = 4;

/// The bytes of a structure before its checksum, which is its last four bytes. Fails unless they match.
pub(crate) fn checked<'a>(what: &'static str, offset: u64, bytes: &'a [u8]) -> Result<&'a [u8], Error> {
    checked_beside(what, offset, bytes, |_, _| ()).map(|(content, ())| content)
}

/// The same, along with the result of `read` on these bytes, even if they do not match. `read` lets the hash advance
/// now and then: each step of the hash waits for the one before, so the processor has time for both.
pub(crate) fn checked_beside<'a, T>(
    what: &'static str,
    offset: u64,
    bytes: &'a [u8],
    read: impl FnOnce(&'a [u8], &mut Hashing<'a>) -> T,
) -> Result<(&'a [u8], T), Error> {
    let position = bytes.len().checked_sub(CHECKSUM_NBYTES);
    let Some((content, stored)) = position.and_then(|position| bytes.split_at_checked(position)) else {
        return Err(Error::invalid(what, offset, "it is too short for a checksum"));
    };
    let mut hashing = Hashing::new(content);
    let made = read(content, &mut hashing);
    let (found, computed) = (word(stored), hashing.finish());
    if is_right(found, computed) {
        Ok((content, made))
    } else {
        Err(Error::Checksum { what, offset, found, computed })
    }
}

/// Whether a checksum matches. Under a fuzzer all checksums match, so damage reaches the code behind them.
pub(crate) fn is_right(found: u32, computed: u32) -> bool {
    found == computed || cfg!(fuzzing)
}

/// How many bytes are mixed in at a time.
const BLOCK_NBYTES: usize = 12;

/// The hash of some bytes.
pub(crate) fn lookup3(bytes: &[u8]) -> u32 {
    Hashing::new(bytes).finish()
}

/// The hash so far.
pub(crate) struct Hashing<'a> {
    state: [u32; 3],
    rest: &'a [u8],
}

impl<'a> Hashing<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        // The hash mixes in the length modulo 2^32.
        #[allow(clippy::cast_possible_truncation)]
        let start = 0xdead_beef_u32.wrapping_add(bytes.len() as u32);
        Self { state: [start; 3], rest: bytes }
    }

    /// Goes on until about this many bytes are left.
    #[inline]
    pub fn go_on(&mut self, left: usize) {
        let (mut state, mut rest) = (self.state, self.rest);
        while rest.len() > left.max(BLOCK_NBYTES) {
            for part in &mut state {
                let Some((&four, after)) = rest.split_first_chunk() else { break };
                *part = part.wrapping_add(u32::from_le_bytes(four));
                rest = after;
            }
            mix(&mut state);
        }
        (self.state, self.rest) = (state, rest);
    }

    fn finish(mut self) -> u32 {
        self.go_on(0);
        if !self.rest.is_empty() {
            add(&mut self.state, self.rest);
            finish(&mut self.state);
        }
        let [.., hash] = self.state;
        hash
    }
}

/// Up to four bytes as a little-endian number.
fn word(bytes: &[u8]) -> u32 {
    match bytes {
        [a, b, c, d] => u32::from_le_bytes([*a, *b, *c, *d]),
        shorter => shorter.iter().rev().fold(0, |value, &byte| value << 8 | u32::from(byte)),
    }
}

/// Up to twelve bytes.
fn add(state: &mut [u32; 3], block: &[u8]) {
    for (part, four) in state.iter_mut().zip(block.chunks(4)) {
        *part = part.wrapping_add(word(four));
    }
}

#[inline]
fn mix([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: u32, bits: u32| *x = x.wrapping_sub(y) ^ y.rotate_left(bits);
    step(a, *c, 4);
    *c = c.wrapping_add(*b);
    step(b, *a, 6);
    *a = a.wrapping_add(*c);
    step(c, *b, 8);
    *b = b.wrapping_add(*a);
    step(a, *c, 16);
    *c = c.wrapping_add(*b);
    step(b, *a, 19);
    *a = a.wrapping_add(*c);
    step(c, *b, 4);
    *b = b.wrapping_add(*a);
}

fn finish([a, b, c]: &mut [u32; 3]) {
    let step = |x: &mut u32, y: u32, bits: u32| *x = (*x ^ y).wrapping_sub(y.rotate_left(bits));
    step(c, *b, 14);
    step(a, *c, 11);
    step(b, *a, 25);
    step(c, *b, 16);
    step(a, *c, 4);
    step(b, *a, 14);
    step(c, *b, 24);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_values() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn content_before_the_checksum() {
        let mut bytes = b"Four score and seven years ago".to_vec();
        bytes.extend(0x1777_0551_u32.to_le_bytes());
        assert_eq!(checked("a test", 7, &bytes).map(<[u8]>::len), Ok(30));
        bytes[3] ^= 1;
        assert!(matches!(checked("a test", 7, &bytes), Err(Error::Checksum { offset: 7, .. })));
        assert!(checked("a test", 7, b"abc").is_err());
    }
}
