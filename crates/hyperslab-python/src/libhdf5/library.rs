//! `Library`: a libhdf5 that the process has loaded, behind methods that are safe to call with any arguments.
//!
//! Nothing here knows Python. Whoever makes a `Library` promises once that the functions are libhdf5's and that calls do
//! not overlap; each method then checks its identifiers by what libhdf5 says of them, and the lengths of its slices.

use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::ptr;

/// An identifier, as of HDF5 1.10.
pub(crate) type Id = i64;

macro_rules! functions {
    ($($field:ident $name:literal ($($argument:ty),*) -> $result:ty;)*) => {
        struct Functions {
            $($field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        impl Functions {
            /// `None` if one of them is missing.
            ///
            /// # Safety
            /// `find` must return the addresses of libhdf5's functions.
            unsafe fn find(find: impl Fn(&CStr) -> *mut c_void) -> Option<Self> {
                $(
                    let $field = find($name);
                    if $field.is_null() {
                        return None;
                    }
                )*
                // SAFETY: the functions of these names have these signatures.
                unsafe {
                    Some(Self {
                        $($field: std::mem::transmute_copy::<
                            *mut c_void, unsafe extern "C" fn($($argument),*) -> $result,
                        >(&$field),)*
                    })
                }
            }
        }
    };
}

functions! { // their signatures are the same in HDF5 1.10.4 to 2.2
    version c"H5get_libversion" (*mut c_uint, *mut c_uint, *mut c_uint) -> c_int;
    id_type c"H5Iget_type" (Id) -> c_int;
    id_keep c"H5Iinc_ref" (Id) -> c_int;
    id_release c"H5Idec_ref" (Id) -> c_int;
    array_space c"H5Dget_space" (Id) -> Id;
    array_type c"H5Dget_type" (Id) -> Id;
    array_properties c"H5Dget_create_plist" (Id) -> Id;
    write_chunk c"H5Dwrite_chunk" (Id, Id, u32, *const u64, usize, *const c_void) -> c_int;
    type_nbytes c"H5Tget_size" (Id) -> usize;
    space_ndim c"H5Sget_simple_extent_ndims" (Id) -> c_int;
    space_shape c"H5Sget_simple_extent_dims" (Id, *mut u64, *mut u64) -> c_int;
    select_hyperslab c"H5Sselect_hyperslab" (Id, c_int, *const u64, *const u64, *const u64, *const u64) -> c_int;
    is_of_class c"H5Pisa_class" (Id, Id) -> c_int;
    create_properties c"H5Pcreate" (Id) -> Id;
    check_bounds c"H5Pset_libver_bounds" (Id, c_int, c_int) -> c_int;
    layout c"H5Pget_layout" (Id) -> c_int;
    chunk c"H5Pget_chunk" (Id, c_int, *mut u64) -> c_int;
    filter_count c"H5Pget_nfilters" (Id) -> c_int;
    filter c"H5Pget_filter2"
        (Id, c_uint, *mut c_uint, *mut usize, *mut c_uint, usize, *mut c_char, *mut c_uint) -> c_int;
    set_virtual c"H5Pset_virtual" (Id, Id, *const c_char, *const c_char, Id) -> c_int;
    set_evict_on_close c"H5Pset_evict_on_close" (Id, bool) -> c_int;
    set_index_width c"H5Pset_istore_k" (Id, c_uint) -> c_int;
    set_heap_nbytes c"H5Pset_local_heap_size_hint" (Id, usize) -> c_int;
    set_bounds c"H5Fset_libver_bounds" (Id, c_int, c_int) -> c_int;
    comment c"H5Oget_comment" (Id, *mut c_char, usize) -> isize;
    plugins c"H5PLget_loading_state" (*mut c_uint) -> c_int;
    set_plugins c"H5PLset_loading_state" (c_uint) -> c_int;
}

/// What an identifier must stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An open file.
    File,
    /// A file, a group, an array or a committed type.
    Object,
    Space,
    Array,
    CreationOfFile,
    CreationOfGroup,
    CreationOfArray,
    AccessToFile,
}

/// The classes of property lists, in the order of `Library::classes`.
const CLASSES: [(Kind, &CStr); 4] = [
    (Kind::CreationOfFile, c"H5P_CLS_FILE_CREATE_ID_g"),
    (Kind::CreationOfGroup, c"H5P_CLS_GROUP_CREATE_ID_g"),
    (Kind::CreationOfArray, c"H5P_CLS_DATASET_CREATE_ID_g"),
    (Kind::AccessToFile, c"H5P_CLS_FILE_ACCESS_ID_g"),
];

impl Kind {
    fn name(self) -> &'static str {
        match self {
            Self::File => "an open file",
            Self::Object => "an open object",
            Self::Space => "a dataspace",
            Self::Array => "an open array",
            Self::CreationOfFile => "a property list to create files",
            Self::CreationOfGroup => "a property list to create groups",
            Self::CreationOfArray => "a property list to create arrays",
            Self::AccessToFile => "a property list to open files",
        }
    }
}

/// Why a call was not made, or failed.
#[derive(Debug)]
pub(crate) enum Problem {
    /// libhdf5 knows no such thing by this identifier.
    NotA(Kind, Id),
    /// The arguments do not fit each other, or what the identifiers stand for.
    Misfit(String),
    /// libhdf5 reported an error.
    Refused(String),
}

impl fmt::Display for Problem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotA(kind, id) => write!(out, "the identifier {id} is not {} of this libhdf5", kind.name()),
            Self::Misfit(said) => write!(out, "{said}"),
            Self::Refused(what) => write!(out, "libhdf5 refused {what}"),
        }
    }
}

/// `H5S_SELECT_SET`.
const SET: c_int = 0;
/// `H5D_CHUNKED`.
const CHUNKED: c_int = 2;
/// `H5S_MAX_RANK`; a chunk has one axis more, for the bytes of its elements.
const MOST_NDIM: usize = 33;
/// The most elements along an axis that is going to grow: offsets have a sign in places.
const MOST_LENGTH: u64 = i64::MAX.cast_unsigned();
/// Twice as much must fit in 16 bits. libhdf5 looks at the product alone, which may have overflowed.
const WIDEST_INDEX: u32 = 0x7fff;
/// The numbers of `H5I_type_t` that all releases share.
const FILE_ID: c_int = 1;

const SPACE_ID: c_int = 4;
const ARRAY_ID: c_int = 5;

/// A libhdf5 that is loaded for good.
pub(crate) struct Library {
    call: Functions,
    classes: [*const Id; CLASSES.len()],
}

// SAFETY: the pointers are those of variables of a library that is never unloaded, which sets them once, when it starts.
unsafe impl Send for Library {}
// SAFETY: as above.
unsafe impl Sync for Library {}

impl Library {
    /// `None` if it is older than HDF5 1.10.4, or lacks functions.
    ///
    /// # Safety
    /// `find` must return the addresses of functions and variables of one libhdf5 that has started and is never unloaded.
    /// While a method of the library or of what it lends runs, no other thread may call that libhdf5.
    pub unsafe fn find(find: impl Fn(&CStr) -> *mut c_void) -> Option<Self> {
        // SAFETY: as the caller promises.
        let call = unsafe { Functions::find(&find) }?;
        let classes: [*const Id; CLASSES.len()] = CLASSES.map(|(_, name)| find(name).cast_const().cast());
        let mut version: [c_uint; 3] = [0; 3];
        let [major, minor, release] = &mut version;
        // SAFETY: the function writes three numbers.
        let done = unsafe { (call.version)(major, minor, release) };
        let is_known = done >= 0 && version >= [1, 10, 4] && classes.iter().all(|class| !class.is_null());
        is_known.then_some(Self { call, classes })
    }

    /// The identifier of a class of property lists.
    fn class(&self, place: usize) -> Id {
        // SAFETY: the variable is libhdf5's, which set it when it started.
        unsafe { *self.classes[place] }
    }

    /// Keeps what an identifier stands for open. libhdf5 decides whether it stands for that.
    pub fn held(&self, id: Id, kind: Kind) -> Result<Held<'_>, Problem> {
        let class = CLASSES.iter().position(|(one, _)| *one == kind);
        // SAFETY: the functions take any identifier and look it up; the variables are libhdf5's.
        let is_it = unsafe {
            match (class.map(|place| self.class(place)), kind) {
                (Some(class), _) => (self.call.is_of_class)(id, class) > 0,
                (None, Kind::File) => (self.call.id_type)(id) == FILE_ID,
                (None, Kind::Space) => (self.call.id_type)(id) == SPACE_ID,
                (None, Kind::Array) => (self.call.id_type)(id) == ARRAY_ID,
                (None, _) => {
                    matches!((self.call.id_type)(id), FILE_ID..=ARRAY_ID if (self.call.id_type)(id) != SPACE_ID)
                }
            }
        };
        // SAFETY: the identifier is valid, so that it can be counted once more.
        if is_it && unsafe { (self.call.id_keep)(id) } > 0 {
            return Ok(Held { library: self, id });
        }
        Err(Problem::NotA(kind, id))
    }

    /// An identifier that a call returned and that is ours from then on.
    fn owned(&self, id: Id, what: &str) -> Result<Held<'_>, Problem> {
        if id > 0 { Ok(Held { library: self, id }) } else { Err(Problem::Refused(what.to_owned())) }
    }

    /// A dataspace to select in.
    pub fn space(&self, id: Id) -> Result<Space<'_>, Problem> {
        let held = self.held(id, Kind::Space)?;
        let shape = self.shape_of(&held)?;
        Ok(Space { held, shape })
    }

    fn shape_of(&self, space: &Held<'_>) -> Result<Vec<u64>, Problem> {
        let mut shape = [0_u64; MOST_NDIM];
        // SAFETY: the identifier is that of a dataspace, and there is room for as many axes as libhdf5 allows.
        let ndim = unsafe {
            match (self.call.space_ndim)(space.id) {
                0..=32 => (self.call.space_shape)(space.id, shape.as_mut_ptr(), ptr::null_mut()),
                _ => -1,
            }
        };
        let found = usize::try_from(ndim).ok().and_then(|ndim| shape.get(..ndim)).map(<[u64]>::to_vec);
        found.ok_or_else(|| refused("to tell the shape of a dataspace"))
    }

    /// An array whose chunks are written as they are stored.
    pub fn stored_chunks(&self, id: Id) -> Result<StoredChunks<'_>, Problem> {
        let array = self.held(id, Kind::Array)?;
        // SAFETY: the identifiers are valid, and the array has room for the axes of any chunk.
        unsafe {
            let properties =
                self.owned((self.call.array_properties)(id), "to tell the properties of an array")?;
            if (self.call.layout)(properties.id) != CHUNKED {
                return Err(Problem::Misfit(format!("the array {id} has no chunks")));
            }
            let mut shape = [0_u64; MOST_NDIM];
            let ndim = (self.call.chunk)(properties.id, 33, shape.as_mut_ptr());
            let chunk_shape = usize::try_from(ndim).ok().and_then(|ndim| shape.get(..ndim));
            let chunk_shape = chunk_shape.ok_or_else(|| refused("to tell the chunks of an array"))?.to_vec();
            let kind = self.owned((self.call.array_type)(id), "to tell the type of an array")?;
            let width = (self.call.type_nbytes)(kind.id);
            let nbytes = chunk_shape.iter().try_fold(width as u64, |all, length| all.checked_mul(*length));
            let nbytes = nbytes.and_then(|nbytes| usize::try_from(nbytes).ok()).filter(|nbytes| *nbytes > 0);
            let nbytes = nbytes.ok_or_else(|| refused("to tell the bytes of a chunk"))?;
            let space = self.owned((self.call.array_space)(id), "to tell the shape of an array")?;
            let (whole, filters) = (self.shape_of(&space)?, self.filters(&properties)?);
            Ok(StoredChunks { array, whole, shape: chunk_shape, nbytes, filters })
        }
    }

    /// The numbers of the filters of a property list, in order.
    fn filters(&self, properties: &Held<'_>) -> Result<Vec<c_int>, Problem> {
        // SAFETY: the identifier is that of a property list.
        let count = unsafe { (self.call.filter_count)(properties.id) };
        let count = c_uint::try_from(count).map_err(|_| refused("to tell the filters of an array"))?;
        let number = |place| {
            let (mut flags, mut values, mut config) = (0, 0, 0);
            // SAFETY: as above; no room is offered for parameters and names, and the other pointers are valid.
            unsafe {
                (self.call.filter)(
                    properties.id,
                    place,
                    &raw mut flags,
                    &raw mut values,
                    ptr::null_mut(),
                    0,
                    ptr::null_mut(),
                    &raw mut config,
                )
            }
        };
        Ok((0..count).map(number).collect())
    }

    /// Adds a mapping to a property list: what is selected in one dataspace, from what is selected in that of a source.
    pub fn add_mapping(
        &self,
        creation: &Held<'_>,
        target: &Space<'_>,
        file: &CStr,
        path: &CStr,
        source: &Space<'_>,
    ) -> Result<(), Problem> {
        let names = (file.as_ptr(), path.as_ptr());
        // SAFETY: libhdf5 looks up the identifiers, which are held; the names end with a zero, and it copies them.
        let done =
            unsafe { (self.call.set_virtual)(creation.id, target.held.id, names.0, names.1, source.held.id) };
        succeeded(done, "a mapping")
    }

    /// Makes libhdf5 forget objects of a file when they are closed.
    pub fn evict_on_close(&self, access: Id) -> Result<(), Problem> {
        let held = self.held(access, Kind::AccessToFile)?;
        // SAFETY: the identifier is that of such a list.
        succeeded(unsafe { (self.call.set_evict_on_close)(held.id, true) }, "to forget closed objects")
    }

    /// Sets half of how many chunks a node of a chunk index has room for.
    pub fn set_index_width(&self, creation: Id, half: u32) -> Result<(), Problem> {
        let held = self.held(creation, Kind::CreationOfFile)?;
        if half > WIDEST_INDEX {
            return Err(Problem::Misfit(format!(
                "a node of a chunk index has no room for twice {half} chunks"
            )));
        }
        // SAFETY: the identifier is that of such a list.
        succeeded(unsafe { (self.call.set_index_width)(held.id, half) }, "this width of a chunk index")
    }

    /// Sets how many bytes a new group reserves for names.
    pub fn set_heap_nbytes(&self, creation: Id, nbytes: u32) -> Result<(), Problem> {
        let held = self.held(creation, Kind::CreationOfGroup)?;
        // SAFETY: the identifier is that of such a list.
        succeeded(unsafe { (self.call.set_heap_nbytes)(held.id, nbytes as usize) }, "this size of a heap")
    }

    /// Sets which releases must be able to read what is written to a file from now on.
    pub fn set_bounds(&self, file: Id, bounds: (c_int, c_int)) -> Result<(), Problem> {
        let held = self.held(file, Kind::File)?;
        let access = CLASSES.iter().position(|(kind, _)| *kind == Kind::AccessToFile);
        let class = access.map_or(0, |place| self.class(place));
        // SAFETY: libhdf5 looks up the class, and the list is new.
        let made = self.owned(unsafe { (self.call.create_properties)(class) }, "a property list")?;
        // SAFETY: as above. libhdf5 checks the bounds of lists, and not those of files.
        succeeded(unsafe { (self.call.check_bounds)(made.id, bounds.0, bounds.1) }, "these releases")?;
        // SAFETY: the identifier is that of a file, and the bounds are right.
        succeeded(unsafe { (self.call.set_bounds)(held.id, bounds.0, bounds.1) }, "these releases")
    }

    /// The comment of an object; `None` if it has none.
    pub fn comment(&self, object: Id) -> Result<Option<CString>, Problem> {
        let held = self.held(object, Kind::Object)?;
        // SAFETY: the identifier is that of an object, and without room nothing is written.
        let nbytes = unsafe { (self.call.comment)(held.id, ptr::null_mut(), 0) };
        let nbytes = usize::try_from(nbytes).map_err(|_| refused("to tell a comment"))?;
        let mut said = vec![0_u8; nbytes + 1];
        // SAFETY: as above; there is as much room as is said.
        let found = unsafe { (self.call.comment)(held.id, said.as_mut_ptr().cast(), said.len()) };
        succeeded(c_int::from(found >= 0) - 1, "to tell a comment")?;
        let text = CStr::from_bytes_until_nul(&said).ok().filter(|text| !text.is_empty());
        Ok(text.map(CStr::to_owned))
    }

    /// Which kinds of plugins libhdf5 may load: a bit for each.
    pub fn plugins(&self) -> Result<u32, Problem> {
        let mut found = 0;
        // SAFETY: the pointer is valid.
        succeeded(unsafe { (self.call.plugins)(&raw mut found) }, "to tell whether it loads plugins")?;
        Ok(found)
    }

    /// Sets which kinds of plugins libhdf5 may load.
    pub fn set_plugins(&self, kinds: u32) -> Result<(), Problem> {
        // SAFETY: the function takes any number.
        succeeded(unsafe { (self.call.set_plugins)(kinds) }, "to load such plugins")
    }
}

/// An identifier that stays open until it is dropped.
pub(crate) struct Held<'a> {
    library: &'a Library,
    id: Id,
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        // SAFETY: one count of the identifier is ours.
        unsafe { (self.library.call.id_release)(self.id) };
    }
}

/// A dataspace.
pub(crate) struct Space<'a> {
    held: Held<'a>,
    shape: Vec<u64>,
}

impl Space<'_> {
    /// The same dataspace, in which boxes may lie behind the end: what it describes will have grown when it is read.
    pub fn growing(mut self) -> Self {
        self.shape.fill(MOST_LENGTH);
        self
    }

    /// Selects one box, in place of what was selected.
    pub fn select(&self, start: &[u64], shape: &[u64]) -> Result<(), Problem> {
        if self.shape.is_empty() || !is_inside(start, shape, &self.shape) {
            let whole = &self.shape;
            return Err(Problem::Misfit(format!(
                "a dataspace of {whole:?} has no box of {shape:?} at {start:?}"
            )));
        }
        let one = [1_u64; MOST_NDIM];
        let (start, shape) = (start.as_ptr(), shape.as_ptr());
        let select = self.held.library.call.select_hyperslab;
        // SAFETY: all arrays have one entry for each axis of the space, and outlive the call.
        let done = unsafe { select(self.held.id, SET, start, ptr::null(), one.as_ptr(), shape) };
        succeeded(done, "to select a box")
    }
}

/// An array whose chunks are written as they are stored.
pub(crate) struct StoredChunks<'a> {
    array: Held<'a>,
    /// The shape of the array.
    whole: Vec<u64>,
    /// The shape of a chunk.
    pub shape: Vec<u64>,
    /// Bytes of a decoded chunk; never 0.
    pub nbytes: usize,
    /// The numbers of the array's filters, in order.
    pub filters: Vec<c_int>,
}

impl StoredChunks<'_> {
    /// Writes a chunk, given where it begins in the array and which filters were skipped: a bit for each.
    pub fn write(&self, start: &[u64], bytes: &[u8], mask: u32) -> Result<(), Problem> {
        let one = [1_u64; MOST_NDIM]; // the first element must lie inside: libhdf5 would allow one chunk more
        if !is_inside(start, &one[..start.len().min(MOST_NDIM)], &self.whole) {
            return Err(Problem::Misfit(format!("an array of {:?} has no chunk at {start:?}", self.whole)));
        }
        let is_plain = (0..self.filters.len()).all(|place| mask & (1 << place.min(31)) != 0);
        if is_plain && bytes.len() != self.nbytes {
            let (nbytes, given) = (self.nbytes, bytes.len());
            return Err(Problem::Misfit(format!("a chunk without filters has {nbytes} bytes, not {given}")));
        }
        let write = self.array.library.call.write_chunk;
        // SAFETY: the identifier is that of an array with as many axes as the start has entries, and the bytes outlive the
        // call. libhdf5 checks that a chunk begins there.
        let done =
            unsafe { write(self.array.id, 0, mask, start.as_ptr(), bytes.len(), bytes.as_ptr().cast()) };
        if done < 0 { Err(Problem::Refused(format!("the chunk at {start:?}"))) } else { Ok(()) }
    }
}

/// Whether a box has as many axes as an array and lies in it.
fn is_inside(start: &[u64], shape: &[u64], whole: &[u64]) -> bool {
    let mut axes = start.iter().zip(shape).zip(whole);
    (start.len(), shape.len()) == (whole.len(), whole.len())
        && axes.all(|((start, length), whole)| start.checked_add(*length).is_some_and(|stop| stop <= *whole))
}

fn refused(what: &str) -> Problem {
    Problem::Refused(what.to_owned())
}

fn succeeded(done: c_int, what: &str) -> Result<(), Problem> {
    if done < 0 { Err(refused(what)) } else { Ok(()) }
}
