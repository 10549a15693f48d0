//! Where the values of classic NetCDF variables are: in one piece, or in one piece for each record.

use hyperslab_core::{ByteRange, Fill, Manifest, Segment, Unreadable};

use super::header::{Header, Variable};
use crate::segment::{array_nbytes, gridded, one_chunk, stored, too_large};

/// The most pieces of one variable that we are willing to keep.
const MAX_RECORD_COUNT: u64 = 1 << 26;

/// The layout of a file's records.
pub(super) struct Records {
    /// How many records there are.
    count: u64,
    /// Bytes from one record to the next.
    nbytes: u64,
    file_length: u64,
}

impl Records {
    /// The record size is the sum of the record variables' padded sizes. A single record variable is not padded.
    pub fn of(header: &Header, file_length: u64) -> Self {
        let variables = || header.variables.iter().filter(|variable| variable.is_record(header));
        let padded =
            |variable| record_nbytes(header, variable).checked_next_multiple_of(4).unwrap_or(u64::MAX);
        let sum = variables().map(padded).fold(0, u64::saturating_add);
        let alone = variables().next_back().filter(|last| padded(last) == sum);
        let nbytes = alone.map_or(sum, |last| record_nbytes(header, last));
        let begin = variables().map(|variable| variable.begin).min().unwrap_or(file_length);
        let streamed = || file_length.saturating_sub(begin).checked_div(nbytes).unwrap_or(0);
        Self { count: header.record_count.unwrap_or_else(streamed), nbytes, file_length }
    }

    /// A variable's shape.
    pub fn shape(&self, header: &Header, variable: &Variable) -> Vec<u64> {
        let lengths = variable.dimensions.iter().filter_map(|&number| header.dimensions.get(number));
        let length = |length: u64| if length == 0 { self.count } else { length };
        lengths.map(|dimension| length(dimension.length)).collect()
    }

    /// A variable's chunks, or why there are none.
    pub fn segments(
        &self,
        header: &Header,
        variable: &Variable,
        shape: &[u64],
        fill: &Fill,
    ) -> Result<Vec<Segment>, Unreadable> {
        let element = variable.kind.element();
        let nbytes = array_nbytes(shape, &element).ok_or_else(too_large)?;
        if nbytes == 0 {
            return Ok(Vec::new());
        }
        if variable.begin < header.nbytes {
            let problem = format!("its values start at offset {}, inside the header", variable.begin);
            return Err(Unreadable::damaged(problem));
        }
        let row_nbytes = record_nbytes(header, variable);
        let in_one_piece = !variable.is_record(header) || row_nbytes == self.nbytes;
        let (chunk_shape, manifest) = if in_one_piece {
            (one_chunk(shape), Self::piece(variable.begin, nbytes)?)
        } else {
            let chunk_shape = std::iter::once(1).chain(shape.iter().skip(1).copied()).collect();
            (chunk_shape, self.pieces(variable.begin, row_nbytes)?)
        };
        Ok(vec![gridded(shape, chunk_shape, &element, fill, Vec::new(), manifest)?])
    }

    /// A piece that reaches past the file's end stays as it is. Reading it reports the error.
    fn piece(offset: u64, nbytes: u64) -> Result<Manifest, Unreadable> {
        let range = ByteRange::new(offset, nbytes)?;
        Ok(Manifest::of_chunks(vec![stored(0, 0, range)]))
    }

    fn pieces(&self, begin: u64, row_nbytes: u64) -> Result<Manifest, Unreadable> {
        self.check_count(begin)?;
        let piece = |record: u64| {
            let offset = record.checked_mul(self.nbytes).and_then(|distance| distance.checked_add(begin))?;
            Some(stored(record, 0, ByteRange::new(offset, row_nbytes).ok()?))
        };
        let chunks: Option<Vec<_>> = (0..self.count).map(piece).collect();
        let past_any_end = || Unreadable::damaged("records past the end of any file");
        Ok(Manifest::of_chunks(chunks.ok_or_else(past_any_end)?))
    }

    /// The last record may be cut. If whole records are missing, the count is wrong or the file is incomplete.
    fn check_count(&self, begin: u64) -> Result<(), Unreadable> {
        let held = self.file_length.saturating_sub(begin).div_ceil(self.nbytes.max(1));
        if self.count > held.saturating_add(1) {
            let count = self.count;
            let problem = format!("the header counts {count} records, but the file ends in record {held}");
            return Err(Unreadable::damaged(problem));
        }
        if self.count > MAX_RECORD_COUNT {
            let feature = format!("a variable of {} records, more than {MAX_RECORD_COUNT},", self.count);
            return Err(Unreadable::unsupported(feature));
        }
        Ok(())
    }
}

/// Bytes of one record of a variable, without padding.
fn record_nbytes(header: &Header, variable: &Variable) -> u64 {
    let dimensions = variable.dimensions.iter().skip(1).filter_map(|&number| header.dimensions.get(number));
    dimensions.fold(variable.kind.nbytes(), |product, dimension| product.saturating_mul(dimension.length))
}
