//! The keys of chunks.

/// The format of the keys of an array's chunks.
pub(super) struct Keys {
    /// The text before the first number.
    pub start: String,
    /// The text between numbers.
    pub separator: String,
    /// The only key of an array without axes.
    pub scalar: String,
}

impl Keys {
    /// The chunk that a key names, if it names one.
    pub fn chunk_index(&self, key: &str, ndim: usize) -> Option<Vec<u64>> {
        if ndim == 0 {
            // VirtualiZarr 2.5 writes references to scalars without a key.
            return (key == self.scalar || key.is_empty()).then(Vec::new);
        }
        let numbers = key.strip_prefix(self.start.as_str())?.split(self.separator.as_str());
        let index: Vec<u64> = numbers.map(plain_number).collect::<Option<_>>()?;
        (index.len() == ndim).then_some(index)
    }

    /// The key of a chunk.
    pub fn key(&self, chunk_index: &[u64]) -> String {
        if chunk_index.is_empty() {
            return self.scalar.clone();
        }
        let numbers: Vec<String> = chunk_index.iter().map(u64::to_string).collect();
        format!("{}{}", self.start, numbers.join(&self.separator))
    }
}

/// Decimal digits without sign or leading zeros. Other names belong to other files.
fn plain_number(text: &str) -> Option<u64> {
    let is_plain = text == "0" || text.starts_with(|digit: char| ('1'..='9').contains(&digit));
    text.parse().ok().filter(|_| is_plain && text.bytes().all(|digit| digit.is_ascii_digit()))
}
