//! The fast loops: several streams in turn, so that the processor works on one while another waits for its tables.
//!
//! Everything that is not safe stands here and in `copies.rs`. A loop runs only while more than [`INPUT_MARGIN`] bytes of
//! input and [`OUTPUT_MARGIN`] bytes of output are left, and the most that one round reads and writes is less than that.

use crate::bits::Bits;
use crate::copies::Copies;
use crate::huffman::{END, LITERAL, SECOND};
use crate::stream::{INPUT_MARGIN, OUTPUT_MARGIN, Stream, number};
use crate::tables::{DISTANCE_BITS, Kind, MATCH_BIT, NO_STEP, STEP_NBYTES, SYMBOL_BITS, Tables};

const SYMBOL_MASK: u64 = (1 << SYMBOL_BITS) - 1;
const DISTANCE_MASK: u64 = (1 << DISTANCE_BITS) - 1;
/// The most bytes of input that a step goes forward, and the next load reads.
const STEP_INPUT: usize = 8;
/// The most bytes of output that a step goes forward: three literals and a short match.
const STEP_OUTPUT: usize = 3 + STEP_NBYTES as usize;

/// Where a stream is, in registers.
#[derive(Clone, Copy)]
pub(crate) struct Cursor {
    input: *const u8,
    output: *mut u8,
    /// The next bits. Those above `count` are the bits of the input too, or zeros.
    bits: u64,
    /// How many bits are held: only the lowest byte counts.
    count: u64,
}

/// How far a cursor may go.
#[derive(Clone, Copy)]
pub(crate) struct Limits {
    start: *const u8,
    input: *const u8,
    output: *const u8,
}

impl Cursor {
    /// Begins where `stream` is. A stream in a fast loop has whole bytes given back.
    fn of(stream: &mut Stream<'_>) -> (Self, Limits) {
        let input = stream.input.as_ptr_range();
        let output = stream.output.as_mut_ptr_range();
        let limits = Limits {
            start: output.start,
            input: input.end.wrapping_sub(INPUT_MARGIN),
            output: output.end.wrapping_sub(OUTPUT_MARGIN),
        };
        let cursor = Self {
            input: input.start.wrapping_add(stream.bits.next),
            output: output.start.wrapping_add(stream.written),
            bits: stream.bits.held,
            count: u64::from(stream.bits.count),
        };
        (cursor, limits)
    }

    /// Gives whole bytes back, and tells `stream` where it is.
    fn leave(&self, stream: &mut Stream<'_>) {
        let count = self.count as u8;
        let next = self.input.addr() - stream.input.as_ptr().addr() - usize::from(count / 8);
        stream.written = self.output.addr() - stream.output.as_ptr().addr();
        stream.bits = Bits::at(next, self.bits & ((1 << (count % 8)) - 1), u32::from(count % 8));
    }

    /// How many steps are within bounds, whatever the bits are.
    #[inline(always)]
    fn steps(&self, limits: &Limits) -> usize {
        let input = limits.input.addr().saturating_sub(self.input.addr()) / STEP_INPUT;
        let output = limits.output.addr().saturating_sub(self.output.addr()) / STEP_OUTPUT;
        input.min(output)
    }

    /// Whether one round is within bounds.
    #[inline(always)]
    fn has_room(&self, limits: &Limits) -> bool {
        self.input.addr() < limits.input.addr() && self.output.addr() < limits.output.addr()
    }

    /// Holds at least 56 bits after this.
    ///
    /// # Safety
    /// 8 bytes of input are left.
    #[inline(always)]
    unsafe fn refill(&mut self) {
        // SAFETY: the caller's promise.
        let word = u64::from_le(unsafe { self.input.cast::<u64>().read_unaligned() });
        self.bits |= word << (self.count & 63);
        self.input = self.input.wrapping_add(7 - (self.count as usize >> 3 & 7));
        self.count |= 56;
    }

    #[inline(always)]
    fn drop_bits(&mut self, entry: u32) {
        self.bits >>= entry & 63;
        self.count = self.count.wrapping_sub(u64::from(entry));
    }

    /// # Safety
    /// A byte of output is left.
    #[inline(always)]
    unsafe fn literal(&mut self, entry: u32) {
        // SAFETY: the caller's promise.
        unsafe { self.output.write((entry >> 16) as u8) };
        self.output = self.output.wrapping_add(1);
        self.drop_bits(entry);
    }
}

/// Decodes up to three literals and perhaps a short match, without branches that depend on the data. Returns `false`, and
/// does nothing, if the next symbol needs [`rare`].
///
/// # Safety
/// The cursor has room for a round; `tables` have steps.
#[inline(always)]
unsafe fn step<C: Copies>(cursor: &mut Cursor, limits: &Limits, tables: &Tables) -> bool {
    let step = tables.steps[(cursor.bits & SYMBOL_MASK) as usize];
    let head = step as u32;
    if step & NO_STEP != 0 {
        return false;
    }
    let after = cursor.bits >> (head & 63);
    // All ones if a distance follows, else zeros.
    let mask = ((head << (31 - MATCH_BIT)).cast_signed() >> 31).cast_unsigned();
    let distance = tables.distances[(after & DISTANCE_MASK) as usize] & mask;
    let literals = (step >> 32) as u32;
    // SAFETY: three literals and a match are less than the margin, and 4 bytes written are too.
    unsafe { cursor.output.cast::<u32>().write_unaligned(literals.to_le()) };
    let output = cursor.output.wrapping_add((literals >> 24) as usize);
    if distance & SECOND != 0 {
        return false;
    }
    let back = number(distance, after) as usize;
    if back > output.addr() - limits.start.addr() || (!C::COPIES_NEAR && back.wrapping_sub(1) < 31) {
        return false;
    }
    // SAFETY: `back` is at most what was written; the margin has 32 bytes after `output`.
    unsafe { C::short(output, back) };
    cursor.output = output.wrapping_add((head >> 8 & 0xff) as usize);
    cursor.bits = after >> (distance & 63);
    cursor.count = cursor.count.wrapping_sub(u64::from(head)).wrapping_sub(u64::from(distance));
    // SAFETY: the caller's promise.
    unsafe { cursor.refill() };
    true
}

/// Decodes one symbol, whatever it is. Returns `None` at the end of the block and if the symbol is wrong; the cursor
/// then is where it was.
///
/// # Safety
/// The cursor has room for a round.
#[inline(always)]
pub(crate) unsafe fn rare<C: Copies>(mut cursor: Cursor, limits: Limits, tables: &Tables) -> Option<Cursor> {
    let mut entry = tables.symbols[(cursor.bits & SYMBOL_MASK) as usize];
    if entry & SECOND != 0 {
        cursor.drop_bits(SYMBOL_BITS as u32);
        entry = tables.symbols[second(entry, cursor.bits)];
    }
    if entry & LITERAL != 0 {
        // SAFETY: the caller's promise.
        unsafe { cursor.literal(entry) };
    } else if entry & END != 0 {
        return None;
    } else {
        let length = number(entry, cursor.bits);
        cursor.drop_bits(entry);
        let mut entry = tables.distances[(cursor.bits & DISTANCE_MASK) as usize];
        if entry & SECOND != 0 {
            cursor.drop_bits(DISTANCE_BITS as u32);
            entry = tables.distances[second(entry, cursor.bits)];
        }
        let back = number(entry, cursor.bits) as usize;
        cursor.drop_bits(entry);
        if back > cursor.output.addr() - limits.start.addr() {
            return None;
        }
        // SAFETY: `back` is at most what was written; the margin has 258 + 32 bytes.
        unsafe { C::long(cursor.output, back, length as usize) };
        cursor.output = cursor.output.wrapping_add(length as usize);
    }
    // SAFETY: the caller's promise.
    unsafe { cursor.refill() };
    Some(cursor)
}

fn second(entry: u32, bits: u64) -> usize {
    (entry >> 16) as usize + (bits as usize & ((1 << (entry >> 8 & 31)) - 1))
}

/// Decodes up to four literals and perhaps a match, with branches. Returns `false` at the end of the block and before a
/// wrong symbol.
///
/// # Safety
/// The cursor has room for a round.
#[inline(always)]
unsafe fn round<C: Copies>(cursor: &mut Cursor, limits: &Limits, tables: &Tables) -> bool {
    for _ in 0..4 {
        let entry = tables.symbols[(cursor.bits & SYMBOL_MASK) as usize];
        if entry & LITERAL == 0 {
            // SAFETY: this and the next refill read within the margin of input.
            unsafe { cursor.refill() };
            let distance = tables.distances[(cursor.bits >> (entry & 63) & DISTANCE_MASK) as usize];
            if (entry | distance) & (SECOND | END) != 0 {
                // SAFETY: four literals and a match are less than the margin.
                return match unsafe { C::rare(*cursor, *limits, tables) } {
                    Some(after) => {
                        *cursor = after;
                        true
                    }
                    None => false,
                };
            }
            let length = number(entry, cursor.bits) as usize;
            let after = cursor.bits >> (entry & 63);
            let back = number(distance, after) as usize;
            if back > cursor.output.addr() - limits.start.addr() {
                return false;
            }
            cursor.bits = after >> (distance & 63);
            cursor.count = cursor.count.wrapping_sub(u64::from(entry)).wrapping_sub(u64::from(distance));
            let output = cursor.output;
            cursor.output = output.wrapping_add(length);
            // SAFETY: as above.
            unsafe { cursor.refill() };
            // SAFETY: `back` is at most what was written; the margin has 4 + 258 + 32 bytes.
            unsafe { C::long(output, back, length) };
            return true;
        }
        // SAFETY: the margin has four bytes.
        unsafe { cursor.literal(entry) };
    }
    // SAFETY: as above.
    unsafe { cursor.refill() };
    true
}

/// Runs streams side by side until one of them needs care. Returns which.
#[inline(always)]
pub(crate) fn run<C: Copies, const N: usize>(streams: [&mut Stream<'_>; N], tables: &mut [Tables; N]) -> usize {
    let is_mixed = tables.iter().any(|tables| tables.kind() == Kind::Mixed);
    let mut places = streams.map(|stream| (Cursor::of(stream), stream));
    let mut cursors: [Cursor; N] = std::array::from_fn(|lane| places[lane].0.0);
    let limits: [Limits; N] = std::array::from_fn(|lane| places[lane].0.1);
    let stopped = if is_mixed {
        tables.iter_mut().for_each(Tables::make_steps);
        mixed::<C, N>(&mut cursors, &limits, tables)
    } else {
        plain::<C, N>(&mut cursors, &limits, tables)
    };
    for (cursor, (_, stream)) in cursors.iter().zip(&mut places) {
        cursor.leave(stream);
    }
    stopped
}

#[inline(always)]
fn mixed<C: Copies, const N: usize>(
    out: &mut [Cursor; N],
    limits: &[Limits; N],
    tables: &[Tables; N],
) -> usize {
    let mut cursors = *out;
    for lane in 0..N {
        // SAFETY: streams come here with room for a round.
        unsafe { cursors[lane].refill() };
    }
    let stopped = 'all: loop {
        let mut steps = usize::MAX;
        for lane in 0..N {
            let most = cursors[lane].steps(&limits[lane]);
            if most == 0 && !cursors[lane].has_room(&limits[lane]) {
                break 'all lane;
            }
            steps = steps.min(most);
        }
        let mut is_rare = false;
        // With room for less than a step, one is within the margin all the same.
        for _ in 0..steps.max(1) {
            for lane in 0..N {
                // SAFETY: the steps were counted; a rare symbol is within the margin, and is followed by a new count.
                if !unsafe { step::<C>(&mut cursors[lane], &limits[lane], &tables[lane]) } {
                    // SAFETY: as above.
                    match unsafe { C::rare(cursors[lane], limits[lane], &tables[lane]) } {
                        Some(after) => cursors[lane] = after,
                        None => break 'all lane,
                    }
                    is_rare = true;
                }
            }
            if is_rare {
                break;
            }
        }
    };
    *out = cursors;
    stopped
}

#[inline(always)]
fn plain<C: Copies, const N: usize>(
    out: &mut [Cursor; N],
    limits: &[Limits; N],
    tables: &[Tables; N],
) -> usize {
    let mut cursors = *out;
    for lane in 0..N {
        // SAFETY: streams come here with room for a round.
        unsafe { cursors[lane].refill() };
    }
    let stopped = 'all: loop {
        for lane in 0..N {
            if !cursors[lane].has_room(&limits[lane]) {
                break 'all lane;
            }
            // SAFETY: there is room.
            if !unsafe { round::<C>(&mut cursors[lane], &limits[lane], &tables[lane]) } {
                break 'all lane;
            }
        }
    };
    *out = cursors;
    stopped
}
