//! Header cards: keyword, value; long strings (`CONTINUE`), long keywords (`HIERARCH`); FITS Standard 4.0,
//! section 4.

use std::collections::HashMap;

use hyperslab_core::{Attribute, Element, Value};

use crate::attribute;
use crate::error::Error;
use crate::pages::Pages;

/// Headers and data come in blocks of this many bytes (section 3.1).
pub(super) const BLOCK: u64 = 2880;

const WHAT: &str = "a FITS header";
const CARD: usize = 80;
const FIRST_WINDOW: u64 = 5 * BLOCK;
/// No sensible header is longer.
const MAX_NBYTES: u64 = 64 << 20;
/// The largest `NAXIS` of the standard.
const MAX_NAXIS: i64 = 999;

/// The value after a keyword.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Word {
    Text(String),
    Logical(bool),
    Integer(i64),
    Float(f64),
    Complex(f64, f64),
    Undefined,
}

/// The cards of one header, in order.
#[derive(Debug)]
pub(super) struct Cards {
    pub header_nbytes: u64,
    words: Vec<(String, Word)>,
    positions: HashMap<String, usize>,
    naxis: Vec<u64>,
}

/// The header at `offset`; `None` if no header starts there.
pub(super) fn read(pages: &Pages<'_>, offset: u64, first: bool) -> Result<Option<Cards>, Error> {
    let left = pages.file_length().saturating_sub(offset);
    let mut window = FIRST_WINDOW.min(left);
    loop {
        let bytes = pages.bytes(WHAT, offset, window)?;
        let start: &[u8] = if first { b"SIMPLE  =" } else { b"XTENSION=" };
        if !bytes.starts_with(start) {
            let reason = "the file does not start with SIMPLE, as FITS files do";
            return if first { Err(Error::UnknownFormat { reason: reason.into() }) } else { Ok(None) };
        }
        if let Some(end) = bytes.chunks_exact(CARD).position(|card| card.starts_with(b"END     ")) {
            let header_nbytes = ((end as u64 + 1) * CARD as u64).next_multiple_of(BLOCK);
            return Cards::of(header_nbytes, bytes.chunks_exact(CARD).take(end), offset).map(Some);
        }
        if window == left || window >= MAX_NBYTES {
            return Err(Error::invalid(WHAT, offset, "no END card"));
        }
        window = (window * 4).min(left).min(MAX_NBYTES);
    }
}

impl Cards {
    fn of<'c>(header_nbytes: u64, cards: impl Iterator<Item = &'c [u8]>, offset: u64) -> Result<Self, Error> {
        let mut words: Vec<(String, Word)> = Vec::new();
        for card in cards {
            add_card(&mut words, card);
        }
        let mut positions = HashMap::new();
        for (position, (keyword, _)) in words.iter().enumerate() {
            positions.entry(keyword.clone()).or_insert(position);
        }
        let mut cards = Self { header_nbytes, words, positions, naxis: Vec::new() };
        cards.naxis = cards.axes("NAXIS", offset)?;
        Ok(cards)
    }

    fn word(&self, keyword: &str) -> Option<&Word> {
        self.positions.get(keyword).and_then(|&position| self.words.get(position)).map(|(_, word)| word)
    }

    /// An integer.
    pub fn integer(&self, keyword: &str) -> Option<i64> {
        if let Some(Word::Integer(value)) = self.word(keyword) { Some(*value) } else { None }
    }

    /// A number, integer or not.
    pub fn number(&self, keyword: &str) -> Option<f64> {
        match self.word(keyword) {
            #[allow(clippy::cast_precision_loss)] // the scale in a header is a float
            Some(Word::Integer(value)) => Some(*value as f64),
            Some(Word::Float(value)) => Some(*value),
            _ => None,
        }
    }

    /// Text.
    pub fn text(&self, keyword: &str) -> Option<&str> {
        if let Some(Word::Text(value)) = self.word(keyword) { Some(value) } else { None }
    }

    /// Whether a logical word is T.
    pub fn is_true(&self, keyword: &str) -> bool {
        self.word(keyword) == Some(&Word::Logical(true))
    }

    /// The type of the extension; `None` in the primary header.
    pub fn extension(&self) -> Option<&str> {
        self.text("XTENSION").map(str::trim)
    }

    /// Whether the HDU has random groups (section 6): the first axis is 0 and `GROUPS` is T.
    pub fn is_random_groups(&self) -> bool {
        self.naxis.first() == Some(&0) && self.is_true("GROUPS") && self.extension().is_none()
    }

    /// The lengths of the axes from `NAXISn` or `ZNAXISn`, the fastest first.
    pub fn axes(&self, keyword: &str, offset: u64) -> Result<Vec<u64>, Error> {
        let ndim = self.integer(keyword).filter(|ndim| (0..=MAX_NAXIS).contains(ndim));
        let ndim =
            ndim.ok_or_else(|| Error::invalid(WHAT, offset, format!("{keyword} is missing or invalid")))?;
        let axis = |number: i64| {
            let keyword = format!("{keyword}{number}");
            let length = self.integer(&keyword).and_then(|length| u64::try_from(length).ok());
            length.ok_or_else(|| Error::invalid(WHAT, offset, format!("{keyword} is missing or invalid")))
        };
        (1..=ndim).map(axis).collect()
    }

    /// The length of an axis. Axes are numbered from the fastest.
    pub fn naxis(&self, axis: usize) -> Option<u64> {
        self.naxis.get(axis).copied()
    }

    /// The shape in C order.
    pub fn shape(&self) -> Vec<u64> {
        self.naxis.iter().rev().copied().collect()
    }

    /// Bytes of data, without the padding of the last block (sections 4.4.1.1, 4.4.1.2, 6.1); `None` if the header is
    /// nonsense.
    pub fn data_nbytes(&self) -> Option<u64> {
        let axes = if self.is_random_groups() { self.naxis.get(1..) } else { self.naxis.get(..) }?;
        if axes.is_empty() {
            return Some(0);
        }
        let count = |keyword, default| u64::try_from(self.integer(keyword).unwrap_or(default)).ok();
        let elements = axes.iter().try_fold(1_u64, |product, &length| product.checked_mul(length))?;
        let element_nbytes = self.integer("BITPIX")?.unsigned_abs() / 8;
        elements
            .checked_add(count("PCOUNT", 0)?)?
            .checked_mul(count("GCOUNT", 1)?)?
            .checked_mul(element_nbytes)
    }

    /// All cards except those of the array's structure, and those that are one of `prefixes` and a number.
    pub fn attributes(&self, prefixes: &[&str]) -> Vec<Attribute> {
        let mut attributes: Vec<Attribute> = Vec::new();
        let mut remarks: Vec<(&str, String)> = Vec::new();
        for (keyword, word) in &self.words {
            if matches!(keyword.as_str(), "COMMENT" | "HISTORY") {
                add_remark(&mut remarks, keyword, word);
            } else if !is_structural(keyword, prefixes) {
                attributes.push(attribute::named(keyword, word.value()));
            }
        }
        attributes
            .extend(remarks.iter().map(|(name, lines)| attribute::named(*name, attribute::text(lines))));
        attributes
    }
}

impl Word {
    fn value(&self) -> Value {
        match self {
            Self::Text(text) => attribute::text(text),
            Self::Logical(value) => attribute::boolean(*value),
            Self::Integer(value) => attribute::integer(*value),
            Self::Float(value) => attribute::float(*value),
            Self::Complex(real, imaginary) => {
                let part = Box::new(attribute::float_element());
                let bytes = [real.to_le_bytes(), imaginary.to_le_bytes()].concat();
                attribute::scalar(Element::Complex { part }, bytes)
            }
            Self::Undefined => Value { shape: None, bytes: Vec::new(), ..attribute::integer(0) },
        }
    }
}

fn is_structural(keyword: &str, prefixes: &[&str]) -> bool {
    let numbered = |prefix: &str| {
        keyword.strip_prefix(prefix).is_some_and(|rest| rest.chars().all(|digit| digit.is_ascii_digit()))
    };
    matches!(keyword, "SIMPLE" | "XTENSION" | "BITPIX" | "EXTEND" | "PCOUNT" | "GCOUNT" | "END" | "")
        || numbered("NAXIS")
        || prefixes.iter().any(|prefix| numbered(prefix))
}

fn add_remark<'k>(remarks: &mut Vec<(&'k str, String)>, keyword: &'k str, word: &Word) {
    let Word::Text(line) = word else { return };
    match remarks.iter_mut().find(|(name, _)| *name == keyword) {
        Some((_, lines)) => {
            lines.push('\n');
            lines.push_str(line);
        }
        None => remarks.push((keyword, line.clone())),
    }
}

fn add_card(words: &mut Vec<(String, Word)>, card: &[u8]) {
    let card = String::from_utf8_lossy(card);
    let keyword = card.get(..8).unwrap_or_default().trim_end();
    let rest = card.get(8..).unwrap_or_default();
    if keyword == "CONTINUE" {
        continue_text(words, rest);
    } else if let Some(value) = rest.strip_prefix("= ") {
        words.push((keyword.into(), word(value)));
    } else if let Some((keyword, value)) = rest.split_once('=').filter(|_| keyword == "HIERARCH") {
        words.push((keyword.trim().into(), word(value)));
    } else if matches!(keyword, "COMMENT" | "HISTORY") {
        words.push((keyword.into(), Word::Text(rest.trim_end().into())));
    }
}

/// Section 4.2.1.2: a string that ends with `&` continues in the next card.
fn continue_text(words: &mut [(String, Word)], rest: &str) {
    let Some((_, Word::Text(text))) = words.last_mut() else { return };
    let Word::Text(more) = word(rest) else { return };
    if text.ends_with('&') {
        text.pop();
        text.push_str(&more);
    }
}

/// Section 4.2: the value of a value field.
fn word(field: &str) -> Word {
    let field = field.trim_start();
    if let Some(quoted) = field.strip_prefix('\'') {
        return Word::Text(quoted_text(quoted));
    }
    let value = field.split('/').next().unwrap_or_default().trim();
    match value {
        "" => Word::Undefined,
        "T" => Word::Logical(true),
        "F" => Word::Logical(false),
        _ => number(value),
    }
}

/// Text up to the closing quote. Two quotes stand for one; trailing spaces are not significant.
fn quoted_text(quoted: &str) -> String {
    let mut text = String::new();
    let mut characters = quoted.chars().peekable();
    while let Some(character) = characters.next() {
        if character == '\'' && characters.next_if_eq(&'\'').is_none() {
            break;
        }
        text.push(character);
    }
    text.truncate(text.trim_end_matches(' ').len());
    text
}

fn number(value: &str) -> Word {
    if let Ok(integer) = value.parse() {
        return Word::Integer(integer);
    }
    let float = |text: &str| text.trim().replace(['D', 'd'], "E").parse::<f64>().ok();
    let pair =
        value.strip_prefix('(').and_then(|inner| inner.strip_suffix(')')).and_then(|it| it.split_once(','));
    if let Some((Some(real), Some(imaginary))) = pair.map(|(real, imaginary)| (float(real), float(imaginary)))
    {
        return Word::Complex(real, imaginary);
    }
    let is_number = value.starts_with(|start: char| start.is_ascii_digit() || "+-.".contains(start));
    float(value).filter(|_| is_number).map_or_else(|| Word::Text(value.into()), Word::Float)
}
