//! Decodes a chunk: the result must be an error, or exactly the bytes asked for, and the same again in used memory.

use std::cell::RefCell;

use hyperslab_core::Codec;
use hyperslab_engine::Error;
use hyperslab_engine::codecs::{self, Decoded, Scratch};
use miniz_oxide::inflate::TINFLStatus;
use miniz_oxide::inflate::core::{self, inflate_flags};

use crate::chain_line::Case;
use crate::memory;

thread_local! {
    static USED: RefCell<Scratch> = RefCell::default();
}

/// The target.
pub fn decode(data: &[u8]) {
    let Some(case) = Case::of(data) else { return };
    memory::bounded((16 << 20) + 16 * case.decoded_nbytes, || {
        let fresh = decoded(&case, &mut Scratch::default());
        let again = USED.with_borrow_mut(|scratch| decoded(&case, scratch));
        assert_eq!(fresh, again, "with memory that was used before");
        if let Ok(bytes) = &fresh {
            assert_eq!(bytes.len(), case.decoded_nbytes);
        }
        if case.chain == [Codec::Zlib] && case.mask & 1 == 0 {
            compare_with_miniz(&case, &fresh);
        }
    });
}

fn decoded(case: &Case<'_>, scratch: &mut Scratch) -> Result<Vec<u8>, Error> {
    codecs::decode(&case.chain, 0, case.mask, case.encoded, case.decoded_nbytes, scratch).map(plain)
}

/// The whole chunk, unshuffled at once and in two pieces.
fn plain(decoded: Decoded<'_>) -> Vec<u8> {
    match decoded {
        Decoded::Plain(bytes) => bytes.to_vec(),
        Decoded::Shuffled(shuffled) => {
            let (count, width) = (shuffled.planes.len() / shuffled.element_nbytes, shuffled.element_nbytes);
            let (mut whole, mut pieces) = (vec![0; shuffled.planes.len()], vec![0; count * width]);
            shuffled.unshuffle(&mut whole);
            let middle = count / 3;
            let (first, second) = pieces.split_at_mut(middle * width);
            shuffled.gather(0, 1, first);
            shuffled.gather(middle, 1, second);
            assert_eq!(whole[..pieces.len()], pieces, "unshuffled in pieces");
            whole
        }
    }
}

/// We must decode what another implementation accepts, to the same bytes, and nothing else.
fn compare_with_miniz(case: &Case<'_>, found: &Result<Vec<u8>, Error>) {
    let theirs = inflated(case.encoded, case.decoded_nbytes);
    if found.is_ok() || theirs.as_ref().map(Vec::len) == Some(case.decoded_nbytes) {
        assert_eq!(found.as_ref().ok(), theirs.as_ref(), "as miniz_oxide has it");
    }
}

/// A zlib stream of at most this many bytes. Its framing is checked here, because miniz_oxide skips that check under
/// fuzzing.
fn inflated(encoded: &[u8], most: usize) -> Option<Vec<u8>> {
    let (header, rest) = encoded.split_at_checked(2)?;
    let is_header = header[0] & 0x0f == 8 && header[0] >> 4 <= 7 && header[1] & 0x20 == 0;
    let is_checked = u16::from_be_bytes([header[0], header[1]]).is_multiple_of(31);
    let mut out = vec![0; most];
    let flags = inflate_flags::TINFL_FLAG_USING_NON_WRAPPING_OUTPUT_BUF;
    let (status, used, made) = core::decompress(&mut Box::default(), rest, &mut out, 0, flags);
    out.truncate(made);
    let checksum = rest.get(used..used + 4)?;
    let is_right = checksum == adler2::adler32_slice(&out).to_be_bytes();
    (is_header && is_checked && is_right && status == TINFLStatus::Done).then_some(out)
}
