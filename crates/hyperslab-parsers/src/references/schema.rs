//! The contents of references, field by field. These tables define the format. A new field or kind makes a new version
//! of the format; a number, once assigned, never changes.

use std::sync::Arc;

use hyperslab_core::{
    Array, Attribute, ByteOrder, Charset, Checksum, Codec, Dither, Element, Field, Fill, FloatLayout,
    Framing, Group, Link, Member, Notes, Packing, Quantum, Role, Segment, SegmentAxis, StringPadding,
    Unreadable, Value, VirtualMappings,
};

use super::known_codecs;
use super::stored::{Input, Stored};
use super::tables::{ManifestLocation, SourceFile, StoredArray, StoredSegment, Tables};
use crate::error::Error;

macro_rules! records {
    ($($name:ident { $($field:ident),* })*) => { $(
        impl Stored for $name {
            fn write(&self, out: &mut Vec<u8>) {
                $(self.$field.write(out);)*
            }

            fn read(input: &mut Input<'_>) -> Result<Self, Error> {
                $(let $field = Stored::read(input)?;)*
                Ok(Self { $($field),* })
            }
        }
    )* };
}

macro_rules! kinds {
    ($($name:ident $(beside $beside:ident)? { $($number:literal $variant:ident $({ $($field:ident),* })? $(( $inner:ident ))?,)* })*) => { $(
        impl Stored for $name {
            fn write(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$variant $({ $($field),* })? $(( $inner ))? => {
                        out.push($number);
                        $($($field.write(out);)*)?
                        $($inner.write(out);)?
                    })*
                    $(_ => $beside::write(self, out),)?
                }
            }

            fn read(input: &mut Input<'_>) -> Result<Self, Error> {
                let kind = input.cursor.u8()?;
                $(if let Some(codec) = $beside::read(kind, input)? {
                    return Ok(codec);
                })?
                input.deeper(|input| match kind {
                    $($number => {
                        $($(let $field = Stored::read(input)?;)*)?
                        $(let $inner = Stored::read(input)?;)?
                        Ok(Self::$variant $({ $($field),* })? $(( $inner ))?)
                    })*
                    _ => Err(input.invalid(concat!("unknown kind of ", stringify!($name)))),
                })
            }
        }
    )* };
}

records! {
    Tables { files, groups, arrays, manifests }
    SourceFile { path, nbytes, modified, etag, is_padded }
    ManifestLocation { offset, nbytes }
    StoredArray { described, segments, heap_file }
    StoredSegment { axes, grid, codecs, element, plain_edge_chunks, fill, manifest }
    SegmentAxis { array_axis, shown, source }
    Group { attributes, links }
    Attribute { name, value }
    Value { element, shape, bytes, heap }
    Field { name, offset, element }
    Member { name, value }
    FloatLayout {
        bit_offset, precision, sign_bit, exponent_start, exponent_nbits, mantissa_start, mantissa_nbits,
        exponent_bias, implied_one
    }
    Quantum { scale, zero, null, dither_start }
    Packing { masked, scale, offset, is_single }
}

kinds! {
    Unreadable { 0 Unsupported { feature }, 1 Damaged { problem }, 2 Unfetched { problem }, }
    Fill { 0 Zero, 1 Value(element), 2 Undefined, }
    Link { 0 Group(number), 1 Array(number), 2 Soft(path), 3 External { file, path }, 4 Unreadable(reason), }
    Role { 0 Plain, 1 DimensionOnly, 2 FillIsMissing, }
    ByteOrder { 0 Little, 1 Big, 2 Vax, }
    StringPadding { 0 NullTerminated, 1 NullPadded, 2 SpacePadded, 3 Unpadded, }
    Charset { 0 Ascii, 1 Utf8, }
    Framing { 0 Utf8, 1 Bytes, 2 Sequences { element_nbytes }, 3 Json, }
    Checksum { 0 Crc32, 1 Adler32, 2 Crc32c, 3 Fletcher32, }
    Dither { 0 None, 1 Subtractive, 2 KeepingZeros, }
    Element {
        0 Integer { nbytes, signed, order, bit_offset, precision },
        1 Float { nbytes, order, layout },
        2 Complex { part },
        3 FixedString { nbytes, padding, charset },
        4 Opaque { nbytes, tag },
        5 Bitfield { nbytes, order },
        6 Enumeration { base, members },
        7 Compound { nbytes, fields },
        8 Array { shape, element },
        9 VlenString { nbytes, padding, charset },
        10 Vlen { nbytes, element },
        11 ObjectReference { nbytes },
        12 RegionReference { nbytes },
        13 VlenBytes { nbytes },
        14 Json { nbytes },
    }
    Codec beside known_codecs {
        0 Shuffle { element_nbytes },
        16 Transpose { order },
        17 Delta { stored, decoded },
        18 FixedScaleOffset { scale, offset, stored, decoded },
        19 Convert { stored, decoded },
        22 Quantize { chunks, dither, decoded },
        27 Unknown { number, name },
        29 Unpack { packing, stored, decoded },
        30 Values { framing, fill },
    }
}

/// Everything except the segments, which have a form of their own, and mappings, which were resolved into segments.
impl Stored for Array {
    fn write(&self, out: &mut Vec<u8>) {
        self.shape.write(out);
        self.max_shape.write(out);
        self.element.write(out);
        self.fill.write(out);
        self.is_chunked.write(out);
        self.role.write(out);
        self.dimensions.write(out);
        self.attributes.write(out);
    }

    fn read(input: &mut Input<'_>) -> Result<Self, Error> {
        Ok(Self {
            shape: Stored::read(input)?,
            max_shape: Stored::read(input)?,
            element: Stored::read(input)?,
            fill: Stored::read(input)?,
            is_chunked: Stored::read(input)?,
            notes: Notes::default(),
            role: Stored::read(input)?,
            dimensions: Stored::read(input)?,
            attributes: Stored::read(input)?,
            segments: Ok(Vec::new()),
            virtual_mappings: VirtualMappings::NONE,
        })
    }
}

impl StoredSegment {
    /// A segment whose manifest has this number.
    pub(super) fn of(segment: &Segment, manifest: usize) -> Self {
        Self {
            axes: segment.axes.clone(),
            grid: segment.grid.clone(),
            codecs: segment.codecs.clone(),
            element: segment.element.clone(),
            plain_edge_chunks: segment.plain_edge_chunks,
            fill: segment.fill.clone(),
            manifest,
        }
    }

    /// The segment, given its manifest.
    pub(super) fn with(&self, manifest: Arc<hyperslab_core::Manifest>) -> Segment {
        Segment {
            axes: self.axes.clone(),
            grid: self.grid.clone(),
            codecs: self.codecs.clone(),
            element: self.element.clone(),
            plain_edge_chunks: self.plain_edge_chunks,
            manifest,
            fill: self.fill.clone(),
        }
    }
}
