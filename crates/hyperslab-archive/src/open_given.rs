//! Files that the caller passes as bytes, or as an object that reads them.

use std::path::Path;
use std::sync::Arc;

use hyperslab_engine::Store;
use hyperslab_parsers::{self as parsers, Allowed, Pages, Policy};

use crate::archive::{Archive, ArchiveKind};
use crate::error::Error;
use crate::format::Format;
use crate::open_local::OpenOptions;
use crate::sources::LocalSource;

impl Archive {
    /// Opens a file that the caller passes, as if it were local. `version` tells it from others of the same name. Files
    /// that it names are searched for as if it were in the working directory.
    pub fn open_given(store: Arc<dyn Store>, version: String, options: &OpenOptions) -> Result<Self, Error> {
        let OpenOptions { resolver, patterns, .. } = options;
        let name = store.name().to_owned();
        let path = Path::new(&name);
        let source = LocalSource(&*store);
        let policy = given_policy(&*store);
        let parsed = Format::of(&source).and_then(|format| match format {
            Format::OwnReferences => {
                Err(parsers::Error::Unsupported { feature: "a file of references as an object".to_owned() })
            }
            format => Ok((format, format.parse(&source, policy, path, patterns, resolver.allowed())?)),
        });
        let (format, tree) = parsed.map_err(|problem| Error::parse_of(path, problem))?;
        let stores = Self::stores_of(path, Arc::clone(&store), format, &tree, resolver);
        let kind = ArchiveKind::Given { store, version };
        Ok(Self::new(name.clone(), path, format, tree, kind, stores, options.cache()).with_options(options))
    }

    /// Opens one array of an HDF5 file that the caller passes, by the address of its header, which counts from the
    /// file's base address. The array has number 0 and no name. The rest of the file is not parsed.
    pub fn open_hdf5_array(
        store: Arc<dyn Store>,
        address: u64,
        version: String,
        options: &OpenOptions,
    ) -> Result<Self, Error> {
        let name = store.name().to_owned();
        let path = Path::new(&name);
        let tree = {
            let source = LocalSource(&*store);
            let policy = Policy { first_nbytes: 0, last_nbytes: 0, ..given_policy(&*store) };
            parsers::hdf5::parse_array(&mut Pages::new(&source, policy), address)
        };
        let tree = tree.map_err(|problem| Error::parse_of(path, problem))?;
        let stores = Self::stores_of(path, Arc::clone(&store), Format::Hdf5, &tree, &options.resolver);
        let kind = ArchiveKind::Given { store, version };
        let opened = Self::new(name.clone(), path, Format::Hdf5, tree, kind, stores, options.cache());
        Ok(opened.with_options(options))
    }
}

/// Reads all metadata of a file, and nothing else: a store that keeps what it reads has them afterwards. Fails if the file
/// is none of ours, or is damaged.
pub fn read_metadata(store: &dyn Store) -> Result<(), Error> {
    let (path, source) = (Path::new(store.name()), LocalSource(store));
    let parsed = Format::of(&source)
        .and_then(|format| format.parse(&source, given_policy(store), path, &[], &Allowed::default()));
    parsed.map(drop).map_err(|problem| Error::parse_of(path, problem))
}

/// How to ask for metadata.
pub(crate) fn given_policy(store: &dyn Store) -> Policy {
    if store.far().is_some() { Policy::REMOTE } else { Policy::LOCAL }
}
