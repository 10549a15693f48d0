//! Elements of another type than the file's, where every library must get the same.

use std::sync::atomic::{AtomicBool, Ordering};

use hyperslab_libhdf5::libraries::Libhdf5;
use hyperslab_libhdf5::{Class, Id, Library, NUMBER_COUNT, Type};

use crate::threads::in_shares;

/// What has to be done to elements of the file for the program to find what it wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    /// Nothing.
    None,
    /// The other byte order; with the width of an element.
    Swap(usize),
    /// Another number, after the bytes were swapped or not.
    Convert { from: Number, is_swapped: bool, to: Number },
}

/// Types of numbers that the processor has. Their places are those of `Type::own_number`.
#[allow(non_camel_case_types)] // the names of Rust's types
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Number {
    i8 = 0,
    u8 = 1,
    i16 = 2,
    u16 = 3,
    i32 = 4,
    u32 = 5,
    i64 = 6,
    u64 = 7,
    f32 = 8,
    f64 = 9,
}

const NUMBERS: [Number; NUMBER_COUNT] = [
    Number::i8,
    Number::u8,
    Number::i16,
    Number::u16,
    Number::i32,
    Number::u32,
    Number::i64,
    Number::u64,
    Number::f32,
    Number::f64,
];

impl Number {
    /// Its width in bytes.
    pub fn width(self) -> usize {
        match self {
            Self::i8 | Self::u8 => 1,
            Self::i16 | Self::u16 => 2,
            Self::i32 | Self::u32 | Self::f32 => 4,
            Self::i64 | Self::u64 | Self::f64 => 8,
        }
    }

    fn is_float(self) -> bool {
        matches!(self, Self::f32 | Self::f64)
    }

    /// The number that a type of libhdf5 is.
    fn of(kind: Type<'_>) -> Option<Self> {
        kind.own_number().map(|place| NUMBERS[place])
    }
}

impl Change {
    /// What to do so that elements of an array become those of a type; `None` if we do not do it.
    pub fn of(owner: &Libhdf5, library: &Library, array: Id, memory_type: Id) -> Option<Self> {
        let stored = library.array(array).stored_type()?;
        if stored.equals(memory_type) {
            return Some(Self::None);
        }
        if !matches!(stored.class(), Some(Class::Integer | Class::Float)) {
            return None;
        }
        let swapped = stored.with_order(stored.order()?.other())?;
        // Programs may register other conversions in place of libhdf5's own (`H5Tregister`), or remove one, so that the next
        // best does the work (`H5Tunregister`). Only libhdf5 knows, whoever did that, and when.
        if !owner.contains(stored.converter(memory_type)) {
            return None;
        }
        if swapped.equals(memory_type) {
            return Some(Self::Swap(swapped.nbytes()));
        }
        let to = Number::of(library.datatype(memory_type))?;
        let (from, is_swapped) = match Number::of(*stored) {
            Some(from) => (from, false),
            None => (Number::of(*swapped)?, true),
        };
        // libhdf5 converts swapped floats by a program of its own, which need not treat NaN as the processor does.
        let is_ours = is_known(from, to) && !(is_swapped && from.is_float());
        // The next best for floats rounds otherwise.
        let is_ours = is_ours && (!from.is_float() || stored.converts_as_processor(memory_type));
        is_ours.then_some(Self::Convert { from, is_swapped, to })
    }

    /// The bytes of an element in the file, if it is converted.
    pub fn stored_width(self) -> Option<usize> {
        match self {
            Self::Convert { from, .. } => Some(from.width()),
            _ => None,
        }
    }
}

macro_rules! conversions {
    ($($from:ident: $($to:ident)+;)*) => {
        /// Whether every value becomes the same in all libraries.
        fn is_known(from: Number, to: Number) -> bool {
            match from {
                $(Number::$from => matches!(to, $(Number::$to)|+),)*
                _ => false,
            }
        }

        #[allow(clippy::cast_lossless, clippy::cast_possible_truncation)]
        fn convert_each(from: Number, to: Number, elements: &[u8], out: &mut [u8]) {
            match (from, to) {
                $($(
                    (Number::$from, Number::$to) => {
                        each(elements, out, |bytes| ($from::from_ne_bytes(bytes) as $to).to_ne_bytes());
                    }
                )+)*
                _ => {}
            }
        }
    };
}

// Only what loses nothing; and float64 to float32, which the processor rounds.
conversions! {
    i8: i16 i32 i64 f32 f64;
    u8: i16 u16 i32 u32 i64 u64 f32 f64;
    i16: i32 i64 f32 f64;
    u16: i32 u32 i64 u64 f32 f64;
    i32: i64 f64;
    u32: i64 u64 f64;
    f32: f64;
    f64: f32;
}

/// Of widths that the compiler knows, so that it uses vector instructions.
fn each<const FROM: usize, const TO: usize>(
    elements: &[u8],
    out: &mut [u8],
    change: impl Fn([u8; FROM]) -> [u8; TO],
) {
    for (element, room) in elements.as_chunks::<FROM>().0.iter().zip(out.as_chunks_mut::<TO>().0) {
        *room = change(*element);
    }
}

/// Converts elements in the processor's byte order. `false` if one of them has no equal in the other type.
pub(crate) fn convert(
    (from, to): (Number, Number),
    elements: &[u8],
    out: &mut [u8],
    thread_count: usize,
) -> bool {
    let is_narrowed = (from, to) == (Number::f64, Number::f32);
    let is_done = AtomicBool::new(true);
    in_shares(out, to.width(), thread_count, |first, share| {
        let start = first * from.width();
        let part = &elements[start..start + share.len() / to.width() * from.width()];
        if is_narrowed && !fit(part) {
            is_done.store(false, Ordering::Relaxed);
        }
        convert_each(from, to, part, share);
    });
    is_done.into_inner()
}

/// Whether no number is beyond those of float32: libraries differ in what they make of these.
fn fit(elements: &[u8]) -> bool {
    let fits = |bytes: &[u8; 8]| {
        let value = f64::from_ne_bytes(*bytes).abs();
        value <= f64::from(f32::MAX) || !value.is_finite()
    };
    elements.as_chunks::<8>().0.iter().all(fits)
}
