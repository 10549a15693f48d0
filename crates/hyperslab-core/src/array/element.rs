//! What one element of an array is, as its file says it: width, meaning, byte order.

/// The order of an element's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ByteOrder {
    /// The least significant byte first.
    Little,
    /// The most significant byte first.
    Big,
    /// A VAX's: pairs swapped.
    Vax,
}

/// How a fixed string says where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StringPadding {
    /// A zero byte ends it.
    NullTerminated,
    /// Zero bytes fill the rest.
    NullPadded,
    /// Spaces fill the rest.
    SpacePadded,
    /// Nothing: its length is known, and every byte counts.
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

/// Where the parts of a floating-point number lie; bits count from the least significant one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FloatLayout {
    /// First significant bit.
    pub bit_offset: u16,
    /// Significant bits.
    pub precision: u16,
    /// Bit that holds the sign.
    pub sign_bit: u8,
    /// First bit of the exponent.
    pub exponent_start: u8,
    /// Bits of the exponent.
    pub exponent_nbits: u8,
    /// First bit of the mantissa.
    pub mantissa_start: u8,
    /// Bits of the mantissa.
    pub mantissa_nbits: u8,
    /// What is added to the exponent.
    pub exponent_bias: u32,
    /// Whether the mantissa's leading one is implied.
    pub implied_one: bool,
}

impl FloatLayout {
    /// The layout of IEEE 754's binary16, binary32 or binary64, by its width in bytes.
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
    /// Where it starts in the element, in bytes.
    pub offset: u64,
    /// What it is.
    pub element: Element,
}

/// A named value of an enumeration; the bytes are in the base type's order.
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
    /// An integer; fewer significant bits than its width allows are `precision` from `bit_offset` on.
    Integer {
        /// Width in bytes.
        nbytes: u64,
        /// Whether it has a sign, in two's complement.
        signed: bool,
        /// Byte order.
        order: ByteOrder,
        /// First significant bit.
        bit_offset: u16,
        /// Significant bits; `8 * nbytes` for an ordinary integer.
        precision: u16,
    },
    /// A floating-point number.
    Float {
        /// Width in bytes.
        nbytes: u64,
        /// Byte order.
        order: ByteOrder,
        /// Where its parts lie.
        layout: FloatLayout,
    },
    /// A pair of floats: real, imaginary.
    Complex {
        /// One part.
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
        /// What the writer calls them.
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
        /// What the values are stored as.
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
    /// Text of any length, kept elsewhere in the file; the element itself is a pointer.
    VlenString {
        /// Width of the pointer in bytes.
        nbytes: u64,
        /// How it ends.
        padding: StringPadding,
        /// Its characters.
        charset: Charset,
    },
    /// Bytes of any length, kept elsewhere; the element itself is a pointer.
    VlenBytes {
        /// Width of the pointer in bytes.
        nbytes: u64,
    },
    /// The JSON text of a value of any kind, kept elsewhere; the element itself is a pointer.
    Json {
        /// Width of the pointer in bytes.
        nbytes: u64,
    },
    /// A sequence of any length, kept elsewhere in the file; the element itself is a pointer.
    Vlen {
        /// Width of the pointer in bytes.
        nbytes: u64,
        /// What the sequence holds.
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

    /// Whether its bytes say where a value is, or hold elements that do: text and sequences of any length, references.
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

    /// Width in bytes, as stored in a decoded chunk; saturates for a width that no file can hold.
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

/// Whether stored elements are the array's as they are; names of an enumeration's values make no difference.
pub fn same_bytes(stored: &Element, wanted: &Element) -> bool {
    let plain = |element: &Element| match element {
        Element::Enumeration { base, .. } => (**base).clone(),
        other => other.clone(),
    };
    stored == wanted || plain(stored) == plain(wanted)
}
