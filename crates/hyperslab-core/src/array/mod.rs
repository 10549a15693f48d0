//! An array of a file that somebody else wrote: its shape and elements, and the segments that hold its chunks.

pub(crate) mod codec;
pub(crate) mod element;
pub(crate) mod fill;
pub(crate) mod manifest;
pub(crate) mod object_names;
pub(crate) mod packing;
pub(crate) mod segment;
pub(crate) mod virtual_mapping;
pub(crate) mod virtual_mappings;

use crate::array::element::Element;
use crate::array::fill::Fill;
use crate::array::object_names::ObjectNames;
use crate::array::segment::Segment;
use crate::array::virtual_mappings::VirtualMappings;
use crate::unreadable::Unreadable;

/// A value of an attribute, or any small array read with the metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// What its elements are.
    pub element: Element,
    /// Its shape: empty for a scalar; `None` for no value at all (a null dataspace).
    pub shape: Option<Vec<u64>>,
    /// Its elements, in C order, as stored.
    pub bytes: Vec<u8>,
    /// What pointers to values elsewhere in the file lead to: first the sequence, then what its own pointers lead to.
    pub heap: Vec<Vec<u8>>,
}

/// An attribute of a group or an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its value, or why it cannot be had.
    pub value: Result<Value, Unreadable>,
}

/// What readers of netCDF must know of an array beside its attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    #[default]
    Plain,
    /// It only stands for a dimension of NetCDF-4 that has no variable.
    DimensionOnly,
    /// Elements with the fill value are missing ones, as in Zarr 2.
    FillIsMissing,
}

/// What an HDF5 file says of an array that reading does not need, but writing another one like it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Filters by number and parameters, first step of encoding first: with the level of compression.
    pub filters: Vec<(u16, Vec<u32>)>,
    /// The name of the committed datatype that elements have.
    pub type_name: Option<String>,
}

/// An array as its file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its shape; empty for a scalar; `None` for a null dataspace, which has no elements.
    pub shape: Option<Vec<u64>>,
    /// Its largest shape: `None` on an axis that may grow for ever.
    pub max_shape: Vec<Option<u64>>,
    /// What its elements are.
    pub element: Element,
    /// What unwritten elements are, where no segment lies.
    pub fill: Fill,
    /// Whether the file keeps it in chunks, be it only one; else it is in one piece, or in several.
    pub is_chunked: bool,
    /// What reading does not need.
    pub notes: Notes,
    /// What readers of netCDF must know of it beside its attributes.
    pub role: Role,
    /// Where its chunks are, or why that cannot be said.
    pub segments: Result<Vec<Segment>, Unreadable>,
    /// What a virtual array shows of other arrays, to be resolved into segments once those are open.
    pub virtual_mappings: VirtualMappings,
    /// Names of its dimensions, where the format or a convention names them.
    pub dimensions: Option<Vec<String>>,
    /// Its attributes, in the file's order.
    pub attributes: Vec<Attribute>,
}

/// A group: attributes, and links to groups and arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Its attributes, in the file's order.
    pub attributes: Vec<Attribute>,
    /// What it holds, by name, in the file's order.
    pub links: Vec<(String, Link)>,
}

/// Where a name leads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Link {
    /// A group of the tree, by its number.
    Group(usize),
    /// An array of the tree, by its number.
    Array(usize),
    /// A path in the same file.
    Soft(String),
    /// A path in another file.
    External {
        /// The file, as the link says it.
        file: String,
        /// The path in it.
        path: String,
    },
    /// Something that cannot be read: a committed type, a user-defined link, a damaged object.
    Unreadable(Unreadable),
}

/// All of a file's metadata. Group 0 is the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Every group.
    pub groups: Vec<Group>,
    /// Every array, each once, however many links lead to it.
    pub arrays: Vec<Array>,
    /// How long the file says that it is; `None` where its format does not say.
    pub declared_nbytes: Option<u64>,
    /// Files other than the opened one that chunks lie in, relative to it; file number `i + 1` of a manifest.
    pub other_files: Vec<String>,
    /// What references to objects are shown as.
    pub names: ObjectNames,
}
