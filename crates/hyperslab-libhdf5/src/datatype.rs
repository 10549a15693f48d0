//! Types of elements.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_int, c_uint};
use std::ptr;

use crate::library::{Library, NUMBER_COUNT};
use crate::owned::Owned;
use crate::owned::{Identified, identified};
use crate::{Id, MOST_NDIM};

/// A type, by its identifier.
#[derive(Clone, Copy)]
pub struct Type<'l> {
    pub(crate) library: &'l Library,
    pub(crate) id: Id,
}

/// What kind of type it is: `H5T_class_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Class {
    /// Integers.
    Integer = 0,
    /// Floating-point numbers.
    Float = 1,
    /// A time.
    Time = 2,
    /// Text.
    Text = 3,
    /// Bits.
    Bitfield = 4,
    /// Bytes without a meaning.
    Opaque = 5,
    /// Several fields.
    Compound = 6,
    /// References.
    Reference = 7,
    /// Names for integers.
    Enumeration = 8,
    /// Lists of any length.
    Variable = 9,
    /// Arrays.
    Array = 10,
    /// Complex numbers.
    Complex = 11,
}

const CLASSES: [Class; 12] = [
    Class::Integer,
    Class::Float,
    Class::Time,
    Class::Text,
    Class::Bitfield,
    Class::Opaque,
    Class::Compound,
    Class::Reference,
    Class::Enumeration,
    Class::Variable,
    Class::Array,
    Class::Complex,
];

/// The order of the bytes of an element: `H5T_order_t`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Order {
    /// The least significant byte comes first.
    Little = 0,
    /// It comes last.
    Big = 1,
}

impl Order {
    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Little => Self::Big,
            Self::Big => Self::Little,
        }
    }
}

identified!(Type, datatype);

impl Type<'_> {
    /// What kind of type it is; `None` for one that is newer than we are.
    pub fn class(self) -> Option<Class> {
        // SAFETY: the functions here look up any identifier.
        let class = unsafe { (self.library.call.type_class)(self.id) };
        CLASSES.get(usize::try_from(class).ok()?).copied()
    }

    /// The order of its bytes; `None` if it has none that we know.
    pub fn order(self) -> Option<Order> {
        // SAFETY: as above.
        match unsafe { (self.library.call.type_order)(self.id) } {
            0 => Some(Order::Little),
            1 => Some(Order::Big),
            _ => None,
        }
    }

    /// Whether integers have a sign.
    pub fn is_signed(self) -> bool {
        // SAFETY: as above.
        unsafe { (self.library.call.type_sign)(self.id) != 0 }
    }

    /// The bytes of an element; 0 if the identifier is wrong.
    #[inline]
    pub fn nbytes(self) -> usize {
        // SAFETY: as above.
        unsafe { (self.library.call.type_nbytes)(self.id) }
    }

    /// Whether it is the same type as another one.
    #[inline]
    pub fn equals(self, other: Id) -> bool {
        // SAFETY: as above.
        unsafe { (self.library.call.type_equal)(self.id, other) > 0 }
    }

    /// The same type with its bytes in this order.
    pub fn with_order(self, order: Order) -> Option<Owned<Self>> {
        // SAFETY: as above.
        let copy = Owned::returned(self.library.datatype(unsafe { (self.library.call.type_copy)(self.id) }))?;
        // SAFETY: as above.
        let done = unsafe { (self.library.call.type_set_order)(copy.id, order as c_int) };
        (done >= 0).then_some(copy)
    }

    /// The address of the function that converts elements to another type, as a read would do.
    pub fn converter(self, to: Id) -> usize {
        let mut data = ptr::null_mut();
        // SAFETY: as above, and the pointer is valid for writes.
        unsafe { (self.library.call.type_find)(self.id, to, &raw mut data) }
    }

    /// Whether elements are converted to another type as the processor does it.
    pub fn converts_as_processor(self, to: Id) -> bool {
        // SAFETY: as above.
        unsafe { (self.library.call.type_is_hard)(self.id, to) > 0 }
    }

    /// Which of the processor's own numbers it is: signed and unsigned integers of 8, 16, 32 and 64 bits in turn, then
    /// floating-point numbers of 32 and 64.
    pub fn own_number(self) -> Option<usize> {
        (0..NUMBER_COUNT).find(|&place| self.library.number(place).is_some_and(|id| self.equals(id)))
    }

    /// The library's own identifier for the processor's number that it is.
    pub fn own_number_id(self) -> Option<Id> {
        self.own_number().and_then(|place| self.library.number(place))
    }

    /// The type that it is made from.
    pub fn base(self) -> Option<Owned<Self>> {
        // SAFETY: as above.
        Owned::returned(self.library.datatype(unsafe { (self.library.call.type_super)(self.id) }))
    }

    /// Whether it is text of a fixed length.
    pub fn is_fixed_text(self) -> bool {
        // SAFETY: as above.
        self.class() == Some(Class::Text) && unsafe { (self.library.call.type_is_text)(self.id) == 0 }
    }

    /// How many fields or names it has.
    pub fn member_count(self) -> u32 {
        // SAFETY: as above.
        c_uint::try_from(unsafe { (self.library.call.member_count)(self.id) }).unwrap_or(0)
    }

    /// The type of a field.
    pub fn member(self, number: u32) -> Option<Owned<Self>> {
        // SAFETY: as above; the function looks at the number too.
        Owned::returned(self.library.datatype(unsafe { (self.library.call.member_type)(self.id, number) }))
    }

    /// The name of a field, or one of the names.
    pub fn member_name(self, number: u32) -> Option<String> {
        // SAFETY: as above; libhdf5 frees what it has allocated.
        unsafe {
            let name = (self.library.call.member_name)(self.id, number);
            if name.is_null() {
                return None;
            }
            let text = CStr::from_ptr(name).to_string_lossy().into_owned();
            (self.library.call.free)(name.cast());
            Some(text)
        }
    }

    /// The shape of an element that is an array.
    pub fn shape(self, room: &mut [u64; MOST_NDIM]) -> Option<&[u64]> {
        // SAFETY: as above; there is room for as many axes as libhdf5 allows.
        let ndim = unsafe {
            (self.library.call.array_shape)(self.id, room.as_mut_ptr());
            (self.library.call.array_ndim)(self.id)
        };
        room.get(..usize::try_from(ndim).ok()?)
    }
}
