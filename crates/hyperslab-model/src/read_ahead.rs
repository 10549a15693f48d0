//! What Linux reads of a file when a library reads parts of it (`mm/readahead.c`, `mm/filemap.c`, as of 6.17).
//!
//! A read that misses the page cache starts a window, which is larger than the read, in three cases: it is at the start
//! of the file, it continues where the last read ended, or more cached pages precede it than it asks for. Otherwise
//! only the read itself is fetched. One page of each window is marked. A read that reaches the mark starts the next,
//! even larger window, and does not wait for it.

use std::collections::{BTreeMap, VecDeque};

use hyperslab_core::ByteRange;

use crate::variables::Variables;

/// Bytes of a page.
pub(crate) const PAGE_NBYTES: u64 = 4096;
/// The largest folio is a page doubled this many times.
const MOST_ORDER: u32 = 9;

/// An open file, and which of its pages are cached.
#[derive(Clone, Debug)]
pub(crate) struct OpenFile {
    pages: Pages,
    page_count: u64,
    most: u64,
    /// The window: its first page, its length, how many of its last pages come after the mark, and the order of its
    /// folios.
    start: u64,
    length: u64,
    behind_mark: u64,
    order: u32,
    /// The first page and the end of each marked range.
    marks: BTreeMap<u64, u64>,
    /// The page in which the last read ended.
    last: Option<u64>,
    /// What was read ahead and nobody has needed yet, in the order in which the device brings it.
    coming: VecDeque<Coming>,
}

/// Pages that were asked for ahead, and how many of their bytes the device still has to bring.
#[derive(Clone, Copy, Debug)]
struct Coming {
    start: u64,
    end: u64,
    nbytes: u64,
}

impl OpenFile {
    /// A file of this many bytes. The page cache and the windows are limited to these sizes.
    pub fn new(nbytes: u64, cache_nbytes: u64, most_nbytes: u64) -> Self {
        Self {
            pages: Pages { capacity: cache_nbytes / PAGE_NBYTES, ..Pages::default() },
            page_count: nbytes.div_ceil(PAGE_NBYTES),
            most: (most_nbytes / PAGE_NBYTES).max(1),
            start: 0,
            length: 0,
            behind_mark: 0,
            order: 0,
            marks: BTreeMap::new(),
            last: None,
            coming: VecDeque::new(),
        }
    }

    /// Reads a range. Adds the bytes of the device, and the requests that are waited for. Returns whether there were
    /// any.
    pub fn read(&mut self, range: ByteRange, variables: &mut Variables) -> bool {
        let before = variables.s_rdisk;
        let stop = range.end().div_ceil(PAGE_NBYTES).min(self.page_count);
        let mut page = range.offset / PAGE_NBYTES;
        while page < stop {
            let mut cached = self.pages.end_from(page);
            if cached <= page {
                self.missed(page, stop - page, variables);
                cached = self.pages.end_from(page);
            }
            let cached = cached.clamp(page + 1, stop);
            page = match self.first_mark(page, cached) {
                None => cached,
                Some((mark, end)) => {
                    self.marks.remove(&mark);
                    self.came_to_mark(mark, stop - mark, variables);
                    end
                }
            };
        }
        self.needs(range.offset / PAGE_NBYTES, stop, variables);
        self.last = Some(range.end() / PAGE_NBYTES);
        variables.s_rdisk > before
    }

    /// Opens the file again: the system keeps its pages, but not where this descriptor has read.
    pub fn reopen(&mut self) {
        (self.start, self.length, self.behind_mark, self.order) = (0, 0, 0, 0);
        self.last = None;
    }

    /// Writes a range. Pages that are only written in part are read before, if the file has them.
    pub fn write(&mut self, range: ByteRange, variables: &mut Variables) {
        let (first, stop) = (range.offset / PAGE_NBYTES, range.end().div_ceil(PAGE_NBYTES));
        let starts_within = !range.offset.is_multiple_of(PAGE_NBYTES);
        let ends_within = !range.end().is_multiple_of(PAGE_NBYTES);
        for (page, is_part) in [(first, starts_within), (stop.saturating_sub(1), ends_within)] {
            if is_part && page < self.page_count && self.pages.end_from(page) <= page {
                self.wait(page, 1, None, variables);
            }
        }
        self.pages.add(first, stop);
        self.page_count = self.page_count.max(stop);
    }

    /// The first mark between two pages.
    fn first_mark(&self, page: u64, stop: u64) -> Option<(u64, u64)> {
        let around = self.marks.range(..=page).next_back().filter(|&(_, &end)| end > page);
        around.or_else(|| self.marks.range(page..stop).next()).map(|(&first, &end)| (first, end))
    }

    /// `page_cache_sync_ra`: a page of a read is missing, with `wanted` more to read.
    fn missed(&mut self, page: u64, wanted: u64, variables: &mut Variables) {
        let goes_on = self.last.is_some_and(|last| page >= last && page - last <= 1);
        if page == 0 || wanted > self.most || goes_on {
            let length = self.first_length(wanted);
            let behind = if length > wanted { length - wanted } else { length / 2 };
            return self.open_window(page, length, behind, variables);
        }
        let least = page.saturating_sub(self.most);
        let first_cached = self.pages.start_before(page).max(least);
        let cached = page - first_cached;
        if cached <= wanted {
            return self.wait(page, wanted, None, variables);
        }
        let cached = if first_cached == 0 { cached * 2 } else { cached };
        self.open_window(page, (cached + wanted).min(self.most), 1, variables);
    }

    fn open_window(&mut self, page: u64, length: u64, behind_mark: u64, variables: &mut Variables) {
        (self.start, self.length, self.behind_mark, self.order) = (page, length, behind_mark, 0);
        self.wait(page, length, Some(page + length - behind_mark), variables);
    }

    /// `page_cache_async_ra`: a read of `wanted` pages reached a mark.
    fn came_to_mark(&mut self, mark: u64, wanted: u64, variables: &mut Variables) {
        if mark == self.start + self.length - self.behind_mark {
            self.start += self.length;
            self.length = self.length.max(self.next_length(self.length));
        } else {
            let end = self.pages.end_from(mark + 1).max(mark + 1);
            if end - mark > self.most {
                return;
            }
            self.start = end;
            self.length = self.next_length(end - mark + wanted);
        }
        // Windows end at the boundaries of large folios.
        self.order = (self.order + 2).min(u64::BITS - 2);
        let unit = 1 << self.order.min(self.most.trailing_zeros());
        let end = (self.start + self.length) / unit * unit;
        if end > self.start {
            self.length = end - self.start;
        }
        self.behind_mark = self.length;
        self.order = self.order.min(self.length.max(1).ilog2()).min(MOST_ORDER);
        let (start, nbytes) = (self.start, self.ask(self.start, self.length, Some(self.start), variables));
        if nbytes > 0 {
            self.coming.push_back(Coming { start, end: (start + self.length).min(self.page_count), nbytes });
        }
    }

    /// Some pages are read. Those of them that were read ahead have to be there, and what was asked for before them.
    fn needs(&mut self, page: u64, stop: u64, variables: &mut Variables) {
        let Some(last) = self.coming.iter().rposition(|one| one.start < stop && page < one.end) else {
            return;
        };
        variables.s_rneed += self.coming.drain(..last).map(|one| one.nbytes).sum::<u64>();
        let Some(reached) = self.coming.front_mut() else { return };
        let end = stop.min(reached.end);
        let rest = reached.nbytes.min((reached.end - end) * PAGE_NBYTES);
        variables.s_rneed += reached.nbytes - rest;
        (reached.start, reached.nbytes) = (end, rest);
        if rest == 0 {
            self.coming.pop_front();
        }
    }

    /// Asks the device, and waits until it has brought what was asked for.
    fn wait(&mut self, page: u64, length: u64, mark: Option<u64>, variables: &mut Variables) {
        let nbytes = self.ask(page, length, mark, variables);
        if nbytes > 0 {
            variables.n_rseek += 1;
            variables.s_rseek += nbytes;
            variables.s_rneed += self.coming.drain(..).map(|one| one.nbytes).sum::<u64>();
        }
    }

    /// Asks the device for those of `length` pages that are not cached. Returns how many bytes it brings.
    fn ask(&mut self, page: u64, length: u64, mark: Option<u64>, variables: &mut Variables) -> u64 {
        let end = page.saturating_add(length).min(self.page_count);
        if let Some(mark) = mark.filter(|&mark| mark < end && self.pages.end_from(mark) <= mark) {
            let mut order = self.order.min(mark.trailing_zeros());
            while order > 0 && mark + (1 << order) > end {
                order -= 1;
            }
            self.marks.insert(mark, mark + (1 << order));
        }
        let nbytes = self.pages.add(page, end) * PAGE_NBYTES;
        variables.s_rdisk += nbytes;
        nbytes
    }

    /// `get_init_ra_size`
    fn first_length(&self, wanted: u64) -> u64 {
        match wanted.next_power_of_two() {
            length if length <= self.most / 32 => length * 4,
            length if length <= self.most / 4 => length * 2,
            _ => self.most,
        }
    }

    /// `get_next_ra_size`
    fn next_length(&self, length: u64) -> u64 {
        match length {
            length if length < self.most / 16 => length * 4,
            length if length <= self.most / 2 => length * 2,
            _ => self.most,
        }
    }
}

/// The cached pages, as intervals that do not touch. Pages that were cached first are evicted first.
#[derive(Clone, Debug, Default)]
struct Pages {
    intervals: BTreeMap<u64, u64>,
    order: VecDeque<(u64, u64)>,
    count: u64,
    capacity: u64,
}

impl Pages {
    /// The end of the cached pages around `page`; `page` or less if it is not cached.
    fn end_from(&self, page: u64) -> u64 {
        self.intervals.range(..=page).next_back().map_or(0, |(_, &end)| end)
    }

    /// The first of the cached pages directly before a page; the page itself if there are none.
    fn start_before(&self, page: u64) -> u64 {
        let before = self.intervals.range(..page).next_back().filter(|&(_, &end)| end >= page);
        before.map_or(page, |(&start, _)| start)
    }

    /// Caches pages. Returns how many were not cached before.
    fn add(&mut self, first: u64, stop: u64) -> u64 {
        if first >= stop || self.end_from(first) >= stop {
            return 0;
        }
        let (mut start, mut end, mut held) = (first, stop, 0);
        let from = self.intervals.range(..first).next_back().filter(|&(_, &end)| end >= first);
        let from = from.map_or(first, |(&start, _)| start);
        let touched: Vec<(u64, u64)> = self.intervals.range(from..=stop).map(|(&a, &b)| (a, b)).collect();
        for (a, b) in touched {
            self.intervals.remove(&a);
            (start, end) = (start.min(a), end.max(b));
            held += b.min(stop).saturating_sub(a.max(first));
        }
        self.intervals.insert(start, end);
        self.order.push_back((first, stop));
        self.count += stop - first - held;
        while self.count > self.capacity && self.order.len() > 1 {
            if let Some((first, stop)) = self.order.pop_front() {
                self.remove(first, stop);
            }
        }
        stop - first - held
    }

    fn remove(&mut self, first: u64, stop: u64) {
        let from = self.start_before(first);
        let touched: Vec<(u64, u64)> = self.intervals.range(from..stop).map(|(&a, &b)| (a, b)).collect();
        for (a, b) in touched {
            self.intervals.remove(&a);
            self.count -= b.min(stop).saturating_sub(a.max(first));
            if a < first {
                self.intervals.insert(a, first);
            }
            if b > stop {
                self.intervals.insert(stop, b);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn read(file: &mut OpenFile, offset: u64, length: u64) -> (u64, u64) {
        let mut variables = Variables::default();
        file.read(ByteRange { offset, length }, &mut variables);
        (variables.s_rdisk, variables.n_rseek)
    }

    #[test]
    fn what_linux_read_of_eight_chunks_in_sequence() {
        // Measured: /proc/self/io showed 8,372,224 bytes for 8 chunks of 557,184 bytes, after the first 16 KiB.
        let mut file = OpenFile::new(35_710_880, u64::MAX, 8 * MIB);
        assert_eq!(read(&mut file, 0, 1312), (16_384, 1));
        let found = (0..8).map(|chunk| read(&mut file, 4016 + chunk * 557_184, 557_184));
        assert_eq!(found.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1)), (8_372_224, 0));
    }

    #[test]
    fn a_read_somewhere_reads_what_is_asked_for_and_the_next_one_reads_ahead() {
        let mut file = OpenFile::new(64 * MIB, u64::MAX, 8 * MIB);
        assert_eq!(read(&mut file, 32 * MIB, 65_536), (65_536, 1));
        assert_eq!(read(&mut file, 32 * MIB, 65_536), (0, 0));
        assert_eq!(read(&mut file, 32 * MIB + 65_536, 65_536), (4 * 65_536, 1));
        assert_eq!(read(&mut file, 16 * MIB, 1), (4096, 1));
    }

    #[test]
    fn what_is_read_ahead_is_needed_when_it_is_read_and_its_rest_never() {
        let mut file = OpenFile::new(64 * MIB, u64::MAX, 8 * MIB);
        let mut sum = Variables::default();
        let needed: Vec<u64> = (0..8)
            .map(|row| {
                let before = sum.s_rneed;
                file.read(ByteRange { offset: row * PAGE_NBYTES, length: PAGE_NBYTES }, &mut sum);
                (sum.s_rneed - before) / PAGE_NBYTES
            })
            .collect();
        // The first four pages are waited for, with a mark on the second of them; then each row needs its own page.
        assert_eq!((sum.s_rseek / PAGE_NBYTES, needed), (4, vec![0, 0, 0, 0, 1, 1, 1, 1]));
        assert!(sum.s_rdisk > sum.s_rseek + sum.s_rneed);
        let coming = sum.s_rdisk - sum.s_rseek - sum.s_rneed;
        file.read(ByteRange { offset: 32 * MIB, length: PAGE_NBYTES }, &mut sum);
        assert_eq!(sum.s_rneed, 4 * PAGE_NBYTES + coming); // the device brings what came before a request first
    }

    #[test]
    fn what_came_first_goes_first() {
        let mut file = OpenFile::new(64 * MIB, MIB, 8 * MIB);
        for position in [40, 20, 60] {
            assert_eq!(read(&mut file, position * MIB, 524_288), (524_288, 1));
        }
        assert_eq!(read(&mut file, 20 * MIB, 524_288).0, 0);
        assert_eq!(read(&mut file, 40 * MIB, 524_288).0, 524_288);
    }
}
