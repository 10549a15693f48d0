//! Why a chunk could not be read or decoded.

use thiserror::Error;

/// What is wrong with a chunk, its codecs, or the machine. Every variant names the cause.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Bytes that the codec's encoder never writes.
    #[error("{codec}: {problem}; the chunk is truncated or damaged")]
    Damaged {
        /// The codec.
        codec: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// A checksum does not match.
    #[error(
        "{codec}: the stored checksum is {stored:#010x}, the computed one {computed:#010x}; the chunk is damaged"
    )]
    Checksum {
        /// The codec.
        codec: &'static str,
        /// As stored.
        stored: u32,
        /// As computed.
        computed: u32,
    },
    /// A chunk decodes to another size than its shape requires.
    #[error(
        "{codec} decodes to {found} bytes, but {expected} were expected; the chunk or its metadata are damaged"
    )]
    DecodedSize {
        /// The codec that was decoded last; "stored bytes" if there is none.
        codec: &'static str,
        /// The size by the array's metadata.
        expected: usize,
        /// The size that came out.
        found: usize,
    },
    /// The file is too short for a chunk.
    #[error(
        "its {nbytes} bytes reach past the end of the file at {file_nbytes}; the file is truncated or damaged"
    )]
    PastEnd {
        /// The size of the chunk.
        nbytes: u64,
        /// Where the file ends.
        file_nbytes: u64,
    },
    /// A codec's output exceeds the expected size, or any size that an encoder would have been given.
    #[error(
        "{codec} decodes to more than {limit} bytes; the chunk is damaged, or was crafted to exhaust memory"
    )]
    DecodedBeyond {
        /// The codec.
        codec: &'static str,
        /// The largest size that is accepted.
        limit: usize,
    },
    /// The array's metadata give a codec invalid parameters.
    #[error("{codec}: {problem}; the array's metadata are damaged")]
    Parameters {
        /// The codec.
        codec: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// We do not have this codec.
    #[error(
        "codec {name}{} is unknown, so this array cannot be read",
        .number.map(|number| format!(" (HDF5 filter {number})")).unwrap_or_default()
    )]
    UnknownCodec {
        /// HDF5's filter number, if it has one.
        number: Option<u32>,
        /// Its name in the metadata.
        name: String,
    },
    /// We do not decode this variety of a codec.
    #[error("{codec}: {feature} is not supported")]
    Unsupported {
        /// The codec.
        codec: &'static str,
        /// The unsupported feature.
        feature: &'static str,
    },
    /// The machine has too little memory for a chunk.
    #[error("there is not enough memory for a chunk of {nbytes} bytes, or its metadata are damaged")]
    OutOfMemory {
        /// The size of the chunk.
        nbytes: usize,
    },
}
