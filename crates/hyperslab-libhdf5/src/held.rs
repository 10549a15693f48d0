//! Which kind of thing an identifier stands for, and identifiers of others that stay valid while they are used.

#![allow(unsafe_code)]

use std::ffi::c_int;

use crate::Id;
use crate::array::Array;
use crate::file::File;
use crate::kinds::Kind;
use crate::library::Library;
use crate::owned::Owned;
use crate::problem::Problem;
use crate::properties::Properties;
use crate::space::Space;

/// The numbers of `H5I_type_t` that all releases share.
const FILE: c_int = 1;
const TYPE: c_int = 3;
const SPACE: c_int = 4;
const ARRAY: c_int = 5;

impl Library {
    /// Whether an identifier stands for this. Asking reports no error for files, types, dataspaces and arrays, whatever the
    /// number.
    #[inline]
    pub fn is(&self, kind: Kind, id: Id) -> bool {
        // SAFETY: the function takes any number.
        let number = || unsafe { (self.call.id_type)(id) };
        match kind {
            Kind::File => number() == FILE,
            Kind::Type => number() == TYPE,
            Kind::Space => number() == SPACE,
            Kind::Array => number() == ARRAY,
            Kind::Object => matches!(number(), FILE..=ARRAY if number() != SPACE),
            _ => self.class(kind).is_some_and(|class| {
                // SAFETY: the function looks up both.
                unsafe { (self.call.properties_are_of)(id, class) > 0 }
            }),
        }
    }

    /// How often an identifier is held; nothing if there is no such.
    pub fn reference_count(&self, id: Id) -> Option<usize> {
        // SAFETY: the function takes any number.
        usize::try_from(unsafe { (self.call.id_references)(id) }).ok()
    }

    /// A file that stays open until it is dropped. libhdf5 decides whether the identifier stands for one.
    pub fn held_file(&self, id: Id) -> Result<Owned<File<'_>>, Problem> {
        self.keep(Kind::File, id).map(|()| Owned::new(self.file(id)))
    }

    /// The same for an array.
    pub fn held_array(&self, id: Id) -> Result<Owned<Array<'_>>, Problem> {
        self.keep(Kind::Array, id).map(|()| Owned::new(self.array(id)))
    }

    /// The same for a dataspace.
    pub fn held_space(&self, id: Id) -> Result<Owned<Space<'_>>, Problem> {
        self.keep(Kind::Space, id).map(|()| Owned::new(self.space(id)))
    }

    /// The same for a property list of this kind.
    pub fn held_properties(&self, kind: Kind, id: Id) -> Result<Owned<Properties<'_>>, Problem> {
        self.keep(kind, id).map(|()| Owned::new(self.properties(id)))
    }

    /// Counts an identifier once more, if it stands for this.
    pub(crate) fn keep(&self, kind: Kind, id: Id) -> Result<(), Problem> {
        // SAFETY: the function looks up any identifier.
        if self.is(kind, id) && unsafe { (self.call.id_keep)(id) } > 0 {
            return Ok(());
        }
        Err(Problem::NotA(kind, id))
    }
}
