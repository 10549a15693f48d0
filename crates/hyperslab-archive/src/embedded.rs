//! An index at the end of an HDF5 file: all bytes that opening the file takes, so that one request brings them.
//!
//! ```text
//! the file, up to the end that its superblock tells │ signature, version │ that end, length of the head, its SHA-256
//!     │ number of ranges, offset and length of each │ their bytes │ length of all this, SHA-256, signature
//! ```
//!
//! Every libhdf5 passes over what stands behind the end, and cuts it off or overwrites it when it writes to the file.
//! The digest of the head, the first bytes of the file, ties the index to the file's state. An index that does not fit
//! is not there. Numbers are little-endian.

use std::path::Path;
use std::sync::Mutex;

use hyperslab_core::ByteRange;
use hyperslab_engine::{FileStore, Store};
use hyperslab_parsers::{self as parsers, Allowed, FetchError, Pages, Policy, Source};
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

use crate::error::Error;
use crate::format::Format;
use crate::sources::LocalSource;

/// The signature at both ends of an index.
pub const SIGNATURE: &[u8; 8] = b"\x89HSE\r\n\x1a\n";
const VERSION: u64 = 1;
/// Signature, version, end, length of the head and its digest, number of ranges.
const START_NBYTES: usize = SIGNATURE.len() + 3 * 8 + SHA256_OUTPUT_LEN + 8;
/// Length, digest, signature.
const FOOTER_NBYTES: usize = 8 + SHA256_OUTPUT_LEN + SIGNATURE.len();
/// The most bytes of an index: one request brings it.
const MOST_NBYTES: u64 = 64 << 20;
/// A page of the index. The reader and the writer must ask for the same bytes.
const POLICY: Policy = Policy { page_nbytes: 4 << 10, first_nbytes: 4 << 10, last_nbytes: 0, gap_pages: 0 };

/// An index that was found at the end of a file, and fits it.
pub(crate) struct Embedded {
    end: u64,
    /// Ranges of the file in order, none of which touches the next, and where the bytes of each start.
    ranges: Vec<(ByteRange, usize)>,
    bytes: Vec<u8>,
}

impl Embedded {
    /// How a parser must ask for the bytes.
    pub const POLICY: Policy = POLICY;

    /// Looks for an index at the end of an HDF5 file, whose first bytes are here.
    pub fn find(source: &dyn Source) -> Result<Option<Self>, parsers::Error> {
        let length = source.length();
        let Some(end) = parsers::hdf5::declared_end(&mut Pages::new(source, Policy::REMOTE))? else {
            return Ok(None);
        };
        let nbytes = length.saturating_sub(end);
        if nbytes < (START_NBYTES + FOOTER_NBYTES) as u64 || nbytes > MOST_NBYTES {
            return Ok(None);
        }
        let all = fetched(source, ByteRange { offset: end, length: nbytes })?;
        let Some(found) = Self::read(&all, end) else { return Ok(None) };
        let (head_nbytes, wanted) = found.1;
        let head = fetched(source, ByteRange { offset: 0, length: head_nbytes })?;
        Ok((digest(&SHA256, &head).as_ref() == wanted.as_slice()).then_some(found.0))
    }

    /// The index, and the length and digest of the head that it belongs to; `None` if it is no whole index of a file
    /// that ends there.
    fn read(all: &[u8], end: u64) -> Option<(Self, (u64, Vec<u8>))> {
        let (content, footer) = all.split_at_checked(all.len().checked_sub(FOOTER_NBYTES)?)?;
        let (length, rest) = footer.split_first_chunk::<8>()?;
        let (sum, signature) = rest.split_at_checked(SHA256_OUTPUT_LEN)?;
        let is_whole = u64::from_le_bytes(*length) == all.len() as u64 && signature == SIGNATURE;
        if !is_whole || digest(&SHA256, content).as_ref() != sum {
            return None;
        }
        let mut rest = content.strip_prefix(SIGNATURE)?;
        let mut number = || {
            let (bytes, behind) = rest.split_first_chunk::<8>()?;
            rest = behind;
            Some(u64::from_le_bytes(*bytes))
        };
        let (version, own_end, head_nbytes) = (number()?, number()?, number()?);
        if version != VERSION || own_end != end || head_nbytes != head_nbytes_of(end) {
            return None;
        }
        let (head_digest, rest) = rest.split_at_checked(SHA256_OUTPUT_LEN)?;
        let (count, rest) = rest.split_first_chunk::<8>()?;
        let count = usize::try_from(u64::from_le_bytes(*count)).ok()?;
        let (listed, bytes) = rest.split_at_checked(count.checked_mul(16)?)?;
        let (mut ranges, mut start, mut behind) = (Vec::with_capacity(count), 0_usize, 0_u64);
        for pair in listed.chunks_exact(16) {
            let (offset, length) = pair.split_first_chunk::<8>()?;
            let range = ByteRange {
                offset: u64::from_le_bytes(*offset),
                length: u64::from_le_bytes(*length.first_chunk()?),
            };
            let stop = range.offset.checked_add(range.length)?;
            if range.length == 0 || stop > end || (!ranges.is_empty() && range.offset <= behind) {
                return None;
            }
            ranges.push((range, start));
            start = start.checked_add(usize::try_from(range.length).ok()?)?;
            behind = stop;
        }
        let found = Self { end, ranges, bytes: bytes.to_vec() };
        (start == found.bytes.len()).then(|| (found, (head_nbytes, head_digest.to_vec())))
    }

    /// The bytes of a range, if the index has all of them.
    fn held(&self, range: ByteRange) -> Option<&[u8]> {
        let number = self.ranges.partition_point(|(one, _)| one.offset <= range.offset).checked_sub(1)?;
        let (one, start) = self.ranges.get(number)?;
        let within = usize::try_from(range.offset - one.offset).ok()?;
        let stop = within.checked_add(usize::try_from(range.length).ok()?)?;
        let all = self.bytes.get(*start..start.checked_add(usize::try_from(one.length).ok()?)?)?;
        all.get(within..stop)
    }
}

/// A file whose index is here. What the index lacks comes from the file.
pub(crate) struct Indexed<'a> {
    pub(crate) file: &'a dyn Source,
    pub(crate) index: &'a Embedded,
}

impl Source for Indexed<'_> {
    fn length(&self) -> u64 {
        self.index.end
    }

    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
        let held: Vec<Option<&[u8]>> = ranges.iter().map(|&range| self.index.held(range)).collect();
        let missing: Vec<ByteRange> =
            ranges.iter().zip(&held).filter(|(_, held)| held.is_none()).map(|(&range, _)| range).collect();
        let fetched = if missing.is_empty() { Vec::new() } else { self.file.read_ranges(&missing)? };
        let mut fetched = fetched.into_iter();
        Ok(held
            .into_iter()
            .map(|held| held.map_or_else(|| fetched.next().unwrap_or_default(), <[u8]>::to_vec))
            .collect())
    }
}

/// A file that notes what is read of it, up to its end.
struct Recorded<'a> {
    file: LocalSource<'a>,
    end: u64,
    seen: Mutex<Vec<ByteRange>>,
}

impl Source for Recorded<'_> {
    fn length(&self) -> u64 {
        self.end
    }

    fn read_ranges(&self, ranges: &[ByteRange]) -> Result<Vec<Vec<u8>>, FetchError> {
        self.seen.lock().unwrap_or_else(std::sync::PoisonError::into_inner).extend_from_slice(ranges);
        self.file.read_ranges(ranges)
    }
}

/// The index of a local HDF5 file, and where it belongs: at the end that the superblock tells. `None` if it does not
/// tell, or if the index would be larger than one request brings.
pub fn embedded_index(path: &Path) -> Result<Option<(u64, Vec<u8>)>, Error> {
    let store = FileStore::open(path)?;
    let file = LocalSource(&store);
    let fault = |problem| Error::parse_of(path, problem);
    if Format::of(&file).map_err(fault)? != Format::Hdf5 {
        let feature = "an index in a file that is not HDF5".to_owned();
        return Err(fault(parsers::Error::Unsupported { feature }));
    }
    let end = parsers::hdf5::declared_end(&mut Pages::new(&file, Policy::LOCAL)).map_err(fault)?;
    let Some(end) = end.filter(|&end| end <= store.nbytes()) else { return Ok(None) };
    let source = Recorded { file, end, seen: Mutex::default() };
    Format::Hdf5.parse(&source, POLICY, path, &[], &Allowed::default()).map_err(fault)?;
    let ranges = joined(source.seen.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner));
    let index = encoded(&LocalSource(&store), end, &ranges).map_err(fault)?;
    store.check_unchanged()?;
    Ok(index.map(|index| (end, index)))
}

/// Ranges in order, of which those that touch are one.
fn joined(mut ranges: Vec<ByteRange>) -> Vec<ByteRange> {
    ranges.sort_unstable();
    let mut joined: Vec<ByteRange> = Vec::new();
    for range in ranges.into_iter().filter(|range| range.length > 0) {
        match joined.last_mut() {
            Some(last) if range.offset <= last.end() => {
                last.length = last.end().max(range.end()) - last.offset;
            }
            _ => joined.push(range),
        }
    }
    joined
}

fn encoded(file: &dyn Source, end: u64, ranges: &[ByteRange]) -> Result<Option<Vec<u8>>, parsers::Error> {
    let bytes: u64 = ranges.iter().map(|range| range.length).sum();
    let around = (START_NBYTES + FOOTER_NBYTES + 16 * ranges.len()) as u64;
    if bytes.saturating_add(around) > MOST_NBYTES {
        return Ok(None);
    }
    let head_nbytes = head_nbytes_of(end);
    let head = fetched(file, ByteRange { offset: 0, length: head_nbytes })?;
    let mut index = SIGNATURE.to_vec();
    for number in [VERSION, end, head_nbytes] {
        index.extend(number.to_le_bytes());
    }
    index.extend(digest(&SHA256, &head).as_ref());
    index.extend((ranges.len() as u64).to_le_bytes());
    for range in ranges {
        index.extend(range.offset.to_le_bytes());
        index.extend(range.length.to_le_bytes());
    }
    for part in file.read_ranges(ranges)? {
        index.extend(part);
    }
    let sum = digest(&SHA256, &index);
    index.extend(((index.len() + FOOTER_NBYTES) as u64).to_le_bytes());
    index.extend(sum.as_ref());
    index.extend(SIGNATURE);
    Ok(Some(index))
}

/// The head comes with the first request in any case.
fn head_nbytes_of(end: u64) -> u64 {
    end.min(Policy::REMOTE.first_nbytes)
}

fn fetched(source: &dyn Source, range: ByteRange) -> Result<Vec<u8>, parsers::Error> {
    Ok(source.read_ranges(&[range])?.into_iter().next().unwrap_or_default())
}
