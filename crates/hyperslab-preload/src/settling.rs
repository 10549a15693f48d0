//! Which calls can see whether writes still wait, by the names of their functions.

use std::ffi::CStr;

/// When writes that wait have to be stored before a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Settling {
    /// Not at all: the call neither sees nor changes what files hold. Or it does so only by other calls, which come here too.
    Never,
    /// Always. A call that fails returns a negative number.
    Before,
    /// Always. A call that fails returns zero bytes.
    BeforeNbytes,
    /// If the array does not only grow.
    BeforeShrinking,
    /// If the identifier stands for a file, or for an array that the program has closed.
    BeforeRelease,
    /// If the identifier stands for an array that the program has closed, and that is open only for its writes.
    IfClosed,
}

/// Functions beside those of whole families that neither see nor change what files hold. `H5Dwrite` looks for itself.
const HARMLESS: [&[u8]; 9] = [
    b"H5open",
    b"H5get_libversion",
    b"H5check_version",
    b"H5is_library_threadsafe",
    b"H5allocate_memory",
    b"H5resize_memory",
    b"H5free_memory",
    b"H5Zfilter_avail",
    b"H5Zget_filter_info",
];
/// The same for those of an array, as long as the program has it open.
const HARMLESS_IF_OPEN: [&[u8]; 8] = [
    b"H5Dwrite",
    b"H5Dget_space",
    b"H5Dget_type",
    b"H5Dget_create_plist",
    b"H5Dget_access_plist",
    b"H5Iget_type",
    b"H5Iis_valid",
    b"H5Iinc_ref",
];
/// Families of functions for dataspaces, properties, errors and types. What they do is done in memory, but for these.
const FAMILIES: [&[u8]; 4] = [b"H5S", b"H5P", b"H5E", b"H5T"];
const OF_FILES: [&[u8]; 4] = [b"H5Tcommit", b"H5Topen", b"H5Tflush", b"H5Trefresh"];

impl Settling {
    /// What calls of the function of this name need.
    pub fn of(name: &CStr) -> Self {
        let name = name.to_bytes();
        match name {
            b"H5Dset_extent" => return Self::BeforeShrinking,
            b"H5Idec_ref" => return Self::BeforeRelease,
            b"H5Dget_storage_size" | b"H5Aget_storage_size" => return Self::BeforeNbytes,
            _ => {}
        }
        if HARMLESS_IF_OPEN.contains(&name) {
            return Self::IfClosed;
        }
        let is_of_family = name.get(..3).is_some_and(|family| FAMILIES.contains(&family))
            && name.get(3).is_some_and(u8::is_ascii_lowercase)
            && !OF_FILES.iter().any(|other| name.starts_with(other));
        let is_harmless = is_of_family || HARMLESS.contains(&name) || !name.starts_with(b"H5");
        if is_harmless { Self::Never } else { Self::Before }
    }
}

#[cfg(test)]
mod tests {
    use super::Settling;

    #[test]
    fn what_files_hold_is_seen_only_after_it_is_stored() {
        for name in [
            c"H5Fclose",
            c"H5Dread",
            c"H5Aopen",
            c"H5Fget_vfd_handle",
            c"H5Tcommit2",
            c"H5Oclose",
            c"H5close",
        ] {
            assert_eq!(Settling::of(name), Settling::Before, "{name:?}");
        }
        assert_eq!(
            (Settling::of(c"H5Iis_valid"), Settling::of(c"H5Dwrite")),
            (Settling::IfClosed, Settling::IfClosed)
        );
        for name in [c"H5Sselect_hyperslab", c"H5Tequal", c"H5Pcreate", c"H5Eprint2", c"nc_put_vara"] {
            assert_eq!(Settling::of(name), Settling::Never, "{name:?}");
        }
        // The high-level library's, whose names begin like those of families.
        assert_eq!(Settling::of(c"H5TBappend_records"), Settling::Before);
        assert_eq!(Settling::of(c"H5Dset_extent"), Settling::BeforeShrinking);
        assert_eq!(Settling::of(c"H5Idec_ref"), Settling::BeforeRelease);
    }
}
