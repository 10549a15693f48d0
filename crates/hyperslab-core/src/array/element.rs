//! What one element of an array is, by its file: width, meaning, byte order.

/// The order of an element's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// The least significant byte first.
    Little,
    /// The most significant byte first.
    Big,
    /// A VAX's order: pairs of bytes are swapped.
    Vax,
}

/// How a fixed-width string ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StringPadding {
    /// A zero byte ends it.
    NullTerminated,
    /// Zero bytes fill the rest.
    NullPadded,
    /// Spaces fill the rest.
    SpacePadded,
    /// No padding: the length is known, and every byte belongs to the text.
    Unpadded,
}

/// The character set of a string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Charset {
    /// ASCII.
    Ascii,
    /// UTF-8.
    Utf8,
}

/// The parts of a floating-point number. Bits count from the least significant one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatLayout {
    /// The first significant bit.
    pub bit_offset: u16,
    /// The number of significant bits.
    pub precision: u16,
    /// The sign bit.
    pub sign_bit: u8,
    /// The first bit of the exponent.
    pub exponent_start: u8,
    /// The number of bits of the exponent.
    pub exponent_nbits: u8,
    /// The first bit of the mantissa.
    pub mantissa_start: u8,
    /// The number of bits of the mantissa.
    pub mantissa_nbits: u8,
    /// The exponent's bias.
    pub exponent_bias: u32,
    /// Whether the leading one of the mantissa is implied.
    pub implied_one: bool,
}

impl FloatLayout {
    /// The layout of IEEE 754's binary16, binary32 or binary64, by width in bytes.
    pub fn ieee(nbytes: u64) -> Option<Self> {
        let (exponent_nbits, mantissa_nbits) = match nbytes {
            2 => (5_u8, 10_u8),
            4 => (8, 23),
            8 => (11, 52),
            _ => return None,
        };
        Some(Self {
            bit_offset: 0,
            precision: u16::from(exponent_nbits) + u16::from(mantissa_nbits) + 1,
            sign_bit: exponent_nbits + mantissa_nbits,
            exponent_start: mantissa_nbits,
            exponent_nbits,
            mantissa_start: 0,
            mantissa_nbits,
            exponent_bias: (1 << (exponent_nbits - 1)) - 1,
            implied_one: true,
        })
    }
}

/// A field of a compound element.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its offset in the element, in bytes.
    pub offset: u64,
    /// Its element.
    pub element: Element,
}

/// A named value of an enumeration. The bytes are in the base type's order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    /// Its name.
    pub name: String,
    /// Its value, as stored.
    pub value: Vec<u8>,
}

/// What one element is.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// An integer. If fewer bits than its width are significant, they are `precision` bits starting at `bit_offset`.
    Integer {
        /// Width in bytes.
        nbytes: u64,
        /// Whether it is signed, in two's complement.
        signed: bool,
        /// Byte order.
        order: ByteOrder,
        /// The first significant bit.
        bit_offset: u16,
        /// The number of significant bits; `8 * nbytes` for an ordinary integer.
        precision: u16,
    },
    /// A floating-point number.
    Float {
        /// Width in bytes.
        nbytes: u64,
        /// Byte order.
        order: ByteOrder,
        /// The layout of its parts.
        layout: FloatLayout,
    },
    /// A pair of floats: real, imaginary.
    Complex {
        /// The element of one part.
        part: Box<Element>,
    },
    /// Text of fixed width.
    FixedString {
        /// Width in bytes.
        nbytes: u64,
        /// How it ends.
        padding: StringPadding,
        /// Its characters.
        charset: Charset,
    },
    /// Bytes without meaning.
    Opaque {
        /// Width in bytes.
        nbytes: u64,
        /// The writer's name for them.
        tag: String,
    },
    /// Bits.
    Bitfield {
        /// Width in bytes.
        nbytes: u64,
        /// Byte order.
        order: ByteOrder,
    },
    /// One of named values.
    Enumeration {
        /// The element that stores the values.
        base: Box<Element>,
        /// The names.
        members: Vec<Member>,
    },
    /// Named fields.
    Compound {
        /// Width in bytes, gaps included.
        nbytes: u64,
        /// The fields, in the file's order.
        fields: Vec<Field>,
    },
    /// A small array of fixed shape.
    Array {
        /// Its shape.
        shape: Vec<u64>,
        /// Its elements.
        element: Box<Element>,
    },
    /// Text of variable length. It is stored elsewhere in the file; the element itself is a pointer.
    VlenString {
        /// Width of the pointer in bytes.
        nbytes: u64,
        /// How it ends.
        padding: StringPadding,
        /// Its characters.
        charset: Charset,
    },
    /// Bytes of variable length. They are stored elsewhere; the element itself is a pointer.
    VlenBytes {
        /// Width of the pointer in bytes.
        nbytes: u64,
    },
    /// The JSON text of any value. It is stored elsewhere; the element itself is a pointer.
    Json {
        /// Width of the pointer in bytes.
        nbytes: u64,
    },
    /// A sequence of variable length. It is stored elsewhere in the file; the element itself is a pointer.
    Vlen {
        /// Width of the pointer in bytes.
        nbytes: u64,
        /// The element of the sequence.
        element: Box<Element>,
    },
    /// A pointer to an object of the file.
    ObjectReference {
        /// Width in bytes.
        nbytes: u64,
    },
    /// A pointer to a part of an array of the file.
    RegionReference {
        /// Width in bytes.
        nbytes: u64,
    },
}

impl Element {
    /// An ordinary integer.
    pub fn integer(nbytes: u64, signed: bool, order: ByteOrder) -> Self {
        let precision = u16::try_from(nbytes.saturating_mul(8)).unwrap_or(u16::MAX);
        Self::Integer { nbytes, signed, order, bit_offset: 0, precision }
    }

    /// An IEEE float of 2, 4 or 8 bytes.
    pub fn float(nbytes: u64, order: ByteOrder) -> Option<Self> {
        Some(Self::Float { nbytes, order, layout: FloatLayout::ieee(nbytes)? })
    }

    /// Whether the bytes point to values elsewhere, directly or in nested elements: text and sequences of variable
    /// length, references.
    pub fn has_pointers(&self) -> bool {
        match self {
            Self::VlenString { .. }
            | Self::VlenBytes { .. }
            | Self::Json { .. }
            | Self::Vlen { .. }
            | Self::ObjectReference { .. }
            | Self::RegionReference { .. } => true,
            Self::Compound { fields, .. } => fields.iter().any(|field| field.element.has_pointers()),
            Self::Array { element, .. } => element.has_pointers(),
            _ => false,
        }
    }

    /// The width in bytes, as stored in a decoded chunk. Saturates if no file can hold an element that wide.
    pub fn nbytes(&self) -> u64 {
        match self {
            Self::Integer { nbytes, .. }
            | Self::Float { nbytes, .. }
            | Self::FixedString { nbytes, .. }
            | Self::Opaque { nbytes, .. }
            | Self::Bitfield { nbytes, .. }
            | Self::Compound { nbytes, .. }
            | Self::VlenString { nbytes, .. }
            | Self::VlenBytes { nbytes }
            | Self::Json { nbytes }
            | Self::Vlen { nbytes, .. }
            | Self::ObjectReference { nbytes }
            | Self::RegionReference { nbytes } => *nbytes,
            Self::Complex { part } => part.nbytes().saturating_mul(2),
            Self::Enumeration { base, .. } => base.nbytes(),
            Self::Array { shape, element } => {
                shape.iter().fold(element.nbytes(), |product, &length| product.saturating_mul(length))
            }
        }
    }
}

/// Whether stored elements are the array's elements without conversion. Names of enumeration values make no difference.
pub fn same_bytes(stored: &Element, wanted: &Element) -> bool {
    let plain = |element: &Element| match element {
        Element::Enumeration { base, .. } => (**base).clone(),
        other => other.clone(),
    };
    stored == wanted || plain(stored) == plain(wanted)
}
