//! The driver that wrote a file, if it writes one file as several (HDF5 File Format Specification 3.0, II.B and IV.A.2.u).

use super::header::{Message, kind};
use super::superblock::Superblock;
use crate::error::Error;
use crate::pages::Pages;

const WHAT: &str = "driver information";
/// Version, three reserved bytes and a length come before the identification in the block, version alone in the message.
const BEFORE_ID: (u64, usize) = (8, 1);
const ID_NBYTES: usize = 8;

/// Fails if this is one of several files that are one file together. A family that was joined is a file like any other,
/// so only a member that ends too early counts; the others always lead to each other.
pub(crate) fn check(pages: &Pages<'_>, superblock: &Superblock, extension: &[Message]) -> Result<(), Error> {
    let is_short = superblock.end.is_some_and(|end| end > pages.file_length());
    let in_message = extension.iter().find(|message| message.kind == kind::DRIVER);
    let id = match (in_message, superblock.driver) {
        (Some(message), _) => message.body.get(BEFORE_ID.1..BEFORE_ID.1 + ID_NBYTES).map(<[u8]>::to_vec),
        (None, Some(address)) => {
            let start = address.saturating_add(BEFORE_ID.0);
            match pages.bytes(WHAT, start, ID_NBYTES as u64) {
                Ok(bytes) => Some(bytes.to_vec()),
                Err(error) if error.is_not_held() => return Err(error),
                Err(_) => None, // it lies in another file, or the file is cut off before it
            }
        }
        (None, None) => None,
    };
    match id.as_deref() {
        Some(b"NCSAfami") if is_short => Err(Error::unsupported(
            "one file of a family, which HDF5's family driver split by size (join the family with h5repart, or open it \
             with h5py and driver='family')",
        )),
        Some(b"NCSAmult") => Err(Error::unsupported(
            "one file of several, which HDF5's split or multi driver wrote for metadata and elements (open them with \
             h5py and driver='split', and copy them into one file)",
        )),
        _ => Ok(()),
    }
}
