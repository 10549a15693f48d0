//! From the names of chunk files to manifests.

use hyperslab_core::{ByteRange, Codec, Manifest, Segment, Unreadable};

use super::listing::Listing;
use super::{Description, shards};
use crate::segment::{gridded, stored};

/// How the keys of an array's chunks look.
pub(super) struct Keys {
    /// What stands before the first number.
    pub start: String,
    /// What stands between numbers.
    pub separator: String,
    /// The only key of an array without axes.
    pub scalar: String,
}

impl Keys {
    /// The chunk that a key names, if it does name one.
    fn chunk_index(&self, key: &str, ndim: usize) -> Option<Vec<u64>> {
        if ndim == 0 {
            return (key == self.scalar).then(Vec::new);
        }
        let numbers = key.strip_prefix(self.start.as_str())?.split(self.separator.as_str());
        let index: Vec<u64> = numbers.map(plain_number).collect::<Option<_>>()?;
        (index.len() == ndim).then_some(index)
    }
}

/// Decimal digits, no sign, no leading zero: other names are other files.
fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text == "0" || text.starts_with(|digit: char| ('1'..='9').contains(&digit));
    text.parse().ok().filter(|_| is_plain && text.bytes().all(|digit| digit.is_ascii_digit()))
}

/// One file that holds a chunk or a shard.
pub(super) struct ChunkFile<'l> {
    pub path: &'l str,
    pub length: u64,
    pub chunk_index: Vec<u64>,
    /// Its number in the manifest.
    pub number: u32,
}

/// All of an array's chunks.
pub(super) fn segments(
    listing: &Listing,
    path: &str,
    description: &Description,
    codecs: &[Codec],
    files: &mut Vec<String>,
) -> Result<Vec<Segment>, Unreadable> {
    let Description { shape, chunk_shape, element, fill, .. } = description;
    if shape.contains(&0) {
        return Ok(Vec::new());
    }
    let make = |chunk_shape: &[u64], manifest| {
        gridded(shape, chunk_shape.to_vec(), element, fill, codecs.to_vec(), manifest)
    };
    let outer = make(chunk_shape, Manifest::empty())?; // before its files: they are checked against its grid
    let prefix = if path.is_empty() { String::new() } else { format!("{path}/") };
    let chunk_files = chunk_files(listing, &prefix, description, &outer.grid.grid_shape(), files)?;
    let Some(shards) = &description.shards else {
        let chunk = |file: &ChunkFile<'_>| {
            let index = outer.grid.linear_index(&file.chunk_index)?;
            Ok(stored(index, file.number, ByteRange { offset: 0, length: file.length }))
        };
        let chunks: Result<Vec<_>, Unreadable> = chunk_files.iter().map(chunk).collect();
        return Ok(vec![make(chunk_shape, Manifest::of_chunks(chunks?))?]);
    };
    let inner = make(&shards.subchunk_shape, Manifest::empty())?;
    let chunks = shards::subchunks(listing, shards, chunk_shape, &inner.grid, &chunk_files)?;
    Ok(vec![make(&shards.subchunk_shape, Manifest::of_chunks(chunks))?])
}

fn chunk_files<'l>(
    listing: &'l Listing,
    prefix: &'l str,
    description: &Description,
    grid_shape: &[u64],
    files: &mut Vec<String>,
) -> Result<Vec<ChunkFile<'l>>, Unreadable> {
    let mut found = Vec::new();
    for (path, length) in listing.below(prefix) {
        let key = path.get(prefix.len()..).unwrap_or_default();
        let Some(chunk_index) = description.keys.chunk_index(key, grid_shape.len()) else { continue };
        if chunk_index.iter().zip(grid_shape).any(|(index, count)| index >= count) {
            continue; // left over from a larger shape
        }
        files.push(path.to_owned());
        let number =
            u32::try_from(files.len()).map_err(|_| Unreadable::damaged("more files than we can number"))?;
        found.push(ChunkFile { path, length, chunk_index, number });
    }
    Ok(found)
}
