//! The functions that decode the codecs of the table, in the order of its lines.

use super::buffer::Buffer;
use super::scratch::{Coded, Step, Tools};
use crate::Error;

/// The function of a file of the table.
type Decoder = fn(&Coded<'_>, &mut Buffer, &mut Tools) -> Result<Step, Error>;

macro_rules! functions {
    (decoded { $($file:ident $name:literal $facts:tt)* } others $others:tt) => {
        pub(super) static DECODERS: &[Decoder] =
            &[$(|coded, out, tools| Ok(super::$file::decode(coded, out, tools)?.into())),*];
    };
}

hyperslab_core::codec_table!(functions);
