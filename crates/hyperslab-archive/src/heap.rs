//! The values that elements point to: variable-length texts and sequences, stored elsewhere in the file.

use hyperslab_core::Element;
use hyperslab_engine::{FileStore, ReadError};
use hyperslab_parsers::{self as parsers, Pages, Policy, Source};

use crate::archive::{Archive, ArchiveKind};
use crate::array::ArchiveArray;
use crate::error::Error;
use crate::format::Format;
use crate::interrupt::Interruptible;
use crate::sources::{LocalSource, RemoteSource};

impl ArchiveArray {
    /// The file that elements point into: the archive, or one file of a collection.
    pub fn heap_archive(&self) -> &Archive {
        match &self.archive().kind {
            ArchiveKind::Collection(open) => {
                open.heaps.get(&self.number()).map_or(self.archive(), |heap| &heap.file)
            }
            _ => self.archive(),
        }
    }

    /// The values that these elements point to in their file, in order.
    pub fn pointed(&self, elements: &[u8]) -> Result<Vec<Vec<u8>>, Error> {
        let file = self.heap_archive();
        let pointers = Pointers { element: &self.described().element, elements, file };
        match &file.kind {
            ArchiveKind::Local(store) => pointers.local(store),
            ArchiveKind::Closed(version) => {
                let store = FileStore::open(&file.path)?;
                if !store.version().keeps(version) {
                    return Err(ReadError::FileChanged { file: file.name.clone() }.into());
                }
                pointers.local(&store)
            }
            ArchiveKind::Remote(store) => {
                let work = Interruptible::new(&*self.archive().interrupts);
                let source = RemoteSource::new(&**store, &[], &work);
                let found = pointers.values(&source, far_policy());
                let failure = source.failure();
                let fault = |problem| failure.map_or_else(|| pointers.fault(problem), Error::Read);
                found.map_err(fault).map_err(|error| work.failure(error))
            }
            ArchiveKind::Given { store, .. } => {
                let policy = if store.far().is_some() { far_policy() } else { Policy::LOCAL };
                let found = pointers.values(&LocalSource(&**store), policy);
                found.map_err(|problem| pointers.fault(problem))
            }
            ArchiveKind::References(references) => {
                let number = references.found.heap_file(self.number());
                let store = file.stores.get(number.ok_or_else(|| pointers.fault(no_pointers()))?)?;
                let policy = if store.far().is_some() { far_policy() } else { Policy::LOCAL };
                let found = pointers.values(&LocalSource(&*store), policy);
                found.map_err(|problem| pointers.fault(problem))
            }
            ArchiveKind::Folder
            | ArchiveKind::Keys(_)
            | ArchiveKind::Tables(_)
            | ArchiveKind::Collection(_) => Err(pointers.fault(no_pointers())),
        }
    }
}

/// Elements, and the file that they point into.
struct Pointers<'a> {
    element: &'a Element,
    elements: &'a [u8],
    file: &'a Archive,
}

impl Pointers<'_> {
    fn local(&self, store: &FileStore) -> Result<Vec<Vec<u8>>, Error> {
        self.values(&LocalSource(store), Policy::LOCAL).map_err(|problem| self.fault(problem))
    }

    fn values(&self, source: &dyn Source, policy: Policy) -> Result<Vec<Vec<u8>>, parsers::Error> {
        if !matches!(self.file.format, Format::Hdf5 | Format::OwnReferences) {
            return Err(no_pointers());
        }
        parsers::hdf5::resolve(&mut Pages::new(source, policy), self.element, self.elements)
    }

    fn fault(&self, problem: parsers::Error) -> Error {
        Error::parse(self.file.name.clone(), problem)
    }
}

/// Fetches nothing until it is asked.
fn far_policy() -> Policy {
    Policy { first_nbytes: 0, ..Policy::REMOTE }
}

fn no_pointers() -> parsers::Error {
    parsers::Error::Unsupported { feature: "elements of variable length outside HDF5".to_owned() }
}
