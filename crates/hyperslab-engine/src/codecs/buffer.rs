//! Memory that is reused from chunk to chunk, and the size that a step's output may have.

use crate::Error;

/// Bytes that stay allocated. It only grows, so that nothing is zeroed twice; callers keep the length in use.
#[derive(Debug, Default)]
pub(crate) struct Buffer {
    bytes: Vec<u8>,
}

impl Buffer {
    /// Room for so many bytes, with whatever was there before.
    pub(crate) fn space(&mut self, nbytes: usize) -> Result<&mut [u8], Error> {
        if self.bytes.len() < nbytes {
            self.bytes = Vec::new();
            // A size that cannot be had is an error here; the probe is given back before the real request.
            Vec::<u8>::new().try_reserve_exact(nbytes).map_err(|_| Error::OutOfMemory { nbytes })?;
            // Zeroed by the operating system, page by page as they are touched: an unused limit costs
            // nothing.
            self.bytes = vec![0; nbytes];
        }
        Ok(self.bytes.get_mut(..nbytes).unwrap_or_default())
    }

    /// The first bytes, as the last step left them.
    pub(crate) fn filled(&self, nbytes: usize) -> &[u8] {
        self.bytes.get(..nbytes).unwrap_or(&self.bytes)
    }
}

/// What is known of the size of a step's output before it is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Size {
    /// Anything else is an error.
    Exact(usize),
    /// Unknown; more than this is an error.
    AtMost(usize),
}

impl Size {
    /// The most that the output may have.
    pub(crate) fn limit(self) -> usize {
        match self {
            Self::Exact(nbytes) | Self::AtMost(nbytes) => nbytes,
        }
    }

    /// The same, larger by what a codec appends.
    pub(crate) fn plus(self, nbytes: usize) -> Self {
        match self {
            Self::Exact(before) => Self::Exact(before.saturating_add(nbytes)),
            Self::AtMost(before) => Self::AtMost(before.saturating_add(nbytes)),
        }
    }

    /// The same number of elements of another width; nothing is known of what makes no whole elements.
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

    /// The size, of a codec that cannot tell where its output ends.
    pub(crate) fn known(self, codec: &'static str) -> Result<usize, Error> {
        match self {
            Self::Exact(nbytes) => Ok(nbytes),
            Self::AtMost(_) => Err(Error::Unsupported { codec, feature: "a size that nothing tells" }),
        }
    }

    /// A size that the bytes claim, or that came out, if it may be.
    pub(crate) fn admit(self, codec: &'static str, found: usize) -> Result<usize, Error> {
        match self {
            Self::Exact(expected) if found != expected => Err(Error::DecodedSize { codec, expected, found }),
            Self::AtMost(limit) if found > limit => Err(Error::DecodedBeyond { codec, limit }),
            _ => Ok(found),
        }
    }

    /// The same, of a size in the bytes, which may be wider than memory.
    pub(crate) fn admit_claim(self, codec: &'static str, claim: u64) -> Result<usize, Error> {
        self.admit(codec, usize::try_from(claim).unwrap_or(usize::MAX))
    }

    /// The output did not end where it had to.
    pub(crate) fn exceeded(self, codec: &'static str) -> Error {
        Error::DecodedBeyond { codec, limit: self.limit() }
    }
}
