//! Why a chunk could not be read, or not be decoded.

use thiserror::Error;

/// What is wrong with a chunk, its codecs, or the machine. Every variant names the culprit.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Error {
    /// Bytes that the codec's encoder does not write.
    #[error("{codec}: {problem}; the chunk is truncated or damaged")]
    Damaged {
        /// The codec.
        codec: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// A checksum does not match.
    #[error("{codec}: checksum {stored:#010x} is stored, {computed:#010x} computed; the chunk is damaged")]
    Checksum {
        /// The codec.
        codec: &'static str,
        /// As stored.
        stored: u32,
        /// As computed.
        computed: u32,
    },
    /// A chunk decodes to another size than its shape says.
    #[error(
        "{codec} decodes to {found} bytes where {expected} are due; the chunk or its metadata are damaged"
    )]
    DecodedSize {
        /// The codec that was decoded last; "stored bytes" where there is none.
        codec: &'static str,
        /// What the array's metadata say.
        expected: usize,
        /// What came out.
        found: usize,
    },
    /// A chunk that its file is too short for.
    #[error(
        "its {nbytes} bytes reach past the end of the file, {file_nbytes}; the file is truncated or damaged"
    )]
    PastEnd {
        /// What the chunk takes.
        nbytes: u64,
        /// Where the file ends.
        file_nbytes: u64,
    },
    /// A codec's output goes on beyond what is due, or beyond what any encoder would have been given.
    #[error("{codec} decodes to more than {limit} bytes; the chunk is damaged, or made to exhaust memory")]
    DecodedBeyond {
        /// The codec.
        codec: &'static str,
        /// The most that is accepted.
        limit: usize,
    },
    /// The array's metadata give a codec parameters that it cannot have.
    #[error("{codec}: {problem}; the array's metadata are damaged")]
    Parameters {
        /// The codec.
        codec: &'static str,
        /// What is wrong.
        problem: &'static str,
    },
    /// A codec that we do not have.
    #[error(
        "codec {name}{} is not known, so this array cannot be read",
        .number.map(|number| format!(" (HDF5 filter {number})")).unwrap_or_default()
    )]
    UnknownCodec {
        /// HDF5's filter number, where it has one.
        number: Option<u32>,
        /// Its name, as the metadata have it.
        name: String,
    },
    /// A variety of a codec that we do not decode.
    #[error("{codec}: {feature} is not supported")]
    Unsupported {
        /// The codec.
        codec: &'static str,
        /// What of it.
        feature: &'static str,
    },
    /// The machine has too little memory for a chunk.
    #[error(
        "no memory for {nbytes} bytes of a chunk: it needs a larger machine, or its metadata are damaged"
    )]
    OutOfMemory {
        /// What was asked for.
        nbytes: usize,
    },
}
