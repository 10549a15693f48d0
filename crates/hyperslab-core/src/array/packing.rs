//! How CF packs numbers.

/// How numbers were packed: which of them are masked, what the others were divided by, what was subtracted.
#[derive(Clone, Debug, PartialEq)]
pub struct Packing {
    /// Numbers that stand for no value; they become not-a-number.
    pub masked: Vec<f64>,
    /// The factor, if there is one.
    pub scale: Option<f64>,
    /// What is added then, if anything is.
    pub offset: Option<f64>,
    /// Whether every step is rounded to 32 bits instead of 64.
    pub is_single: bool,
}
