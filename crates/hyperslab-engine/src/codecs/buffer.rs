//! Memory that is reused from chunk to chunk, and how large the output of a step may be.

use crate::Error;

/// Bytes that stay allocated. The buffer only grows, so nothing is zeroed twice. Callers keep track of the length in
/// use.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    /// Room for this many bytes, holding whatever was there before.
    pub(crate) fn space(&mut self, nbytes: usize) -> Result<&mut [u8], Error> {
        if self.bytes.len() < nbytes {
            self.bytes = Vec::new();
            // This turns a failed allocation into an error. The probe is freed before the real request.
            Vec::<u8>::new().try_reserve_exact(nbytes).map_err(|_| Error::OutOfMemory { nbytes })?;
            // The operating system zeroes pages when they are first touched, so an unused limit costs nothing.
            self.bytes = vec![0; nbytes];
        }
        Ok(self.bytes.get_mut(..nbytes).unwrap_or_default())
    }

    /// The first bytes, as the last step left them.
    pub(crate) fn filled(&self, nbytes: usize) -> &[u8] {
        self.bytes.get(..nbytes).unwrap_or(&self.bytes)
    }
}

/// What is known of the size of a step's output before the step runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Anything else is an error.
    Exact(usize),
    /// Unknown, but larger sizes are an error.
    AtMost(usize),
}

impl Size {
    /// The largest size allowed.
    pub(crate) fn limit(self) -> usize {
        match self {
            Self::Exact(nbytes) | Self::AtMost(nbytes) => nbytes,
        }
    }

    /// The same, plus the bytes that a codec appends.
    pub(crate) fn plus(self, nbytes: usize) -> Self {
        match self {
            Self::Exact(before) => Self::Exact(before.saturating_add(nbytes)),
            Self::AtMost(before) => Self::AtMost(before.saturating_add(nbytes)),
        }
    }

    /// The same number of elements of another width. Unknown if the size is not a whole number of elements.
    pub(crate) fn of_elements(self, nbytes: u64, other_nbytes: u64) -> Self {
        let of = |whole: usize| {
            let count = (whole as u64).checked_div(nbytes).unwrap_or(0);
            usize::try_from(count.saturating_mul(other_nbytes)).unwrap_or(usize::MAX)
        };
        match self {
            Self::Exact(before) => Self::Exact(of(before)),
            Self::AtMost(before) => Self::AtMost(of(before)),
        }
    }

    /// The exact size, for a codec that cannot tell where its output ends.
    pub(crate) fn known(self, codec: &'static str) -> Result<usize, Error> {
        match self {
            Self::Exact(nbytes) => Ok(nbytes),
            Self::AtMost(_) => Err(Error::Unsupported { codec, feature: "data of unknown size" }),
        }
    }

    /// Accepts a size that the data claim or that came out, if it is allowed.
    pub(crate) fn admit(self, codec: &'static str, found: usize) -> Result<usize, Error> {
        match self {
            Self::Exact(expected) if found != expected => Err(Error::DecodedSize { codec, expected, found }),
            Self::AtMost(limit) if found > limit => Err(Error::DecodedBeyond { codec, limit }),
            _ => Ok(found),
        }
    }

    /// The same for a size in the data, which may be too large for memory.
    pub(crate) fn admit_claim(self, codec: &'static str, claim: u64) -> Result<usize, Error> {
        self.admit(codec, usize::try_from(claim).unwrap_or(usize::MAX))
    }

    /// The error when the output did not end where it had to.
    pub(crate) fn exceeded(self, codec: &'static str) -> Error {
        Error::DecodedBeyond { codec, limit: self.limit() }
    }
}
