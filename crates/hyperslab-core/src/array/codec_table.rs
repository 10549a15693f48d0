//! The table of codecs: each has one line, which says by what numbers and names files call it.
//!
//! A codec that turns bytes into bytes, and needs no more than the numbers in the file, takes this line and the file of
//! the engine's `codecs` that its first word names. Parsers find it here; the engine declares that file and calls its
//! `decode`; Python reads the names from here too.
//!
//! HDF5's numbers are those of <https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md>.

/// What files call a codec.
#[derive(Debug, PartialEq, Eq)]
pub struct KnownCodec {
    /// The file of the engine that decodes it; empty if none does.
    pub file: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// The number of HDF5's filter; 0 if there is none.
    pub hdf5: u32,
    /// numcodecs' name; empty if there is none.
    pub numcodecs: &'static str,
    /// The name in Zarr 3; empty if there is none.
    pub zarr3: &'static str,
    /// Whether decoding needs the parameters of HDF5's filter.
    pub has_parameters: bool,
    /// The place of its line among those with a file.
    pub line: usize,
}

const NONE: KnownCodec = KnownCodec {
    file: "",
    name: "",
    hdf5: 0,
    numcodecs: "",
    zarr3: "",
    has_parameters: false,
    line: usize::MAX,
};

impl KnownCodec {
    /// All of the table.
    pub fn all() -> impl Iterator<Item = &'static Self> {
        TABLE.iter().copied()
    }

    /// The codec of one of HDF5's filters.
    pub fn of_hdf5(number: u32) -> Option<&'static Self> {
        Self::all().find(|codec| codec.hdf5 == number && number != 0)
    }

    /// The codec with this name in numcodecs, if a file decodes it.
    pub fn of_numcodecs(name: &str) -> Option<&'static Self> {
        Self::all().find(|codec| codec.numcodecs == name && !name.is_empty() && codec.is_decoded())
    }

    /// The codec with this name in Zarr 3, if a file decodes it.
    pub fn of_zarr3(name: &str) -> Option<&'static Self> {
        Self::all().find(|codec| codec.zarr3 == name && !name.is_empty() && codec.is_decoded())
    }

    /// The codec that this file decodes.
    pub fn of_file(file: &str) -> Option<&'static Self> {
        Self::all().find(|codec| codec.file == file && codec.is_decoded())
    }

    /// Whether a file of the engine decodes it.
    pub fn is_decoded(&self) -> bool {
        !self.file.is_empty()
    }
}

/// Gives the table to the macro `$make`.
#[macro_export]
macro_rules! codec_table {
    ($make:ident) => {
        $make! {
            // Each of these has a file in the engine's `codecs`: its first word.
            decoded {
                bitshuffle "bitshuffle" { hdf5: 32008 }
                blosc "blosc" { hdf5: 32001, numcodecs: "blosc", zarr3: "blosc" }
                blosc2 "blosc2" { hdf5: 32026 }
                bzip2 "bzip2" { hdf5: 307, numcodecs: "bz2" }
                gzip "gzip" { numcodecs: "gzip", zarr3: "gzip" }
                lz4 "lz4" { hdf5: 32004 }
                lz4_numcodecs "lz4" { numcodecs: "lz4" }
                lzf "lzf" { hdf5: 32000 }
                nbit "nbit" { hdf5: 5, has_parameters: true }
                nbit_hdf4 "nbit" {}
                packbits "packbits" { numcodecs: "packbits" }
                plio "plio" {}
                rice "rice" {}
                run_length "run-length" {}
                scaleoffset "scaleoffset" { hdf5: 6, has_parameters: true }
                skipping_huffman "skipping-huffman" {}
                szip "szip" { hdf5: 4 }
                szip_hdf4 "szip" {}
                zlib "deflate" { hdf5: 1, numcodecs: "zlib" }
                zstd "zstd" { hdf5: 32015, numcodecs: "zstd", zarr3: "zstd" }
            }
            // The first three are variants of `Codec`; the others we cannot decode.
            others {
                "shuffle" { hdf5: 2, numcodecs: "shuffle" }
                "fletcher32" { hdf5: 3, numcodecs: "fletcher32" }
                "crc32c" { numcodecs: "crc32c", zarr3: "crc32c" }
                "lzo" { hdf5: 305 }
                "mafisc" { hdf5: 32002 }
                "snappy" { hdf5: 32003 }
                "cbf" { hdf5: 32005 }
                "jpeg-xr" { hdf5: 32006 }
                "spdp" { hdf5: 32009 }
                "lpc-rice" { hdf5: 32010 }
                "ccsds123" { hdf5: 32011 }
                "jpeg-ls" { hdf5: 32012 }
                "zfp" { hdf5: 32013 }
                "fpzip" { hdf5: 32014 }
                "b3d" { hdf5: 32016 }
                "sz" { hdf5: 32017 }
                "fcidecomp" { hdf5: 32018 }
                "jpeg" { hdf5: 32019 }
                "vbz" { hdf5: 32020 }
                "fapec" { hdf5: 32021 }
                "bitgroom" { hdf5: 32022 }
                "granular-bitround" { hdf5: 32023 }
                "sz3" { hdf5: 32024 }
                "delta-rice" { hdf5: 32025 }
                "flac" { hdf5: 32027 }
                "sperr" { hdf5: 32028 }
            }
        }
    };
}

macro_rules! statics {
    (
        decoded { $($file:ident $name:literal { $($key:ident: $value:literal),* })* }
        others { $($other:literal { $($other_key:ident: $other_value:literal),* })* }
    ) => {
        /// The lines with a file, in order.
        #[allow(non_camel_case_types)]
        enum Line { $($file),* }

        /// The codecs that a file of the engine decodes, by the name of that file.
        #[allow(non_upper_case_globals, clippy::needless_update)]
        pub mod known {
            use super::{KnownCodec, Line, NONE};

            $(
                #[doc = $name]
                pub static $file: KnownCodec = KnownCodec {
                    file: stringify!($file), name: $name, line: Line::$file as usize, $($key: $value,)* ..NONE
                };
            )*
        }

        static TABLE: &[&KnownCodec] = &[
            $(&known::$file,)*
            $(&KnownCodec { name: $other, $($other_key: $other_value,)* ..NONE },)*
        ];
    };
}

codec_table!(statics);

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_name_means_one_codec() {
        for one in KnownCodec::all() {
            let same = |other: &&KnownCodec| {
                (one.hdf5 != 0 && one.hdf5 == other.hdf5)
                    || (!one.numcodecs.is_empty() && one.numcodecs == other.numcodecs)
                    || (!one.zarr3.is_empty() && one.zarr3 == other.zarr3)
            };
            assert!(KnownCodec::all().filter(same).count() <= 1, "{}", one.name);
        }
        assert_eq!(KnownCodec::of_hdf5(0), None);
        assert_eq!(
            KnownCodec::of_file("").or(KnownCodec::of_numcodecs("")).or(KnownCodec::of_zarr3("")),
            None
        );
        assert_eq!(KnownCodec::of_hdf5(32015), KnownCodec::of_zarr3("zstd"));
        assert_eq!(KnownCodec::of_file("zlib").unwrap().name, "deflate");
    }
}
