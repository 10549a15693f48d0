//! How CF packs numbers.

/// How numbers were packed: which of them are masked, and the scale and offset of the others.
#[derive(Clone, Debug, PartialEq)]
pub struct Packing {
    /// Numbers that stand for missing values. They become NaN.
    pub masked: Vec<f64>,
    /// The scale, if there is one.
    pub scale: Option<f64>,
    /// The offset, if there is one. It is added after scaling.
    pub offset: Option<f64>,
    /// Whether every step is rounded to 32 bits instead of 64.
    pub is_single: bool,
}
