//! The fast loops: several streams in turn, so that the processor works on one while another waits for its tables.
//!
//! Everything that is not safe stands here and in `copies.rs`. A loop runs only while more than [`INPUT_MARGIN`] bytes of
//! input and [`OUTPUT_MARGIN`] bytes of output are left, and the most that one round reads and writes is less than that.

use crate::bits::Bits;
use crate::copies::Copies;
use crate::huffman::{END, LITERAL, RARE, SECOND};
use crate::stream::{INPUT_MARGIN, OUTPUT_MARGIN, Stream, number};
use crate::tables::{DISTANCE_BITS, Kind, NEAR, NO_STEP, STEP_NBYTES, SYMBOL_BITS, Tables};

const SYMBOL_MASK: u64 = (1 << SYMBOL_BITS) - 1;
const DISTANCE_MASK: u64 = (1 << DISTANCE_BITS) - 1;
/// The most bytes of input that a step goes forward, and the next load reads.
const STEP_INPUT: usize = 8;
/// The most bytes of output that a step goes forward: three literals and a short match.
const STEP_OUTPUT: usize = 3 + STEP_NBYTES as usize;
/// How many steps write as much as the longest match.
const RARE_STEPS: isize = 258_usize.div_ceil(STEP_OUTPUT).cast_signed();

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

    /// Whether everything that a distance can name was written.
    #[inline(always)]
    fn is_far(&self, limits: &Limits) -> bool {
        self.output.addr() - limits.start.addr() >= 32768
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
        self.input = self.input.wrapping_add(7 - (self.count as usize >> 3 & 0b111));
        self.count |= 0b11_1000; // at least 56
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
/// The cursor has room for a round; `tables` have steps. If `IS_FAR`, 32 KiB were written, which is as far as distances go.
#[inline(always)]
unsafe fn step<C: Copies, const COPIES_NEAR: bool, const IS_FAR: bool>(
    cursor: &mut Cursor,
    limits: &Limits,
    tables: &Tables,
) -> bool {
    let step = tables.steps[(cursor.bits & SYMBOL_MASK) as usize];
    let head = step as u32;
    if step & NO_STEP != 0 {
        return false;
    }
    let after = cursor.bits >> (head & 63);
    // Without a match, the mask leads to the first entry. A comparison would become a branch.
    let mask = u64::from(head >> 8 & 0xff);
    let index = ((after & mask) + (mask & 1)) as usize;
    let count = tables.backs.counts[index];
    if count & if COPIES_NEAR { SECOND } else { SECOND | NEAR } != 0 {
        return false;
    }
    let literals = (step >> 32) as u32;
    // SAFETY: three literals and a match are less than the margin, and 4 bytes written are too.
    unsafe { cursor.output.cast::<u32>().write_unaligned(literals.to_le()) };
    let output = cursor.output.wrapping_add((literals >> 24) as usize);
    let extra = tables.backs.masks[index];
    let extra = (after as u32 & extra) >> (extra.trailing_zeros() & 31);
    let back = (extra + tables.backs.bases[index]) as usize;
    if !IS_FAR && back > output.addr() - limits.start.addr() {
        return false;
    }
    // SAFETY: `back` is at most what was written; the margin has 32 bytes after `output`.
    unsafe { C::short::<COPIES_NEAR>(output, back) };
    cursor.output = output.wrapping_add((head >> 16 & 0xff) as usize);
    cursor.bits = after >> (count & 63);
    cursor.count = cursor.count.wrapping_sub(step).wrapping_sub(u64::from(count));
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

/// Decodes a match that begins with this entry, or whatever else it is. Returns `false` at the end of the block and before
/// a wrong symbol.
///
/// # Safety
/// The cursor has room for a round, less a few literals, and is refilled.
#[inline(always)]
unsafe fn match_at<C: Copies>(cursor: &mut Cursor, limits: &Limits, tables: &Tables, entry: u32) -> bool {
    let after = cursor.bits >> (entry & 63);
    let distance = tables.distances[(after & DISTANCE_MASK) as usize];
    if entry & RARE != 0 || distance & SECOND != 0 {
        // SAFETY: the caller's promise.
        let next = unsafe { C::rare(*cursor, *limits, tables) };
        *cursor = next.unwrap_or(*cursor);
        return next.is_some();
    }
    let length = number(entry, cursor.bits) as usize;
    let back = number(distance, after) as usize;
    let output = cursor.output;
    if back > output.addr() - limits.start.addr() {
        return false;
    }
    cursor.bits = after >> (distance & 63);
    cursor.count = cursor.count.wrapping_sub(u64::from(entry)).wrapping_sub(u64::from(distance & 0xff));
    cursor.output = output.wrapping_add(length);
    // SAFETY: the caller's promise.
    unsafe { cursor.refill() };
    // SAFETY: `back` is at most what was written; the margin has a few literals and 258 + 32 bytes.
    unsafe { C::long(output, back, length) };
    true
}

/// So many literals take less bits than a refilled cursor has.
macro_rules! five {
    ($body:block) => {
        $body $body $body $body $body
    };
}

/// The loops over lanes, written out: a compiler keeps cursors in registers only if they have names.
macro_rules! loops {
    ($run:ident, $mixed:ident, $plain:ident, $matches:ident, $count:literal, $($lane:ident $index:literal),+) => {
        /// Runs streams side by side until one of them needs care. Returns which.
        #[inline(always)]
        pub(crate) fn $run<C: Copies>(
            streams: [&mut Stream<'_>; $count],
            tables: [&Tables; $count],
            kind: Kind,
        ) -> usize {
            let mut places = streams.map(|stream| (Cursor::of(stream), stream));
            let mut cursors = std::array::from_fn(|lane| places[lane].0.0);
            let limits = std::array::from_fn(|lane| places[lane].0.1);
            // SAFETY: streams come here with room for a round.
            let stopped = unsafe {
                match kind {
                    Kind::Literals | Kind::Plain => $plain::<C>(&mut cursors, &limits, tables),
                    Kind::Matches => $matches::<C>(&mut cursors, &limits, tables),
                    Kind::Mixed => $mixed::<C, false>(&mut cursors, &limits, tables),
                    Kind::Near => $mixed::<C, true>(&mut cursors, &limits, tables),
                }
            };
            for (cursor, (_, stream)) in cursors.iter().zip(&mut places) {
                cursor.leave(stream);
            }
            stopped
        }

        /// Steps until a stream needs care, which is returned.
        ///
        /// # Safety
        /// Cursors have room for a round; where [`Kind`] says so, tables have steps.
        #[inline(always)]
        unsafe fn $mixed<C: Copies, const COPIES_NEAR: bool>(
            cursors: &mut [Cursor; $count],
            limits: &[Limits; $count],
            tables: [&Tables; $count],
        ) -> usize {
            let [$(mut $lane),+] = *cursors;
            // SAFETY: there is room.
            $(unsafe { $lane.refill() };)+
            macro_rules! steps {
                ($steps:expr, $is_far:literal) => {{
                    let mut steps: isize = $steps;
                    'rounds: {
                        while steps > 0 {
                            $(
                                // SAFETY: the steps were counted; a rare symbol, which may write more, counts as more.
                                if !unsafe { step::<C, COPIES_NEAR, $is_far>(&mut $lane, &limits[$index], tables[$index]) } {
                                    let next = unsafe { C::rare($lane, limits[$index], tables[$index]) };
                                    let Some(next) = next else { break 'rounds Some($index) };
                                    $lane = next;
                                    steps -= RARE_STEPS;
                                }
                            )+
                            steps -= 1;
                        }
                        None
                    }
                }};
            }
            let stopped = loop {
                $(
                    if !$lane.has_room(&limits[$index]) {
                        break $index;
                    }
                )+
                // With room for less than a step, one is within the margin all the same.
                let steps = isize::MAX$(.min($lane.steps(&limits[$index]).max(1).cast_signed()))+;
                let is_far = true$(& $lane.is_far(&limits[$index]))+;
                let stopped = if is_far { steps!(steps, true) } else { steps!(steps.min(256), false) };
                if let Some(lane) = stopped {
                    break lane;
                }
            };
            *cursors = [$($lane),+];
            stopped
        }

        /// Literals of all streams at once, as long as there are any, then matches. Returns which stream needs care.
        ///
        /// # Safety
        /// Cursors have room for a round.
        #[inline(always)]
        unsafe fn $plain<C: Copies>(
            cursors: &mut [Cursor; $count],
            limits: &[Limits; $count],
            tables: [&Tables; $count],
        ) -> usize {
            let [$(mut $lane),+] = *cursors;
            // SAFETY: there is room.
            $(unsafe { $lane.refill() };)+
            let stopped = 'all: loop {
                $(
                    if !$lane.has_room(&limits[$index]) {
                        break 'all $index;
                    }
                )+
                let mut entries = [LITERAL; $count];
                'literals: {
                    five!({
                        $(entries[$index] = tables[$index].symbols[($lane.bits & SYMBOL_MASK) as usize];)+
                        if LITERAL$(& entries[$index])+ == 0 {
                            break 'literals;
                        }
                        // SAFETY: the margin has a few literals.
                        $(unsafe { $lane.literal(entries[$index]) };)+
                    });
                }
                // SAFETY: this and the next refill read within the margin.
                $(unsafe { $lane.refill() };)+
                $(
                    if entries[$index] & LITERAL == 0 {
                        // SAFETY: there was room for a round.
                        if !unsafe { match_at::<C>(&mut $lane, &limits[$index], tables[$index], entries[$index]) } {
                            break 'all $index;
                        }
                    }
                )+
            };
            *cursors = [$($lane),+];
            stopped
        }

        /// Symbol by symbol. Returns which stream needs care.
        ///
        /// # Safety
        /// Cursors have room for a round.
        #[inline(always)]
        unsafe fn $matches<C: Copies>(
            cursors: &mut [Cursor; $count],
            limits: &[Limits; $count],
            tables: [&Tables; $count],
        ) -> usize {
            let [$(mut $lane),+] = *cursors;
            // SAFETY: there is room.
            $(unsafe { $lane.refill() };)+
            let stopped = 'all: loop {
                $(
                    if !$lane.has_room(&limits[$index]) {
                        break 'all $index;
                    }
                )+
                $(
                    let entry = tables[$index].symbols[($lane.bits & SYMBOL_MASK) as usize];
                    if entry & LITERAL == 0 {
                        // SAFETY: there was room for a round.
                        if !unsafe { match_at::<C>(&mut $lane, &limits[$index], tables[$index], entry) } {
                            break 'all $index;
                        }
                    } else {
                        // SAFETY: there was room for a round.
                        unsafe {
                            $lane.literal(entry);
                            $lane.refill();
                        }
                    }
                )+
            };
            *cursors = [$($lane),+];
            stopped
        }
    };
}

const _: () = assert!(5 * SYMBOL_BITS <= 56);

loops!(run_one, mixed_one, plain_one, matches_one, 1, a 0);
loops!(run_two, mixed_two, plain_two, matches_two, 2, a 0, b 1);
loops!(run_three, mixed_three, plain_three, matches_three, 3, a 0, b 1, c 2);
