//! The start of the headers of fixed and extensible arrays, which their blocks repeat (HDF5 File Format Specification
//! 3.0, VII.C and VII.D).

use super::element::ElementFormat;
use super::index::ChunkIndex;
use crate::cursor::Cursor;
use crate::error::Error;

/// Signature, version and client of every structure.
pub(super) const START_NBYTES: u64 = 6;

/// An array, from the first fields of its header.
#[derive(Debug)]
pub(super) struct Head {
    /// The address of the header.
    pub address: u64,
    /// The kind of elements: 0 for chunks without filters, 1 for chunks with filters.
    pub client: u8,
    /// How elements are stored.
    pub format: ElementFormat,
}

impl Head {
    /// From the start of a header. Errors call the array `kind`.
    pub fn read(
        index: &ChunkIndex,
        signature: &[u8],
        kind: &str,
        address: u64,
        cursor: &mut Cursor<'_>,
    ) -> Result<Self, Error> {
        cursor.signature(signature)?;
        if cursor.u8()? != 0 {
            return Err(Error::unsupported(format!("{kind} of a version other than 0")));
        }
        let client = cursor.u8()?;
        let nbytes = usize::from(cursor.u8()?);
        let format = ElementFormat::new(index.sizes, index.chunk_nbytes, client == 1, nbytes);
        match (format, client) {
            (Some(format), 0..=1) => Ok(Self { address, client, format }),
            _ => Err(cursor.invalid(format!("elements of {nbytes} bytes for client {client}"))),
        }
    }

    /// Reads the start of a block of the array: signature, version, client, and the address of the header.
    pub fn check_start(
        &self,
        index: &ChunkIndex,
        signature: &[u8],
        cursor: &mut Cursor<'_>,
    ) -> Result<(), Error> {
        cursor.signature(signature)?;
        let (version, client) = (cursor.u8()?, cursor.u8()?);
        if version != 0 || client != self.client {
            return Err(cursor.invalid(format!("version {version}, client {client}")));
        }
        if index.sizes.defined_address(cursor)? != self.address {
            return Err(cursor.invalid("it belongs to another array"));
        }
        Ok(())
    }
}

/// How many elements a page has. If that overflows, the block has no pages.
pub(super) fn page_elements(page_nbits: u8) -> u64 {
    1_u64.checked_shl(u32::from(page_nbits)).unwrap_or(u64::MAX)
}
