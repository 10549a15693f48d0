//! Objects of an HDF5 file as their headers describe them, read again on demand.

use hyperslab_engine::{FileStore, ReadError};
use hyperslab_parsers::hdf5::{self, ObjectFacts};
use hyperslab_parsers::{self as parsers, Pages, Policy, Source};

use crate::archive::{Archive, ArchiveKind};
use crate::error::Error;
use crate::format::Format;
use crate::interrupt::Interruptible;
use crate::open_given::given_policy;
use crate::sources::{LocalSource, RemoteSource};

impl Archive {
    /// The objects at these addresses, which count from the file's base address; `None` for the root. Headers that are
    /// close together are fetched together.
    pub fn hdf5_objects(&self, addresses: &[Option<u64>]) -> Result<Vec<ObjectFacts>, Error> {
        match &self.kind {
            _ if self.format != Format::Hdf5 => {
                let feature = "HDF5's objects in a file of another format".to_owned();
                Err(Error::parse(self.name.clone(), parsers::Error::Unsupported { feature }))
            }
            ArchiveKind::Local(store) => self.described(&LocalSource(&**store), Policy::LOCAL, addresses),
            ArchiveKind::Closed(version) => {
                let store = FileStore::open(&self.path)?;
                if !store.version().keeps(version) {
                    return Err(ReadError::FileChanged { file: self.name.clone() }.into());
                }
                self.described(&LocalSource(&store), Policy::LOCAL, addresses)
            }
            ArchiveKind::Remote(store) => {
                let work = Interruptible::new(&*self.interrupts);
                let source = RemoteSource::new(&**store, &[], &work);
                let found = self.described(&source, Policy::REMOTE, addresses);
                let failure = source.failure();
                found.map_err(|error| work.failure(failure.map_or(error, Error::Read)))
            }
            ArchiveKind::Given { store, .. } => {
                self.described(&LocalSource(&**store), given_policy(&**store), addresses)
            }
            _ => Ok(Vec::new()), // no other kind is a file of HDF5
        }
    }

    fn described(
        &self,
        source: &dyn Source,
        policy: Policy,
        addresses: &[Option<u64>],
    ) -> Result<Vec<ObjectFacts>, Error> {
        let mut pages = Pages::new(source, Policy { first_nbytes: 0, last_nbytes: 0, ..policy });
        let described = addresses.iter().map(|&address| hdf5::describe(&mut pages, address));
        let found: Result<_, parsers::Error> = described.collect();
        found.map_err(|problem| Error::parse(self.name.clone(), problem))
    }

    /// The number of the array whose header is at an address; `None` if no link leads to one there.
    pub fn array_at(&self, address: u64) -> Result<Option<usize>, Error> {
        let Some(path) = self.tree().names.path(address) else { return Ok(None) };
        let fault = |reason: hyperslab_core::Unreadable| {
            let problem = parsers::Error::Unsupported { feature: reason.to_string() };
            Error::parse(self.name.clone(), problem)
        };
        self.find_array(&path).map_err(fault)
    }
}
