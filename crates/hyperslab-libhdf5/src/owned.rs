//! Identifiers that are ours to close.

#![allow(unsafe_code)]

use std::ops::Deref;

use crate::Id;
use crate::library::Library;

/// What an identifier stands for.
pub trait Identified: Copy {
    /// The number.
    fn number(self) -> Id;

    /// Gives up one count of the identifier.
    fn release(self);
}

/// An identifier that is closed when it is dropped.
pub struct Owned<T: Identified>(T);

impl<T: Identified> Owned<T> {
    /// Whoever calls this owns the identifier.
    pub(crate) fn new(identified: T) -> Self {
        Self(identified)
    }

    /// What a call has returned; `None` if it failed.
    #[inline]
    pub(crate) fn returned(identified: T) -> Option<Self> {
        (identified.number() > 0).then(|| Self(identified)) // not `then_some`, which would drop one
    }
}

impl<T: Identified> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: Identified> Drop for Owned<T> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl Library {
    /// Gives up one count of an identifier.
    pub(crate) fn release(&self, id: Id) {
        // SAFETY: the function looks up any identifier.
        unsafe { (self.call.id_release)(id) };
    }
}

macro_rules! identified {
    ($identified:ident, $name:ident) => {
        impl Identified for $identified<'_> {
            #[inline]
            fn number(self) -> Id {
                self.id
            }

            fn release(self) {
                self.library.release(self.id);
            }
        }

        impl $identified<'_> {
            /// The number.
            #[inline]
            pub fn id(self) -> Id {
                self.id
            }
        }

        impl Library {
            /// What an identifier of this library stands for, whoever owns it. Nothing is asked: a wrong one is refused
            /// by what is called with it.
            #[inline]
            pub fn $name(&self, id: Id) -> $identified<'_> {
                $identified { library: self, id }
            }
        }
    };
}

pub(crate) use identified;
