//! What the headers of fixed and extensible arrays begin with, and their blocks repeat (HDF5 File Format Specification
//! 3.0, VII.C and VII.D).

use super::element::ElementFormat;
use super::index::ChunkIndex;
use crate::cursor::Cursor;
use crate::error::Error;

/// Signature, version and client of every structure.
pub(super) const START_NBYTES: u64 = 6;

/// An array as its header's first fields describe it.
#[derive(Debug)]
pub(super) struct Head {
    /// Where the header is.
    pub address: u64,
    /// What elements are: 0 of chunks without filters, 1 of others.
    pub client: u8,
    /// How they are written.
    pub format: ElementFormat,
}

impl Head {
    /// From the start of a header; `kind` names such an array in errors.
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

    /// The start of a block of the array: signature, version, client, and the way back to the header.
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

/// Elements of a page. Of more than there can be is a block without pages.
pub(super) fn page_elements(page_nbits: u8) -> u64 {
    1_u64.checked_shl(u32::from(page_nbits)).unwrap_or(u64::MAX)
}
