//! HDF5 and NetCDF-4 files, by the HDF5 File Format Specification 3.0.
//!
//! ```text
//! superblock ─► walk: object headers ─► groups ─► links ─► object headers …
//!                                    ├─► attributes ─► global heap
//!                                    └─► arrays ─► chunk index ─► chunks
//!            ─► tree: numbers, segments, names of dimensions
//! ```
//!
//! Steps are small and repeatable. [`crate::Error::NotHeld`] puts a step off to the next round. Any other error marks
//! its object, array or attribute, and the walk goes on. Every structure is read once, every object is once in the
//! tree, and a budget bounds what overlapping structures could multiply.

mod attribute;
mod btree2;
mod budget;
mod cache_image;
mod chunk_index;
mod dataspace;
mod datatype;
mod dense;
mod driver;
mod external;
mod file;
mod fill;
mod filters;
mod fractal_heap;
mod global_heap;
mod header;
mod heap_filters;
mod layout;
mod lazy_index;
mod links;
mod local_heap;
pub(crate) mod lookup3;
mod mappings_block;
mod netcdf4;
mod object;
mod object_facts;
mod scope;
mod sizes;
mod storage;
mod superblock;
mod symbol_table;
mod text;
mod tree;
mod unlimited;
mod virtual_layout;
mod visited;
mod vlen;
mod walk;

#[cfg(test)]
mod tests;

use hyperslab_core::Tree;

pub use self::filters::Filter;
pub use self::lazy_index::LazyIndex;
pub use self::links::{NamedLink, Target};
pub use self::mappings_block::mappings_block;
pub use self::netcdf4::{DIMENSION_ONLY, HIDDEN, NON_COORDINATE_PREFIX, is_netcdf4};
pub use self::object_facts::{ArrayFacts, LayoutFacts, ObjectFacts, ObjectKind, StorageFacts, describe};
pub use self::vlen::resolve;

use self::cache_image::start;
use self::file::File;
use self::scope::Scope;
use self::walk::{Indexes, State, Walk};
use crate::error::Error;
use crate::pages::Pages;
use crate::rounds::settle;

/// Whether the file has HDF5's signature, at offset 0, 512, 1024, 2048 …
pub fn is_hdf5(pages: &mut Pages<'_>) -> Result<bool, Error> {
    match settle(pages, superblock::locate) {
        Ok(_) => Ok(true),
        Err(Error::UnknownFormat { .. }) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Where the file ends by its superblock; `None` if that does not say.
pub fn declared_end(pages: &mut Pages<'_>) -> Result<Option<u64>, Error> {
    settle(pages, superblock::Superblock::read).map(|superblock| superblock.end)
}

/// All metadata of an HDF5 file.
///
/// Damage stays with its object: a link becomes [`hyperslab_core::Link::Unreadable`], the segments of an array or the
/// value of an attribute become an error. An attribute without a name stands for attributes that cannot be listed.
pub fn parse(pages: &mut Pages<'_>) -> Result<Tree, Error> {
    parse_part(pages, &[])
}

/// The part of the metadata that patterns of names select, starting at the root; all of it if there are no patterns.
/// `*` stands for one name, `**` for any number of names, at the end of a pattern for everything below. The tree is as
/// if the file held nothing else.
pub fn parse_part(pages: &mut Pages<'_>, patterns: &[String]) -> Result<Tree, Error> {
    walked(pages, patterns, Indexes::Read).map(|(tree, _)| tree)
}

/// The same without chunks. For each array with a chunk index, by array number, returns what leads to its chunks.
pub fn parse_without_chunks(
    pages: &mut Pages<'_>,
    patterns: &[String],
) -> Result<(Tree, Vec<Option<LazyIndex>>), Error> {
    walked(pages, patterns, Indexes::Kept)
}

fn walked(
    pages: &mut Pages<'_>,
    patterns: &[String],
    indexes: Indexes,
) -> Result<(Tree, Vec<Option<LazyIndex>>), Error> {
    scope::check(patterns)?;
    let superblock = start(pages)?;
    let file = settle(pages, |pages| File::read(pages, &superblock))?;
    let walk = Walk::run(pages, file, superblock.root, Scope::new(patterns), indexes)?;
    let (tree, indexes) = tree::tree(walk, pages.file_length())?;
    Ok((Tree { declared_nbytes: superblock.end, ..tree }, indexes))
}

/// The array whose header is at an address, which counts from the file's base address: a tree of one array without a
/// name. The rest of the file is not read.
pub fn parse_array(pages: &mut Pages<'_>, address: u64) -> Result<Tree, Error> {
    let superblock = start(pages)?;
    let file = settle(pages, |pages| File::read(pages, &superblock))?;
    let place = address.wrapping_add(superblock.sizes.base);
    let walk = Walk::run(pages, file, place, Scope::new(&[]), Indexes::Read)?;
    tree::of_one_array(walk, pages.file_length())
}

/// The filters of the array at a path, from its header. The rest of the file is not read.
pub fn filters(pages: &mut Pages<'_>, path: &str) -> Result<Vec<Filter>, Error> {
    let superblock = start(pages)?;
    let file = settle(pages, |pages| File::read(pages, &superblock))?;
    let scope = Scope::new(&[path.to_owned()]);
    let mut walk = Walk::run(pages, file, superblock.root, scope, Indexes::Kept)?;
    let array = walk.objects.iter().find(|object| matches!(object.state, State::Array(_)));
    let Some(address) = array.map(|object| object.address) else {
        return Err(Error::invalid("root group", superblock.root, format!("{path} leads to no array")));
    };
    settle(pages, |pages| object::filters(&mut walk.file, pages, address))
}

/// The mappings of a block as readers get them, and parsed one by one. Fuzzing compares both.
#[cfg(fuzzing)]
pub fn read_mappings_block(bytes: &[u8]) -> Result<[hyperslab_core::VirtualMappings; 2], Error> {
    let sizes = sizes::Sizes { offset: 8, length: 8, base: 0 };
    let each = virtual_layout::read_one_by_one(bytes, sizes).map(hyperslab_core::VirtualMappings::Each);
    Ok([virtual_layout::read_mappings(bytes, 0, sizes)?, each?])
}
