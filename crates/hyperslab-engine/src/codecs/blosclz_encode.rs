//! Encodes streams of `BloscLZ` as version 2.5 does, which c-blosc 1.21 has: it looks for copies with a table of what was seen
//! last, and leaves a stream alone whose last quarter promises too little.

const MOST_LITERALS: usize = 32;
/// Copies from nearer than this take two bytes, others four.
const NEAR_DISTANCE: usize = 8191;
const MOST_DISTANCE: usize = 65_535 + NEAR_DISTANCE - 1;
const TABLE_BITS: u32 = 14;
const PROBE_BITS: u32 = 12;
/// No copy begins in the last bytes.
const TAIL_NBYTES: usize = 12;
const LEAST_NBYTES: usize = 66;
/// How much shorter the probe must become at each level.
const LEAST_RATIOS: [f64; 10] = [0.0, 2.0, 1.5, 1.2, 1.2, 1.2, 1.2, 1.15, 1.1, 1.0];
/// Marks the format in the first instruction.
const MARK: u8 = 1 << 5;

/// Encodes one stream; `None` if it would not become shorter, or too little.
pub(super) fn encode(bytes: &[u8], level: usize, is_split: bool) -> Option<Vec<u8>> {
    let part = &bytes[bytes.len() - bytes.len() / 4..];
    let ratio = probed_ratio(part);
    if ratio < *LEAST_RATIOS.get(level)? || bytes.len() < LEAST_NBYTES {
        return None;
    }
    let shift = if is_split && ratio >= 4.0 { 4 } else { 3 };
    let table_bits = match level {
        1 => TABLE_BITS - 2,
        2 => TABLE_BITS - 1,
        _ => TABLE_BITS,
    };
    let mut search = Search::new(bytes, table_bits, shift, level == 9);
    let mut out = Vec::with_capacity(bytes.len());
    let (mut at, mut literals) = (4, 0);
    while at + TAIL_NBYTES < bytes.len() {
        match search.copy_at(at).filter(|copy| copy.length > 5 || copy.distance <= NEAR_DISTANCE) {
            Some(copy) => {
                push_literals(&mut out, &bytes[literals..at]);
                push_copy(&mut out, &copy);
                search.note_end(at + copy.length);
                at += copy.length + 2;
                literals = at;
            }
            None => at += 1,
        }
        if out.len() >= bytes.len() {
            return None;
        }
    }
    push_literals(&mut out, &bytes[literals..]);
    *out.first_mut()? |= MARK;
    (out.len() < bytes.len()).then_some(out)
}

/// How much shorter the first bytes become.
fn probed_ratio(bytes: &[u8]) -> f64 {
    let bytes = &bytes[..bytes.len().min(1 << PROBE_BITS)];
    let mut search = Search::new(bytes, PROBE_BITS, 3, false);
    let (mut at, mut literals, mut nbytes) = (0, 4, 5);
    while at + TAIL_NBYTES < bytes.len() {
        let Some(copy) = search.copy_at(at) else {
            (at, literals, nbytes) = (at + 1, literals + 1, nbytes + 1);
            if literals == MOST_LITERALS {
                (literals, nbytes) = (0, nbytes + 1);
            }
            continue;
        };
        let long = if copy.length >= 7 { (copy.length - 7) / 255 + 1 } else { 0 };
        let short = if copy.distance <= NEAR_DISTANCE { 2 } else { 4 };
        nbytes = nbytes + long + short + 1 - usize::from(literals == 0);
        literals = 0;
        search.note_end(at + copy.length);
        at += copy.length + 2;
    }
    let as_float = |count: usize| u32::try_from(count).map_or(0.0, f64::from);
    as_float(at) / as_float(nbytes)
}

/// A copy of earlier bytes: two more than its length says.
struct Copy {
    distance: usize,
    length: usize,
}

struct Search<'b> {
    bytes: &'b [u8],
    last_seen: Vec<u32>,
    table_bits: u32,
    /// How much less than what is equal is copied, and the shortest length.
    shift: usize,
    is_thorough: bool,
}

impl<'b> Search<'b> {
    fn new(bytes: &'b [u8], table_bits: u32, shift: usize, is_thorough: bool) -> Self {
        Self { bytes, last_seen: vec![0; 1 << table_bits], table_bits, shift, is_thorough }
    }

    fn four(&self, at: usize) -> u32 {
        self.bytes[at..].first_chunk().map_or(0, |four| u32::from_le_bytes(*four))
    }

    fn place(&self, four: u32) -> usize {
        (four.wrapping_mul(2_654_435_761) >> (32 - self.table_bits)) as usize
    }

    #[allow(clippy::cast_possible_truncation)] // Blosc holds less than 2 GiB
    fn note(&mut self, four: u32, at: usize) -> usize {
        let place = self.place(four);
        std::mem::replace(&mut self.last_seen[place], at as u32) as usize
    }

    /// The copy that begins here, if there is one that is long enough.
    fn copy_at(&mut self, at: usize) -> Option<Copy> {
        let four = self.four(at);
        let before = self.note(four, at);
        let distance = at - before;
        if distance == 0 || distance >= MOST_DISTANCE || self.four(before) != four {
            return None;
        }
        let last = self.bytes.len() - 1; // which is never copied
        let (earlier, here) = (&self.bytes[before + 4..], &self.bytes[at + 4..last]);
        let equal = same_nbytes(earlier, here);
        let end = at + 4 + (equal + 1).min(here.len());
        let length = (end - at).checked_sub(self.shift)?;
        (length >= self.shift).then_some(Copy { distance, length })
    }

    /// Notes what stands at the end of a copy.
    fn note_end(&mut self, at: usize) {
        let four = self.four(at);
        self.note(four, at);
        if self.is_thorough {
            self.note(four >> 8, at + 1);
        }
    }
}

/// How many bytes are equal from the start.
fn same_nbytes(one: &[u8], other: &[u8]) -> usize {
    let eights =
        one.chunks_exact(8).zip(other.chunks_exact(8)).take_while(|(one, other)| one == other).count();
    let rest = one[8 * eights..].iter().zip(&other[8 * eights..]);
    8 * eights + rest.take_while(|(one, other)| one == other).count()
}

#[allow(clippy::cast_possible_truncation)] // a run has 32 literals at most
fn push_literals(out: &mut Vec<u8>, literals: &[u8]) {
    for run in literals.chunks(MOST_LITERALS) {
        out.push((run.len() - 1) as u8);
        out.extend(run);
    }
}

#[allow(clippy::cast_possible_truncation)] // the parts of a distance and of a length are bytes
fn push_copy(out: &mut Vec<u8>, copy: &Copy) {
    let distance = copy.distance - 1;
    let is_near = distance < NEAR_DISTANCE;
    let high = if is_near { distance >> 8 } else { 31 };
    out.push((copy.length.min(7) << 5 | high) as u8);
    if copy.length >= 7 {
        let more = copy.length - 7;
        out.extend(std::iter::repeat_n(255, more / 255));
        out.push((more % 255) as u8);
    }
    if is_near {
        out.push(distance as u8);
    } else {
        let beyond = distance - NEAR_DISTANCE;
        out.extend([255, (beyond >> 8) as u8, beyond as u8]);
    }
}
