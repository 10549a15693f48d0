//! Headers and the locations of their data.

use hyperslab_core::{Array, Unreadable};

use super::cards::Cards;

/// One header, with the location of its data.
pub(super) struct Hdu {
    pub(super) number: usize,
    pub(super) cards: Cards,
    pub(super) data_offset: u64,
}

/// The result for an HDU: an array, nothing, or the reason why there is none; and the columns that are left out.
pub(super) struct Content {
    pub(super) array: Option<Result<Array, Unreadable>>,
    pub(super) left_out: Vec<(String, Unreadable)>,
}
