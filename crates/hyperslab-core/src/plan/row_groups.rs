//! Groups the rows of an uncompressed chunk that one request fetches. Pure, so a plan can tell what a read will ask
//! for.

use crate::byte_range::ByteRange;
use crate::plan::coalesce::CoalescePolicy;
use crate::plan::placement::{Placement, Row};

/// Rows of at least this length are worth a request, or a part of a vectored request, of their own.
const LONG_ROW_NBYTES: u64 = 512;
/// The size of one request for shorter rows, which go through the reader's memory.
const SHORT_ROWS_NBYTES: u64 = 1 << 20;
/// The most rows in one request: the limit of Linux for vectored reads.
const MOST_ROWS: usize = 1024;

/// Which rows are fetched together, in elements.
#[derive(Clone, Copy, Debug)]
struct RowLimits {
    /// The largest gap between two rows that is fetched in vain.
    gap: u64,
    /// The longest distance from the first row's start to the last row's end.
    span: u64,
}

impl RowLimits {
    fn joins(self, first: &Row, last: &Row, next: &Row) -> bool {
        let end = last.chunk_stop();
        next.chunk_offset >= end
            && next.chunk_offset - end <= self.gap
            && next.chunk_stop() - first.chunk_offset <= self.span
    }

    /// A row whose elements are not contiguous, as rows of a bounded span.
    fn pieces(self, row: Row) -> impl Iterator<Item = Row> {
        let most = if row.step == 1 {
            row.count
        } else if row.step - 1 > self.gap {
            1
        } else {
            (self.span / row.step).max(1)
        };
        let starts = (0..row.count).step_by(usize::try_from(most).unwrap_or(usize::MAX).max(1));
        starts.map(move |first| Row {
            chunk_offset: row.chunk_offset + first * row.step,
            output_offset: row.output_offset + first,
            count: most.min(row.count - first),
            step: if most == 1 { 1 } else { row.step },
        })
    }
}

impl Placement<'_> {
    /// Whether rows are long enough to be fetched straight to where they belong.
    pub fn has_long_rows(&self, element_nbytes: u64) -> bool {
        self.row_element_count() * element_nbytes.max(1) >= LONG_ROW_NBYTES
    }

    /// Every request for an uncompressed chunk at `chunk`: its rows, which do not overlap, and its bytes. Stops at the
    /// first error.
    pub fn row_groups<E>(
        &self,
        chunk: ByteRange,
        element_nbytes: u64,
        policy: CoalescePolicy,
        mut each: impl FnMut(&[Row], ByteRange) -> Result<(), E>,
    ) -> Result<(), E> {
        let width = element_nbytes.max(1);
        let is_long = self.has_long_rows(element_nbytes);
        let span = if is_long { policy.most_nbytes } else { SHORT_ROWS_NBYTES.min(policy.most_nbytes) };
        let limits = RowLimits { gap: policy.gap_nbytes / width, span: span.div_ceil(width) };
        let mut rows: Vec<Row> = Vec::new();
        let mut flush = |rows: &mut Vec<Row>| {
            let (Some(first), Some(last)) = (rows.first(), rows.last()) else { return Ok(()) };
            let offset = chunk.offset.saturating_add(first.chunk_offset * width);
            let length = (last.chunk_stop() - first.chunk_offset) * width;
            let done = each(rows, ByteRange { offset, length });
            rows.clear();
            done
        };
        self.rows(|row| {
            for row in limits.pieces(row) {
                let ends = match (rows.first(), rows.last()) {
                    (Some(first), Some(last)) => rows.len() == MOST_ROWS || !limits.joins(first, last, &row),
                    _ => false,
                };
                if ends {
                    flush(&mut rows)?;
                }
                rows.push(row);
            }
            Ok(())
        })?;
        flush(&mut rows)
    }
}
