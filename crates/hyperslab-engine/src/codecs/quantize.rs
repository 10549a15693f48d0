//! FITS's floats as scaled integers (FITS Standard 4.0, section 10.2), with the dither that was added before rounding.

use std::sync::OnceLock;

use hyperslab_core::{ByteOrder, Dither, Element, Quantum};

use super::buffer::{Buffer, Size};
use super::delta::whole_elements;
use super::numbers::{Kind, Number};
use crate::Error;

const CODEC: &str = "quantize";
const RANDOM_COUNT: usize = 10_000;
/// The integer that stands for 0 if dithering preserves zeros.
const ZERO: i32 = -2_147_483_646;

/// Decodes the integers of chunk number `chunk`: computes in float64, as cfitsio does, then rounds to the element.
pub(super) fn decode(
    chunks: &[Quantum],
    chunk: u64,
    dither: Dither,
    decoded: &Element,
    input: &[u8],
    size: Size,
    out: &mut Buffer,
) -> Result<usize, Error> {
    let stored = Number::of(CODEC, &Element::integer(4, true, ByteOrder::Big))?;
    let decoded = Number::of(CODEC, decoded)?;
    let quantum = usize::try_from(chunk).ok().and_then(|chunk| chunks.get(chunk));
    let (Some(quantum), Kind::Float32 | Kind::Float64) = (quantum, decoded.kind) else {
        return Err(Error::Parameters {
            codec: CODEC,
            problem: "a chunk without a scale, or elements that are not floats",
        });
    };
    let nbytes = size.admit(CODEC, whole_elements(CODEC, input, stored)?.saturating_mul(decoded.nbytes))?;
    let elements = out.space(nbytes)?.chunks_exact_mut(decoded.nbytes);
    let mut randoms = Randoms::from(quantum.dither_start);
    for (bytes, out) in input.chunks_exact(stored.nbytes).zip(elements) {
        #[allow(clippy::cast_possible_truncation)] // four bytes, widened
        let number = stored.bits(bytes) as i32;
        let added = if dither == Dither::None { None } else { Some(randoms.next()) };
        let value = if quantum.null == Some(number) {
            f64::NAN
        } else if dither == Dither::KeepingZeros && number == ZERO {
            0.0
        } else {
            let exact = added.map_or(f64::from(number), |added| f64::from(number) - f64::from(added) + 0.5);
            exact * quantum.scale + quantum.zero
        };
        decoded.put_bits(decoded.bits_of(value), out);
    }
    Ok(nbytes)
}

/// The standard's random numbers (appendix I): Park and Miller's generator, started at 1.
fn table() -> &'static [f32; RANDOM_COUNT] {
    static TABLE: OnceLock<[f32; RANDOM_COUNT]> = OnceLock::new();
    TABLE.get_or_init(|| {
        let (multiplier, modulus) = (16_807_u64, 2_147_483_647_u64);
        let mut seed = 1_u64;
        std::array::from_fn(|_| {
            seed = seed * multiplier % modulus;
            #[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation)]
            // 31 bits; cfitsio uses a C float
            let random = (seed as f64 / modulus as f64) as f32;
            random
        })
    })
}

/// A walk through the table. It starts at a position that the table gives, goes to the end, and continues at the next
/// such position.
struct Randoms {
    table: &'static [f32; RANDOM_COUNT],
    start: usize,
    next: usize,
}

impl Randoms {
    fn from(start: u32) -> Self {
        let mut randoms = Self { table: table(), start: start as usize % RANDOM_COUNT, next: 0 };
        randoms.enter();
        randoms
    }

    fn enter(&mut self) {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // below 500
        let position = (self.table[self.start] * 500.0) as usize;
        self.next = position;
    }

    fn next(&mut self) -> f32 {
        let random = self.table[self.next];
        self.next += 1;
        if self.next == RANDOM_COUNT {
            self.start = (self.start + 1) % RANDOM_COUNT;
            self.enter();
        }
        random
    }
}
