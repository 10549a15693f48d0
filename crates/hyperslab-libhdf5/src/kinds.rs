//! What identifiers stand for.

use std::ffi::CStr;

/// What an identifier must stand for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An open file.
    File,
    /// A file, a group, an array or a committed type.
    Object,
    /// A type of elements.
    Type,
    /// A dataspace.
    Space,
    /// An open array.
    Array,
    /// A property list to create files.
    CreationOfFile,
    /// A property list to create groups.
    CreationOfGroup,
    /// A property list to create arrays.
    CreationOfArray,
    /// A property list to open files.
    AccessToFile,
}

/// Where libhdf5 keeps the identifiers of classes of property lists, in the order of `Library::classes`.
pub(crate) const CLASSES: [(Kind, &CStr); 4] = [
    (Kind::CreationOfFile, c"H5P_CLS_FILE_CREATE_ID_g"),
    (Kind::CreationOfGroup, c"H5P_CLS_GROUP_CREATE_ID_g"),
    (Kind::CreationOfArray, c"H5P_CLS_DATASET_CREATE_ID_g"),
    (Kind::AccessToFile, c"H5P_CLS_FILE_ACCESS_ID_g"),
];

impl Kind {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::File => "an open file",
            Self::Object => "an open object",
            Self::Type => "a type of elements",
            Self::Space => "a dataspace",
            Self::Array => "an open array",
            Self::CreationOfFile => "a property list to create files",
            Self::CreationOfGroup => "a property list to create groups",
            Self::CreationOfArray => "a property list to create arrays",
            Self::AccessToFile => "a property list to open files",
        }
    }
}
