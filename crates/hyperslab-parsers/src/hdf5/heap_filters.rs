//! How the blocks and huge objects of a fractal heap were filtered (HDF5 File Format Specification 3.0, III.G). The
//! links of a group are stored so if its creation properties have filters.

use std::io::Read;

use hyperslab_core::fletcher32_is_right;

use super::filters::{self, Filter};
use crate::cursor::Cursor;
use crate::error::Error;

const FILTERS: &str = "filters of a fractal heap";
const DEFLATE: u16 = 1;
const FLETCHER32: u16 = 3;
const FLETCHER32_NBYTES: usize = 4;

/// The filters of a heap in encoding order.
#[derive(Debug)]
pub(crate) struct HeapFilters(Vec<Filter>);

/// Something that was filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Filtered {
    /// The location of its filtered bytes.
    pub nbytes: u64,
    /// The filters that it skipped.
    pub mask: u32,
}

impl HeapFilters {
    /// From the message in a heap's header.
    pub fn read(offset: u64, message: &[u8]) -> Result<Self, Error> {
        let filters = filters::read(&mut Cursor::new(FILTERS, offset, message))?;
        match filters.iter().find(|filter| ![DEFLATE, FLETCHER32].contains(&filter.number)) {
            Some(Filter { number, name, .. }) => {
                Err(Error::unsupported(format!("filter {number} ({name}) of a fractal heap")))
            }
            None => Ok(Self(filters)),
        }
    }

    /// Decodes these bytes to `nbytes` bytes.
    pub fn decode(
        &self,
        what: &'static str,
        offset: u64,
        stored: &[u8],
        mask: u32,
        nbytes: u64,
    ) -> Result<Vec<u8>, Error> {
        let mut bytes = stored.to_vec();
        for (position, filter) in self.0.iter().enumerate().rev() {
            if u32::try_from(position).is_ok_and(|position| mask.checked_shr(position).unwrap_or(0) & 1 == 1)
            {
                continue;
            }
            if filter.number == DEFLATE {
                let checksums_nbytes = FLETCHER32_NBYTES * self.0.len();
                bytes = inflated(&bytes, nbytes.saturating_add(checksums_nbytes as u64))
                    .ok_or_else(|| Error::invalid(what, offset, "its zlib stream is broken"))?;
            } else {
                check_sum(&mut bytes).ok_or_else(|| {
                    Error::invalid(what, offset, "its bytes do not match their Fletcher checksum")
                })?;
            }
        }
        if bytes.len() as u64 != nbytes {
            let problem = format!("{} bytes after decoding, not {nbytes}", bytes.len());
            return Err(Error::invalid(what, offset, problem));
        }
        Ok(bytes)
    }
}

/// Decodes at most one byte more than expected: memory follows what is there, not what is claimed.
fn inflated(stored: &[u8], limit: u64) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let stream = flate2::read::ZlibDecoder::new(stored);
    stream.take(limit.saturating_add(1)).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

fn check_sum(bytes: &mut Vec<u8>) -> Option<()> {
    let (data, sum) = bytes.split_last_chunk::<FLETCHER32_NBYTES>()?;
    let length = data.len();
    fletcher32_is_right(data, u32::from_le_bytes(*sum)).then(|| bytes.truncate(length))
}
