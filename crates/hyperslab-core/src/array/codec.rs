//! The steps between an array's elements and its stored bytes, as data. The engine executes them.

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
    /// DEFLATE in zlib's framing (RFC 1950): HDF5's filter 1, numcodecs' zlib.
    Zlib,
    /// DEFLATE in gzip's framing (RFC 1952).
    Gzip,
    /// HDF5's checksum, filter 3: four bytes after the data, verified.
    Fletcher32,
    /// HDF5's filter 4: extended-Rice coding by CCSDS 121.0.
    Szip {
        /// libsz's option mask.
        options: u32,
        /// Bits per pixel.
        pixel_nbits: u32,
        /// Pixels per block.
        pixels_per_block: u32,
        /// Pixels per scan line.
        pixels_per_scanline: u32,
    },
    /// HDF5's filter 5: packs the significant bits. Has the client data, as in the file.
    Nbit {
        /// `cd_values` as HDF5 wrote them.
        parameters: Vec<u32>,
    },
    /// HDF5's filter 6: packs offsets from the minimum value. Has the client data, as in the file.
    ScaleOffset {
        /// `cd_values` as HDF5 wrote them.
        parameters: Vec<u32>,
    },
    /// Registered filter 32000.
    Lzf,
    /// One Zstandard frame: registered filter 32015, Zarr's zstd.
    Zstd,
    /// A Blosc-1 (or Blosc-2 chunk) frame, which describes itself: registered filter 32001, Zarr's blosc.
    Blosc,
    /// A Blosc-2 frame as registered filter 32026 writes it.
    Blosc2,
    /// LZ4 blocks in HDF5's framing: registered filter 32004.
    Lz4Hdf5,
    /// One LZ4 block after a little-endian length of four bytes: numcodecs' lz4.
    Lz4Numcodecs,
    /// bzip2: registered filter 307, numcodecs' bz2.
    Bzip2,
    /// Groups bits of equal significance: registered filter 32008.
    Bitshuffle {
        /// Width of an element in bytes.
        element_nbytes: u64,
        /// Elements per block; 0 for the default of 8192 bytes.
        block_elements: u64,
        /// The compression of the transposed blocks.
        inner: BitshuffleInner,
    },
    /// CRC-32C in four little-endian bytes after the data: Zarr's crc32c.
    Crc32c,
    /// A checksum in four little-endian bytes before or after the data: numcodecs' crc32 and adler32.
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
    /// Differences between integers in Rice's code: FITS's `RICE_1`. Decodes to big-endian integers.
    Rice {
        /// Width of an integer in bytes: 1, 2 or 4.
        element_nbytes: u64,
        /// Integers per block.
        block_elements: u64,
    },
    /// Runs of a few non-negative integers: FITS's `PLIO_1`. Decodes to big-endian integers of 4 bytes.
    Plio,
    /// Floats as big-endian integers of 4 bytes, `decoded = stored * scale + zero`: FITS's quantization.
    Quantize {
        /// Scale and zero of each chunk, by its linear index.
        chunks: Vec<Quantum>,
        /// What was added before rounding.
        dither: Dither,
        /// The decoded element: a float.
        decoded: Element,
    },
    /// Eight truth values in a byte, highest bit first, after a byte that counts the unused bits: numcodecs' packbits.
    PackBits,
    /// Runs of one byte, and plain bytes: HDF4's run-length coding.
    RunLength,
    /// A tree that adapts to each byte of an element: HDF4's skipping Huffman coding.
    SkippingHuffman {
        /// The number of trees: one for each byte of an element.
        element_nbytes: u64,
    },
    /// Some bits of each big-endian element: HDF4's n-bit coding.
    NbitHdf4 {
        /// Width of an element in bytes.
        element_nbytes: u64,
        /// The highest stored bit, counted from the least significant one.
        first_bit: u32,
        /// How many bits are stored.
        nbits: u32,
        /// Whether the bits above repeat the highest stored bit; otherwise they are filled like the bits below.
        sign_extended: bool,
        /// Whether bits that are not stored are 1.
        filled_with_ones: bool,
    },
    /// The coding of [`Codec::Szip`], after HDF4's own header or without one.
    SzipHdf4 {
        /// libsz's option mask.
        options: u32,
        /// Bits per pixel.
        pixel_nbits: u32,
        /// Pixels per block.
        pixels_per_block: u32,
        /// Pixels per scan line.
        pixels_per_scanline: u32,
        /// Whether five bytes come first: a flag that tells whether the data are encoded, and how many bytes follow.
        has_header: bool,
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
}

impl Checksum {
    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "crc32",
            Self::Adler32 => "adler32",
            Self::Crc32c => "crc32c",
        }
    }
}

/// The compression of bitshuffled blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BitshuffleInner {
    /// Nothing.
    None,
    /// LZ4 blocks.
    Lz4,
    /// Zstandard frames.
    Zstd,
}

impl Codec {
    /// Its name for people.
    pub fn name(&self) -> &str {
        match self {
            Self::Shuffle { .. } => "shuffle",
            Self::Zlib => "deflate",
            Self::Gzip => "gzip",
            Self::Fletcher32 => "fletcher32",
            Self::Szip { .. } | Self::SzipHdf4 { .. } => "szip",
            Self::Nbit { .. } | Self::NbitHdf4 { .. } => "nbit",
            Self::PackBits => "packbits",
            Self::RunLength => "run-length",
            Self::SkippingHuffman { .. } => "skipping-huffman",
            Self::ScaleOffset { .. } => "scaleoffset",
            Self::Lzf => "lzf",
            Self::Zstd => "zstd",
            Self::Blosc => "blosc",
            Self::Blosc2 => "blosc2",
            Self::Lz4Hdf5 | Self::Lz4Numcodecs => "lz4",
            Self::Bzip2 => "bzip2",
            Self::Bitshuffle { .. } => "bitshuffle",
            Self::Crc32c => "crc32c",
            Self::Checksum { sum, .. } => sum.name(),
            Self::Transpose { .. } => "transpose",
            Self::Delta { .. } => "delta",
            Self::FixedScaleOffset { .. } => "fixedscaleoffset",
            Self::Convert { .. } => "convert",
            Self::Unpack { .. } => "unpack",
            Self::Rice { .. } => "rice",
            Self::Plio => "plio",
            Self::Quantize { .. } => "quantize",
            Self::Values { framing, .. } => framing.name(),
            Self::Unknown { name, .. } => name,
        }
    }
}
