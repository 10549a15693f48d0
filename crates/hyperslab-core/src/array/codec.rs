//! The steps between an array's elements and its stored bytes, as data; the engine carries them out.

use crate::array::element::Element;
use crate::array::packing::Packing;

/// One step, with all that decoding it needs. In a chain they stand in the order of encoding.
#[derive(Clone, Debug, PartialEq)]
pub enum Codec {
    /// Bytes of equal significance together. A remainder that is no whole element stays at the end.
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
        /// Bits of a pixel.
        pixel_nbits: u32,
        /// Pixels of a block.
        pixels_per_block: u32,
        /// Pixels of a scan line.
        pixels_per_scanline: u32,
    },
    /// HDF5's filter 5: significant bits packed. The client data, as in the file.
    Nbit {
        /// `cd_values` as HDF5 wrote them.
        parameters: Vec<u32>,
    },
    /// HDF5's filter 6: offsets from the least value, packed. The client data, as in the file.
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
    /// One LZ4 block behind four bytes of length, little-endian: numcodecs' lz4.
    Lz4Numcodecs,
    /// bzip2: registered filter 307, numcodecs' bz2.
    Bzip2,
    /// Bits of equal significance together: registered filter 32008.
    Bitshuffle {
        /// Width of an element in bytes.
        element_nbytes: u64,
        /// Elements of a block; 0 for the default of 8192 bytes.
        block_elements: u64,
        /// What the transposed blocks are compressed with.
        inner: BitshuffleInner,
    },
    /// CRC-32C, four bytes, little-endian, after the data: Zarr's crc32c.
    Crc32c,
    /// A checksum of four bytes, little-endian, before or after the data: numcodecs' crc32 and adler32.
    Checksum {
        /// Which sum.
        sum: Checksum,
        /// Whether it stands before the data.
        at_start: bool,
    },
    /// Axes permuted before the bytes: Zarr's transpose. `order[i]` is the axis that axis `i` was.
    Transpose {
        /// A permutation of the axes.
        order: Vec<usize>,
    },
    /// Differences between neighbours: numcodecs' delta, on integers or floats of this element.
    Delta {
        /// What is stored.
        stored: Element,
        /// What it decodes to.
        decoded: Element,
    },
    /// `decoded = stored / scale + offset`: numcodecs' fixedscaleoffset.
    FixedScaleOffset {
        /// The factor.
        scale: f64,
        /// What was subtracted.
        offset: f64,
        /// What is stored.
        stored: Element,
        /// What it decodes to.
        decoded: Element,
    },
    /// Numbers of another kind, width or byte order than the array's: no codec of a file, but what a virtual array
    /// does to a source's elements.
    Convert {
        /// What is stored.
        stored: Element,
        /// What it decodes to.
        decoded: Element,
    },
    /// Numbers as a collection of files that were packed differently has them: no codec of a file either.
    Unpack {
        /// How they were packed.
        packing: Packing,
        /// What is stored.
        stored: Element,
        /// What it decodes to: floats.
        decoded: Element,
    },
    /// Differences between integers in Rice's code: FITS's `RICE_1`. Decodes to big-endian integers.
    Rice {
        /// Width of an integer in bytes: 1, 2 or 4.
        element_nbytes: u64,
        /// Integers of a block.
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
        /// What it decodes to: floats.
        decoded: Element,
    },
    /// Runs of one byte, and bytes as they are: HDF4's run-length coding.
    RunLength,
    /// A tree that adapts to each byte of an element: HDF4's skipping Huffman coding.
    SkippingHuffman {
        /// Trees that take turns: one for each byte of an element.
        element_nbytes: u64,
    },
    /// Some bits of each big-endian element: HDF4's n-bit coding.
    NbitHdf4 {
        /// Width of an element in bytes.
        element_nbytes: u64,
        /// The highest bit that is stored, counted from the least significant one.
        first_bit: u32,
        /// How many bits are stored.
        nbits: u32,
        /// Whether the highest stored bit is repeated above; otherwise the bits there are as those below.
        sign_extended: bool,
        /// Whether bits that are not stored are 1.
        filled_with_ones: bool,
    },
    /// The coding of [`Codec::Szip`] behind HDF4's own header, or none.
    SzipHdf4 {
        /// libsz's option mask.
        options: u32,
        /// Bits of a pixel.
        pixel_nbits: u32,
        /// Pixels of a block.
        pixels_per_block: u32,
        /// Pixels of a scan line.
        pixels_per_scanline: u32,
        /// Five bytes come first: whether anything was encoded, and how many bytes follow.
        has_header: bool,
    },
    /// Values of any length: the chunk holds them, and each element points to its own (`VALUE_POINTER_NBYTES`).
    Values {
        /// How they lie in the chunk.
        framing: Framing,
        /// The value of elements that nobody wrote.
        fill: Vec<u8>,
    },
    /// A codec that we cannot decode. Arrays with it open; reading them is a named error.
    Unknown {
        /// HDF5's filter number, where it has one.
        number: Option<u32>,
        /// Its name, as the file or our own table of registered filters has it.
        name: String,
    },
}

/// Width of an element that points to a value of its chunk.
pub const VALUE_POINTER_NBYTES: u64 = 16;

/// How values of any length lie in a chunk. But for JSON, a count of 4 bytes comes first, then each value behind its
/// length of 4 bytes, all little-endian.
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
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "vlen-utf8",
            Self::Bytes => "vlen-bytes",
            Self::Sequences { .. } => "vlen-array",
            Self::Json => "json2",
        }
    }
}

/// What the integers of one chunk of quantized floats stand for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Quantum {
    /// What one step is.
    pub scale: f64,
    /// What 0 is.
    pub zero: f64,
    /// The integer that stands for not-a-number.
    pub null: Option<i32>,
    /// Where in the sequence of random numbers the chunk starts, for dithering.
    pub dither_start: u32,
}

/// What was added to quantized floats before they were rounded, and is subtracted again (FITS Standard 4.0,
/// section 10.2.1 and appendix I).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dither {
    /// Nothing.
    None,
    /// A random number between -0.5 and 0.5: `SUBTRACTIVE_DITHER_1`.
    Subtractive,
    /// The same, but zeros stay zeros: `SUBTRACTIVE_DITHER_2`.
    KeepingZeros,
}

/// A sum over bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Checksum {
    /// CRC-32 as zlib and IEEE 802.3 have it.
    Crc32,
    /// Adler-32 (RFC 1950).
    Adler32,
    /// CRC-32C (RFC 3720).
    Crc32c,
}

impl Checksum {
    /// What people call it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Crc32 => "crc32",
            Self::Adler32 => "adler32",
            Self::Crc32c => "crc32c",
        }
    }
}

/// What bitshuffled blocks are compressed with.
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
    /// What people call it.
    pub fn name(&self) -> &str {
        match self {
            Self::Shuffle { .. } => "shuffle",
            Self::Zlib => "deflate",
            Self::Gzip => "gzip",
            Self::Fletcher32 => "fletcher32",
            Self::Szip { .. } | Self::SzipHdf4 { .. } => "szip",
            Self::Nbit { .. } | Self::NbitHdf4 { .. } => "nbit",
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
