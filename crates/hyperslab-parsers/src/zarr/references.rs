//! Reference files (JSON): recognizes their kind and finds the files that they name.

use std::path::Path;

use super::hierarchy::{Hierarchy, Location};
use super::{chunkstore, document, files, kerchunk};
use crate::allowed::Allowed;
use crate::error::Error;

/// The hierarchy of a reference file.
pub(super) fn read(bytes: &[u8], folder: &Path, allowed: &Allowed) -> Result<Hierarchy, Error> {
    let parsed = kerchunk::References::of(bytes).or_else(|error| {
        let quoted = document::with_quoted_words(std::str::from_utf8(bytes).map_err(|_| error)?);
        kerchunk::References::of(quoted.as_bytes())
    });
    let parsed = parsed.map_err(|error| files::invalid(error.to_string()))?;
    if parsed.is_consolidated {
        let entries = vec![(".zmetadata".into(), Location::Inline(bytes.into()))];
        return chunkstore::resolved(Hierarchy::new(entries, Vec::new(), folder, allowed));
    }
    let (entries, files) = parsed.resolved()?;
    Ok(Hierarchy::new(entries, files, folder, allowed))
}
