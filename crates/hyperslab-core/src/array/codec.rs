//! The steps between an array's elements and its stored bytes, as data. The engine executes them.

use crate::array::codec_table::KnownCodec;
use crate::array::element::Element;
use crate::array::packing::Packing;

/// One step, with all parameters that decoding needs. A chain lists its steps in encoding order.
#[derive(Clone, Debug, PartialEq)]
pub enum Codec {
    /// Groups bytes of equal significance. Bytes after the last whole element stay at the end.
    Shuffle {
        /// Width of an element in bytes.
        element_nbytes: u64,
    },
    /// A codec of the table that turns bytes into bytes, with the numbers that it needs.
    Known {
        /// Its line.
        codec: &'static KnownCodec,
        /// The numbers: HDF5's parameters of its filter, or as its decoder says.
        parameters: Vec<u32>,
    },
    /// A checksum in four little-endian bytes before or after the data, verified.
    Checksum {
        /// Which checksum.
        sum: Checksum,
        /// Whether it comes before the data.
        at_start: bool,
    },
    /// Permutes axes: Zarr's transpose. `order[i]` is the axis that axis `i` was before.
    Transpose {
        /// A permutation of the axes.
        order: Vec<usize>,
    },
    /// Differences between neighbours: numcodecs' delta, on integers or floats of this element.
    Delta {
        /// The stored element.
        stored: Element,
        /// The decoded element.
        decoded: Element,
    },
    /// `decoded = stored / scale + offset`: numcodecs' fixedscaleoffset.
    FixedScaleOffset {
        /// The factor.
        scale: f64,
        /// The offset that was subtracted.
        offset: f64,
        /// The stored element.
        stored: Element,
        /// The decoded element.
        decoded: Element,
    },
    /// Converts numbers to the array's kind, width or byte order. This is no codec of a file: a virtual array applies
    /// it to a source's elements.
    Convert {
        /// The stored element.
        stored: Element,
        /// The decoded element.
        decoded: Element,
    },
    /// Unpacks numbers, for a collection whose files were packed differently. This is no codec of a file either.
    Unpack {
        /// How they were packed.
        packing: Packing,
        /// The stored element.
        stored: Element,
        /// The decoded element: a float.
        decoded: Element,
    },
    /// Floats as big-endian integers of 4 bytes, `decoded = stored * scale + zero`: FITS's quantization.
    Quantize {
        /// Scale and zero of each chunk, by its linear index.
        chunks: Vec<Quantum>,
        /// What was added before rounding.
        dither: Dither,
        /// The decoded element: a float.
        decoded: Element,
    },
    /// Values of variable length. The chunk holds them, and each element is a pointer to its value.
    Values {
        /// How the chunk stores them.
        framing: Framing,
        /// The value of elements that were never written.
        fill: Vec<u8>,
    },
    /// A codec that we cannot decode. Arrays with it can be opened; reading them is an error that names it.
    Unknown {
        /// HDF5's filter number, if it has one.
        number: Option<u32>,
        /// Its name, from the file or from our table of registered filters.
        name: String,
    },
}

/// Width in bytes of an element that points to a value of its chunk.
pub const VALUE_POINTER_NBYTES: u64 = 16;

/// How a chunk stores values of variable length. Except in JSON, a count comes first, then each value after its length;
/// both numbers have 4 bytes, little-endian.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Framing {
    /// Texts: Zarr's vlen-utf8.
    Utf8,
    /// Bytes: Zarr's vlen-bytes.
    Bytes,
    /// Sequences of elements of one width: numcodecs' vlen-array.
    Sequences {
        /// Width of an element of a sequence in bytes.
        element_nbytes: u64,
    },
    /// One JSON document: the values in nested lists, then their dtype and shape: numcodecs' json2.
    Json,
}

impl Framing {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "vlen-utf8",
            Self::Bytes => "vlen-bytes",
            Self::Sequences { .. } => "vlen-array",
            Self::Json => "json2",
        }
    }
}

/// How to turn the integers of one chunk of quantized floats back into floats.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantum {
    /// The scale.
    pub scale: f64,
    /// The zero point.
    pub zero: f64,
    /// The integer that stands for NaN.
    pub null: Option<i32>,
    /// Where the chunk starts in the sequence of random numbers, for dithering.
    pub dither_start: u32,
}

/// What was added to quantized floats before rounding, and must be subtracted again (FITS Standard 4.0, section 10.2.1
/// and appendix I).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dither {
    /// Nothing.
    None,
    /// A random number between -0.5 and 0.5: `SUBTRACTIVE_DITHER_1`.
    Subtractive,
    /// The same, but zeros stay zeros: `SUBTRACTIVE_DITHER_2`.
    KeepingZeros,
}

/// A checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// CRC-32 of zlib and IEEE 802.3.
    Crc32,
    /// Adler-32 (RFC 1950).
    Adler32,
    /// CRC-32C (RFC 3720).
    Crc32c,
    /// HDF5's, of its filter 3.
    Fletcher32,
}

impl Checksum {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "crc32",
            Self::Adler32 => "adler32",
            Self::Crc32c => "crc32c",
            Self::Fletcher32 => "fletcher32",
        }
    }
}

impl Codec {
    /// A codec of the table that needs no numbers.
    pub fn known(codec: &'static KnownCodec) -> Self {
        Self::with(codec, [])
    }

    /// A codec of the table with the numbers that its decoder needs.
    pub fn with(codec: &'static KnownCodec, parameters: impl Into<Vec<u32>>) -> Self {
        Self::Known { codec, parameters: parameters.into() }
    }

    /// A checksum after the data.
    pub fn checksum(sum: Checksum) -> Self {
        Self::Checksum { sum, at_start: false }
    }

    /// Its name for people.
    pub fn name(&self) -> &str {
        if let Self::Unknown { name, .. } = self { name } else { self.kind() }
    }

    /// The same, if it does not come from the file.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Known { codec, .. } => codec.name,
            Self::Shuffle { .. } => "shuffle",
            Self::Checksum { sum, .. } => sum.name(),
            Self::Transpose { .. } => "transpose",
            Self::Delta { .. } => "delta",
            Self::FixedScaleOffset { .. } => "fixedscaleoffset",
            Self::Convert { .. } => "convert",
            Self::Unpack { .. } => "unpack",
            Self::Quantize { .. } => "quantize",
            Self::Values { framing, .. } => framing.name(),
            Self::Unknown { .. } => "unknown codec",
        }
    }
}
