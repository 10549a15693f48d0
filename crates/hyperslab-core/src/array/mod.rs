//! An array of a file that someone else wrote: its shape and elements, and the segments that hold its chunks.

pub(crate) mod codec;
pub(crate) mod codec_table;
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
use crate::file_identity::FileIdentity;
use crate::unreadable::Unreadable;

/// A value of an attribute, or any small array read with the metadata.
#[derive(Clone, Debug, PartialEq)]
pub struct Value {
    /// The type of its elements.
    pub element: Element,
    /// Its shape: empty for a scalar; `None` for no value at all (a null dataspace).
    pub shape: Option<Vec<u64>>,
    /// Its elements, in C order, as stored.
    pub bytes: Vec<u8>,
    /// The values that its pointers lead to: first each sequence, then the values of its own pointers.
    pub heap: Vec<Vec<u8>>,
}

/// An attribute of a group or an array.
#[derive(Clone, Debug, PartialEq)]
pub struct Attribute {
    /// Its name.
    pub name: String,
    /// Its value, or why it cannot be read.
    pub value: Result<Value, Unreadable>,
}

/// What netCDF readers must know of an array besides its attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Role {
    /// Nothing.
    #[default]
    Plain,
    /// It only stands for a NetCDF-4 dimension without a variable.
    DimensionOnly,
    /// Elements equal to the fill value are missing values, as in Zarr 2.
    FillIsMissing,
}

/// Details of an HDF5 array that reading does not need, but writing another one like it does.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Notes {
    /// Filters by number and parameters in encoding order, including the compression level.
    pub filters: Vec<(u16, Vec<u32>)>,
    /// The name of the elements' committed datatype.
    pub type_name: Option<String>,
}

/// An array as its file describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its shape; empty for a scalar; `None` for a null dataspace, which has no elements.
    pub shape: Option<Vec<u64>>,
    /// Its largest shape: `None` for an unlimited axis.
    pub max_shape: Vec<Option<u64>>,
    /// The type of its elements.
    pub element: Element,
    /// The value of unwritten elements that no segment covers.
    pub fill: Fill,
    /// Whether the file stores it in chunks, even if there is only one. Otherwise it is in one or several pieces.
    pub is_chunked: bool,
    /// Details that reading does not need.
    pub notes: Notes,
    /// What readers of netCDF must know of it besides its attributes.
    pub role: Role,
    /// Where its chunks are, or why that is unknown.
    pub segments: Result<Vec<Segment>, Unreadable>,
    /// What a virtual array shows of other arrays. It is resolved into segments once those are open.
    pub virtual_mappings: VirtualMappings,
    /// The names of its dimensions, if the format or a convention defines them.
    pub dimensions: Option<Vec<String>>,
    /// Its attributes, in the file's order.
    pub attributes: Vec<Attribute>,
}

/// A group: attributes, and links to groups and arrays.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Group {
    /// Its attributes, in the file's order.
    pub attributes: Vec<Attribute>,
    /// Its links by name, in the file's order.
    pub links: Vec<(String, Link)>,
}

/// Where a link leads.
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
        /// The file, as named by the link.
        file: String,
        /// The path in it.
        path: String,
    },
    /// Something that cannot be read: a committed type, a user-defined link, a damaged object.
    Unreadable(Unreadable),
}

/// What the listing of a folder says of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListedFile {
    /// Its size in bytes.
    pub nbytes: u64,
    /// When it was last modified, in nanoseconds since the beginning of 1970, if the system tells.
    pub modified: Option<i128>,
    /// What tells it from others and from itself before a change, if the system tells.
    pub identity: Option<FileIdentity>,
}

/// All metadata of a file. Group 0 is the root.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Tree {
    /// Every group.
    pub groups: Vec<Group>,
    /// Every array, once, however many links lead to it.
    pub arrays: Vec<Array>,
    /// How long the file should be; `None` if its format does not record that.
    pub declared_nbytes: Option<u64>,
    /// The other files that hold chunks, relative to the opened one. File number `i + 1` in manifests is entry `i`.
    pub other_files: Vec<String>,
    /// What the listing of a folder said of the first of these files; empty if nothing was listed.
    pub listed: Vec<ListedFile>,
    /// How references to objects are shown.
    pub names: ObjectNames,
}
