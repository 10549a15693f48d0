//! The bytes of a file that a parser holds, in pages, and the rounds in which it asks for more.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeSet, HashMap};

use hyperslab_core::ByteRange;

use crate::error::{Error, FetchError};
use crate::noted::Noted;

/// Where a file's bytes come from: a local file, a web server, an object store, or memory.
pub trait Source: Sync {
    /// The length of the file.
    fn length(&self) -> u64;

    /// The bytes of several ranges, all within the file. Fetches them side by side if that helps.
    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError>;
}

/// What fetching has cost so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Dependent rounds: fetches that had to wait for the bytes of an earlier one.
    pub round_count: u64,
    /// How many ranges were asked for.
    pub request_count: u64,
    /// How many bytes came.
    pub fetched_nbytes: u64,
}

/// How pages are cut and fetched. The caller chooses.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// The size of a page.
    pub page_nbytes: u64,
    /// How many bytes from the file's start the first round fetches.
    pub first_nbytes: u64,
    /// How many bytes from the file's end the second round fetches, if there is one: writers put what they add last
    /// there, unless all that is missing follows the first bytes.
    pub last_nbytes: u64,
    /// The largest gap of unwanted pages between two wanted ones that is fetched too.
    pub gap_pages: u64,
}

impl Policy {
    /// For local files: requests are cheap, so nothing is fetched in vain.
    pub const LOCAL: Self =
        Self { page_nbytes: 4 << 10, first_nbytes: 64 << 10, last_nbytes: 0, gap_pages: 0 };
    /// For remote files: a request costs as much as many kilobytes.
    pub const REMOTE: Self =
        Self { page_nbytes: 32 << 10, first_nbytes: 512 << 10, last_nbytes: 512 << 10, gap_pages: 8 };
}

/// What of the last of several structures may be fetched in vain.
const LAST_NBYTES: u64 = 4 << 20;
/// The most bytes that are fetched on the guess that structures lie together: a hostile file may say anything.
const TOGETHER_NBYTES: u64 = 128 << 20;

/// The pages of one file that are held.
pub struct Pages<'a> {
    source: &'a dyn Source,
    policy: Policy,
    held: HashMap<u64, Box<[u8]>>,
    wanted: RefCell<BTreeSet<u64>>,
    /// Long structures that are wanted in one piece, and those that came.
    wanted_pieces: RefCell<BTreeSet<ByteRange>>,
    pieces: RefCell<HashMap<ByteRange, Vec<u8>>>,
    /// Where long structures begin, and how long they become if nothing else lies between their parts.
    expected: RefCell<BTreeSet<ByteRange>>,
    /// Bytes that replace bytes of a page, with their positions in the page.
    laid_over: HashMap<u64, Vec<(usize, Vec<u8>)>>,
    statistics: Statistics,
    /// What was read, if somebody wants to know.
    noted: Option<RefCell<Noted>>,
}

impl<'a> Pages<'a> {
    /// Holds no page yet, but wants the file's first bytes.
    pub fn new(source: &'a dyn Source, policy: Policy) -> Self {
        let pages = Self {
            source,
            policy,
            held: HashMap::new(),
            wanted: RefCell::default(),
            wanted_pieces: RefCell::default(),
            pieces: RefCell::default(),
            expected: RefCell::default(),
            laid_over: HashMap::new(),
            statistics: Statistics::default(),
            noted: None,
        };
        let first = policy.first_nbytes.min(source.length());
        pages.want(ByteRange { offset: 0, length: first });
        pages
    }

    /// The same, but it notes which structures are read, and where they are.
    #[must_use]
    pub fn noting(self) -> Self {
        Self { noted: Some(RefCell::default()), ..self }
    }

    /// What was read so far; nothing unless it is noted.
    pub fn noted(&self) -> Noted {
        self.noted.as_ref().map(|noted| noted.borrow().clone()).unwrap_or_default()
    }

    fn note(&self, what: &'static str, range: ByteRange) {
        if let Some(noted) = &self.noted {
            noted.borrow_mut().add(what, range);
        }
    }

    /// The length of the file.
    pub fn file_length(&self) -> u64 {
        self.source.length()
    }

    /// What fetching has cost so far.
    pub fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// The bytes of a structure. `NotHeld` after noting what is missing; `Truncated` if the file ends before.
    pub fn bytes(&self, what: &'static str, offset: u64, length: u64) -> Result<Cow<'_, [u8]>, Error> {
        self.check_within(what, offset, length)?;
        if length == 0 {
            return Ok(Cow::Borrowed(&[]));
        }
        let range = ByteRange { offset, length };
        let (first, last) = self.page_numbers(range);
        if (first..=last).any(|page| !self.held.contains_key(&page)) {
            self.want(range);
            return Err(Error::NotHeld { offset });
        }
        self.note(what, range);
        Ok(if first == last { Cow::Borrowed(self.within(first, offset, length)) } else { self.joined(range) })
    }

    /// Like `bytes`, for long structures, which pages would only copy. They come in one piece, which the caller owns.
    /// Asking again fetches the piece again.
    pub fn piece(&self, what: &'static str, offset: u64, length: u64) -> Result<Vec<u8>, Error> {
        self.check_within(what, offset, length)?;
        let range = ByteRange { offset, length };
        if let Some(mut bytes) = self.pieces.borrow_mut().remove(&range) {
            self.lay_over_piece(offset, &mut bytes);
            self.note(what, range);
            return Ok(bytes);
        }
        self.wanted_pieces.borrow_mut().insert(range);
        Err(Error::NotHeld { offset })
    }

    fn check_within(&self, what: &'static str, offset: u64, length: u64) -> Result<(), Error> {
        let file_length = self.file_length();
        if offset.checked_add(length).is_none_or(|end| end > file_length) {
            return Err(Error::Truncated { what, offset, length, file_length });
        }
        Ok(())
    }

    /// Notes that a range will be needed, without needing it now. Ignores what lies past the file's end.
    pub fn want(&self, range: ByteRange) {
        let length = range.length.min(self.file_length().saturating_sub(range.offset));
        if length == 0 {
            return;
        }
        let (first, last) = self.page_numbers(ByteRange { offset: range.offset, length });
        let mut wanted = self.wanted.borrow_mut();
        wanted.extend((first..=last).filter(|page| !self.held.contains_key(page)));
    }

    /// Notes where a structure of many parts begins, and how long it is if they lie together.
    pub fn expect(&self, range: ByteRange) {
        self.expected.borrow_mut().insert(range);
    }

    /// Wants all structures of many parts, if each begins about where the one before should end: then whoever wrote the
    /// file put them together, and their parts need no rounds of their own.
    fn want_together(&self) {
        let expected = std::mem::take(&mut *self.expected.borrow_mut());
        let follows = |before: &ByteRange, next: &ByteRange| {
            let distance = next.offset - before.offset;
            let most = before.length.saturating_mul(2).saturating_add(self.policy.page_nbytes);
            distance >= before.length / 2 && distance <= most
        };
        let (Some(first), Some(last)) = (expected.first(), expected.last()) else { return };
        if first != last && expected.iter().zip(expected.iter().skip(1)).all(|(one, next)| follows(one, next))
        {
            let before = last.offset - first.offset;
            // Nothing shows where the last one ends: of an array with few chunks, it may be far shorter.
            let length = last.length.min(before.saturating_mul(2).max(LAST_NBYTES));
            let together = ByteRange { offset: first.offset, length: before.saturating_add(length) };
            if together.length <= TOGETHER_NBYTES {
                self.want(together);
            }
        }
    }

    /// Whether all that is wanted follows the first bytes without a gap.
    fn wants_what_follows(&self) -> bool {
        let wanted = self.wanted.borrow();
        let last = self.policy.first_nbytes.div_ceil(self.policy.page_nbytes).saturating_sub(1);
        let pages = std::iter::once(&last).chain(wanted.iter()).zip(wanted.iter());
        pages.into_iter().all(|(before, page)| page.saturating_sub(*before) <= self.policy.gap_pages + 1)
    }

    /// Fetches all that is wanted, as one round. Returns whether there was anything.
    pub fn fetch(&mut self) -> Result<bool, Error> {
        if self.wanted.get_mut().is_empty() && self.wanted_pieces.get_mut().is_empty() {
            return Ok(false);
        }
        if self.statistics.round_count == 1 {
            self.want_together();
        }
        if self.statistics.round_count == 1 && !self.wants_what_follows() {
            let offset = self.file_length().saturating_sub(self.policy.last_nbytes);
            self.want(ByteRange { offset, length: self.policy.last_nbytes });
        }
        let wanted = std::mem::take(self.wanted.get_mut());
        let mut ranges = self.coalesced(&wanted);
        let page_ranges = ranges.len();
        ranges.extend(self.next_pieces());
        let fetched = self.source.read_ranges(&ranges)?;
        self.statistics.round_count += 1;
        self.statistics.request_count += ranges.len() as u64;
        for (position, (range, bytes)) in ranges.iter().zip(fetched).enumerate() {
            self.statistics.fetched_nbytes += bytes.len() as u64;
            if bytes.len() as u64 != range.length {
                return Err(Error::Fetch(FetchError(format!(
                    "{} bytes came, but {} were asked for at offset {}: the file changed, or its server is at fault",
                    bytes.len(),
                    range.length,
                    range.offset
                ))));
            }
            if position < page_ranges {
                self.hold(range.offset, &bytes);
            } else {
                self.pieces.get_mut().insert(*range, bytes);
            }
        }
        Ok(true)
    }

    /// The pieces to fetch next: together at most as long as the file, but at least one.
    fn next_pieces(&mut self) -> Vec<ByteRange> {
        let (mut nbytes, file_length) = (0_u64, self.file_length());
        let mut pieces = Vec::new();
        while let Some(piece) = self.wanted_pieces.get_mut().pop_first() {
            nbytes = nbytes.saturating_add(piece.length);
            pieces.push(piece);
            if nbytes >= file_length {
                break;
            }
        }
        pieces
    }

    fn lay_over_piece(&self, offset: u64, bytes: &mut [u8]) {
        for (page, positions) in &self.laid_over {
            for (start, over) in positions {
                let position = page.saturating_mul(self.policy.page_nbytes).saturating_add(*start as u64);
                for (byte, at) in over.iter().zip(position..) {
                    let within = at.checked_sub(offset).and_then(|at| usize::try_from(at).ok());
                    if let Some(under) = within.and_then(|within| bytes.get_mut(within)) {
                        *under = *byte;
                    }
                }
            }
        }
    }

    /// From now on, these bytes replace the file's bytes at an offset.
    pub fn lay_over(&mut self, what: &'static str, offset: u64, bytes: &[u8]) -> Result<(), Error> {
        let (length, file_length) = (bytes.len() as u64, self.file_length());
        if offset.checked_add(length).is_none_or(|end| end > file_length) {
            return Err(Error::Truncated { what, offset, length, file_length });
        }
        let (mut offset, mut rest) = (offset, bytes);
        while !rest.is_empty() {
            let (page, start) = (offset / self.policy.page_nbytes, offset % self.policy.page_nbytes);
            let room = usize::try_from(self.policy.page_nbytes - start).unwrap_or(usize::MAX);
            let (part, after) = rest.split_at(room.min(rest.len()));
            let position = (usize::try_from(start).unwrap_or(usize::MAX), part.to_vec());
            if let Some(content) = self.held.get_mut(&page) {
                put(content, &position);
            }
            self.laid_over.entry(page).or_default().push(position);
            (offset, rest) = (offset + part.len() as u64, after);
        }
        Ok(())
    }

    fn hold(&mut self, offset: u64, bytes: &[u8]) {
        let first = offset / self.policy.page_nbytes;
        let page_nbytes = usize::try_from(self.policy.page_nbytes).unwrap_or(usize::MAX);
        for (page, content) in (first..).zip(bytes.chunks(page_nbytes)) {
            let mut content: Box<[u8]> = content.into();
            self.laid_over.get(&page).into_iter().flatten().for_each(|position| put(&mut content, position));
            self.held.insert(page, content);
        }
    }

    fn coalesced(&self, wanted: &BTreeSet<u64>) -> Vec<ByteRange> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for &page in wanted {
            match runs.last_mut() {
                Some((_, last)) if page - *last <= self.policy.gap_pages + 1 => *last = page,
                _ => runs.push((page, page)),
            }
        }
        let page_nbytes = self.policy.page_nbytes;
        let range = |(first, last): (u64, u64)| {
            let offset = first * page_nbytes;
            let end = (last + 1).saturating_mul(page_nbytes).min(self.file_length());
            ByteRange { offset, length: end - offset }
        };
        runs.into_iter().map(range).collect()
    }

    fn page_numbers(&self, range: ByteRange) -> (u64, u64) {
        let last_byte = range.offset.saturating_add(range.length - 1);
        (range.offset / self.policy.page_nbytes, last_byte / self.policy.page_nbytes)
    }

    fn within(&self, page: u64, offset: u64, length: u64) -> &[u8] {
        let start = usize::try_from(offset - page * self.policy.page_nbytes).unwrap_or(usize::MAX);
        let stop = usize::try_from(length).ok().and_then(|length| start.checked_add(length));
        let content = self.held.get(&page).and_then(|content| content.get(start..stop?));
        content.unwrap_or_default()
    }

    fn joined(&self, range: ByteRange) -> Cow<'_, [u8]> {
        let (first, last) = self.page_numbers(range);
        let mut out = Vec::with_capacity(usize::try_from(range.length).unwrap_or_default());
        for page in first..=last {
            let start = range.offset.max(page * self.policy.page_nbytes);
            let stop = range.end().min((page + 1) * self.policy.page_nbytes);
            out.extend_from_slice(self.within(page, start, stop - start));
        }
        Cow::Owned(out)
    }
}

fn put(page: &mut [u8], (start, bytes): &(usize, Vec<u8>)) {
    page.iter_mut().skip(*start).zip(bytes).for_each(|(byte, over)| *byte = *over);
}

/// A file in memory, for tests and fuzzing.
pub struct Memory<'a>(pub &'a [u8]);

impl Source for Memory<'_> {
    fn length(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
        let part = |range: &ByteRange| {
            let start = usize::try_from(range.offset).ok()?;
            let stop = usize::try_from(range.end()).ok()?;
            self.0.get(start..stop).map(<[u8]>::to_vec)
        };
        ranges
            .iter()
            .map(|range| part(range).ok_or_else(|| FetchError("a range outside the file".into())))
            .collect()
    }
}

#[cfg(test)]
#[path = "pages_tests.rs"]
mod tests;
