//! What versions need of a libhdf5: mappings of virtual arrays, and settings that h5py does not offer.

#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_int};
use std::ptr;

use crate::Id;
use crate::kinds::Kind;
use crate::library::Library;
use crate::owned::Owned;
use crate::problem::{Problem, refused, succeeded};
use crate::properties::Properties;
use crate::space::Boxes;
use crate::table::Writing;

/// Twice as much must fit in 16 bits. libhdf5 looks at the product alone, which may have overflowed.
const WIDEST_INDEX: u32 = 0x7fff;

impl Library {
    /// Whether it can do what this module and `stored_chunks` ask for.
    pub fn is_new_enough_to_write(&self) -> bool {
        self.writing.is_some()
    }

    pub(crate) fn writing(&self) -> Result<&Writing, Problem> {
        self.writing.as_ref().ok_or_else(|| refused("what only HDF5 1.10.4 and newer do"))
    }

    /// Adds a mapping to a property list: what is selected in one dataspace, from what is selected in that of a source.
    pub fn add_mapping(
        &self,
        creation: &Owned<Properties<'_>>,
        target: &Boxes<'_>,
        file: &CStr,
        path: &CStr,
        source: &Boxes<'_>,
    ) -> Result<(), Problem> {
        let names = (file.as_ptr(), path.as_ptr());
        let set = self.writing()?.set_virtual;
        // SAFETY: libhdf5 looks up the identifiers, which are held; the names end with a zero, and it copies them.
        let done = unsafe { set(creation.id, target.space.id, names.0, names.1, source.space.id) };
        succeeded(done, "a mapping")
    }

    /// Makes libhdf5 forget objects of a file when they are closed.
    pub fn evict_on_close(&self, access: Id) -> Result<(), Problem> {
        let held = self.held_properties(Kind::AccessToFile, access)?;
        // SAFETY: the identifier is that of such a list.
        let done = unsafe { (self.writing()?.set_evict_on_close)(held.id, true) };
        succeeded(done, "to forget closed objects")
    }

    /// Sets half of how many chunks a node of a chunk index has room for.
    pub fn set_index_width(&self, creation: Id, half: u32) -> Result<(), Problem> {
        let held = self.held_properties(Kind::CreationOfFile, creation)?;
        if half > WIDEST_INDEX {
            return Err(Problem::Misfit(format!(
                "a node of a chunk index has no room for twice {half} chunks"
            )));
        }
        // SAFETY: the identifier is that of such a list.
        let done = unsafe { (self.writing()?.set_index_width)(held.id, half) };
        succeeded(done, "this width of a chunk index")
    }

    /// Sets how many bytes a new group reserves for names.
    pub fn set_heap_nbytes(&self, creation: Id, nbytes: u32) -> Result<(), Problem> {
        let held = self.held_properties(Kind::CreationOfGroup, creation)?;
        // SAFETY: the identifier is that of such a list.
        let done = unsafe { (self.writing()?.set_heap_nbytes)(held.id, nbytes as usize) };
        succeeded(done, "this size of a heap")
    }

    /// Sets which releases must be able to read what is written to a file from now on.
    pub fn set_bounds(&self, file: Id, bounds: (c_int, c_int)) -> Result<(), Problem> {
        let held = self.held_file(file)?;
        let access = self.class(Kind::AccessToFile).unwrap_or(0);
        // SAFETY: libhdf5 looks up the class.
        let list = unsafe { (self.call.properties_create)(access) };
        let list = Owned::returned(self.properties(list)).ok_or_else(|| refused("a property list"))?;
        let writing = self.writing()?;
        // SAFETY: the list is new. libhdf5 checks the bounds of lists, and not those of files.
        succeeded(unsafe { (writing.check_bounds)(list.id, bounds.0, bounds.1) }, "these releases")?;
        // SAFETY: the identifier is that of a file, and the bounds are right.
        succeeded(unsafe { (writing.set_bounds)(held.id, bounds.0, bounds.1) }, "these releases")
    }

    /// The comment of an object; `None` if it has none.
    pub fn comment(&self, object: Id) -> Result<Option<CString>, Problem> {
        if !self.is(Kind::Object, object) {
            return Err(Problem::NotA(Kind::Object, object));
        }
        let comment = self.writing()?.comment;
        // SAFETY: the function looks up any identifier, and without room nothing is written.
        let nbytes = unsafe { comment(object, ptr::null_mut(), 0) };
        let nbytes = usize::try_from(nbytes).map_err(|_| refused("to tell a comment"))?;
        let mut said = vec![0_u8; nbytes + 1];
        // SAFETY: as above; there is as much room as is said.
        let done = unsafe { comment(object, said.as_mut_ptr().cast(), said.len()) };
        succeeded(c_int::from(done >= 0) - 1, "to tell a comment")?;
        let text = CStr::from_bytes_until_nul(&said).ok().filter(|text| !text.is_empty());
        Ok(text.map(CStr::to_owned))
    }

    /// Which kinds of plugins libhdf5 may load: a bit for each.
    pub fn plugins(&self) -> Result<u32, Problem> {
        let mut kinds = 0;
        // SAFETY: the pointer is valid.
        let done = unsafe { (self.writing()?.plugins)(&raw mut kinds) };
        succeeded(done, "to tell whether it loads plugins")?;
        Ok(kinds)
    }

    /// Sets which kinds of plugins libhdf5 may load.
    pub fn set_plugins(&self, kinds: u32) -> Result<(), Problem> {
        // SAFETY: the function takes any number.
        succeeded(unsafe { (self.writing()?.set_plugins)(kinds) }, "to load such plugins")
    }
}
