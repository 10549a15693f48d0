//! How values are written one after another: numbers in as few bytes as they need, lists after their lengths.

use hyperslab_core::{AxisSelection, ChunkGrid, Unreadable};

use crate::cursor::Cursor;
use crate::error::Error;

/// How deeply elements may be nested. Dropping and comparing them is recursive.
const MOST_DEPTH: usize = 64;

/// The bytes to read from, and the depth of nesting so far.
pub(super) struct Input<'a> {
    pub cursor: Cursor<'a>,
    depth: usize,
}

impl<'a> Input<'a> {
    pub fn new(cursor: Cursor<'a>) -> Self {
        Self { cursor, depth: 0 }
    }

    pub fn invalid(&self, problem: &str) -> Error {
        Error::invalid("references", self.cursor.offset(), problem)
    }

    /// Calls `read` one level deeper.
    pub fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == MOST_DEPTH {
            return Err(self.invalid("values nested too deeply"));
        }
        self.depth += 1;
        let found = read(self);
        self.depth -= 1;
        found
    }

    /// The number of items that follow. Each takes at least one byte.
    pub fn count(&mut self) -> Result<usize, Error> {
        let count = u64::read(self)?;
        let count = usize::try_from(count).ok().filter(|&count| count <= self.cursor.remaining());
        count.ok_or_else(|| self.invalid("a list longer than the file"))
    }
}

/// A value that can be written and read back.
pub(super) trait Stored: Sized {
    fn write(&self, out: &mut Vec<u8>);
    fn read(input: &mut Input<'_>) -> Result<Self, Error>;
}

impl Stored for u64 {
    /// Seven bits in each byte, the least significant first. The highest bit means that more follow (LEB128).
    fn write(&self, out: &mut Vec<u8>) {
        let mut rest = *self;
        while rest >= 0x80 {
            out.push(rest.to_le_bytes()[0] | 0x80);
            rest >>= 7;
        }
        out.push(rest.to_le_bytes()[0]);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        let mut value = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = input.cursor.u8()?;
            let bits = u64::from(byte & 0x7f);
            if bits << shift >> shift != bits {
                break;
            }
            value |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(value);
            }
        }
        Err(input.invalid("a number above 2^64"))
    }
}

macro_rules! narrow {
    ($($kind:ty),*) => { $(
        #[allow(clippy::unnecessary_fallible_conversions)] // usize has no infallible conversion
        impl Stored for $kind {
            fn write(&self, out: &mut Vec<u8>) {
                u64::try_from(*self).unwrap_or(u64::MAX).write(out);
            }

            fn read(input: &mut Input<'_>) -> Result<Self, Error> {
                let value = u64::read(input)?;
                Self::try_from(value).map_err(|_| input.invalid("a number that is too large"))
            }
        }
    )* };
}

narrow!(u32, u16, usize);

impl Stored for u8 {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        input.cursor.u8()
    }
}

impl Stored for bool {
    fn write(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        match input.cursor.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(input.invalid("neither true nor false")),
        }
    }
}

impl Stored for i32 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        input.cursor.u32().map(u32::cast_signed)
    }
}

impl Stored for f64 {
    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.to_le_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        input.cursor.u64().map(Self::from_bits)
    }
}

impl Stored for String {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        out.extend(self.as_bytes());
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        let count = input.count()?;
        let bytes = input.cursor.take(count)?.to_vec();
        Self::from_utf8(bytes).map_err(|_| input.invalid("text that is not UTF-8"))
    }
}

impl<T: Stored> Stored for Vec<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.len().write(out);
        for item in self {
            item.write(out);
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        (0..input.count()?).map(|_| T::read(input)).collect()
    }
}

impl<T: Stored> Stored for Option<T> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_some().write(out);
        if let Some(value) = self {
            value.write(out);
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        bool::read(input)?.then(|| T::read(input)).transpose()
    }
}

impl<T: Stored> Stored for Result<T, Unreadable> {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_ok().write(out);
        match self {
            Ok(value) => value.write(out),
            Err(reason) => reason.write(out),
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        if bool::read(input)? { T::read(input).map(Ok) } else { Unreadable::read(input).map(Err) }
    }
}

impl<T: Stored> Stored for Box<T> {
    fn write(&self, out: &mut Vec<u8>) {
        T::write(self, out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        T::read(input).map(Self::new)
    }
}

impl<A: Stored, B: Stored> Stored for (A, B) {
    fn write(&self, out: &mut Vec<u8>) {
        self.0.write(out);
        self.1.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        Ok((A::read(input)?, B::read(input)?))
    }
}

impl Stored for AxisSelection {
    fn write(&self, out: &mut Vec<u8>) {
        for number in [self.start(), self.stride(), self.count(), self.block()] {
            number.write(out);
        }
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        let [start, stride, count, block] =
            [u64::read(input)?, u64::read(input)?, u64::read(input)?, u64::read(input)?];
        Self::new(0, start, stride, count, block).map_err(|error| input.invalid(&error.to_string()))
    }
}

impl Stored for ChunkGrid {
    fn write(&self, out: &mut Vec<u8>) {
        self.shape().to_vec().write(out);
        self.chunk_shape().to_vec().write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        let (shape, chunk_shape) = (Vec::read(input)?, Vec::read(input)?);
        Self::new(shape, chunk_shape).map_err(|error| input.invalid(&error.to_string()))
    }
}
