//! Values of variable length: numcodecs' vlen-utf8, vlen-bytes and vlen-array, which Zarr 3 has too, and json2.
//!
//! A chunk says how many values it holds and how long each one is. Both numbers are checked against the bytes before
//! memory is allocated.

use std::ops::Range;

use hyperslab_core::{Codec, Framing};

use super::chain::decode_unsized;
use super::scratch::Scratch;
use crate::Error;

/// Width in bytes of a count or a length.
const NUMBER_NBYTES: usize = 4;
/// The most bytes that a chunk may decode to in the first attempt: a base, plus this many for each element and for each
/// encoded byte.
const FIRST_LIMIT: [usize; 3] = [4 << 20, 64, 8];
/// The same for the last attempt. No deflate stream expands a byte to more than 1032.
const LAST_LIMIT: [usize; 3] = [16 << 20, 256, 1032];
/// Each attempt may decode to this many times as much as the one before.
const GROWTH: usize = 16;
/// No chunk decodes to more.
const MOST_NBYTES: usize = 16 << 30;

/// How a codec chain stores values, for chunks whose elements point to values.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StoredValues<'c> {
    pub(crate) framing: Framing,
    /// The codecs that encoded the framed values.
    codecs: &'c [Codec],
}

/// A chunk's values.
pub(crate) struct Values<'s> {
    /// The framed values.
    bytes: &'s [u8],
    /// Where each value is.
    ranges: Vec<Range<usize>>,
}

impl Values<'_> {
    /// The value of an element, in the chunk's order.
    pub(crate) fn get(&self, element: usize) -> &[u8] {
        let range = self.ranges.get(element).cloned();
        range.and_then(|range| self.bytes.get(range)).unwrap_or_default()
    }

    /// Bytes of all values, including the framing.
    pub(crate) fn nbytes(&self) -> usize {
        self.bytes.len()
    }
}

impl<'c> StoredValues<'c> {
    /// `None` if the chunk holds the elements themselves.
    pub(crate) fn of(codecs: &'c [Codec]) -> Option<Self> {
        codecs.iter().enumerate().find_map(|(position, codec)| match codec {
            Codec::Values { framing, .. } => {
                Some(Self { framing: *framing, codecs: codecs.get(position + 1..).unwrap_or_default() })
            }
            _ => None,
        })
    }

    /// Decodes a chunk of `count` elements.
    pub(crate) fn decode<'s>(
        self,
        chunk: u64,
        encoded: &'s [u8],
        count: usize,
        scratch: &'s mut Scratch,
    ) -> Result<Values<'s>, Error> {
        let most = |[base, element, byte]: [usize; 3]| {
            let sum = base.saturating_add(element.saturating_mul(count));
            sum.saturating_add(byte.saturating_mul(encoded.len())).min(MOST_NBYTES)
        };
        let (mut limit, last) = (most(FIRST_LIMIT), most(LAST_LIMIT));
        let held = loop {
            match decode_unsized(self.codecs, chunk, encoded, limit, scratch) {
                Err(Error::DecodedBeyond { .. }) if limit < last => {
                    limit = limit.saturating_mul(GROWTH).min(last);
                }
                done => break done?,
            }
        };
        let bytes = held.bytes(encoded, scratch);
        let ranges = match self.framing {
            Framing::Json => json_ranges(bytes, count)?,
            framing => ranges(framing, bytes, count)?,
        };
        Ok(Values { bytes, ranges })
    }
}

fn damaged(framing: Framing, problem: &'static str) -> Error {
    Error::Damaged { codec: framing.name(), problem }
}

/// Where the values are, if each follows its length and all follow a count.
fn ranges(framing: Framing, bytes: &[u8], count: usize) -> Result<Vec<Range<usize>>, Error> {
    let number = |start: usize| {
        let bytes = bytes.get(start..start.checked_add(NUMBER_NBYTES)?)?;
        usize::try_from(u32::from_le_bytes(bytes.try_into().ok()?)).ok()
    };
    if number(0) != Some(count) {
        return Err(damaged(framing, "it holds another number of values than the chunk has elements"));
    }
    if count > bytes.len() / NUMBER_NBYTES {
        return Err(damaged(framing, "it ends before its last value"));
    }
    let (mut ranges, mut start) = (Vec::with_capacity(count), NUMBER_NBYTES);
    for _ in 0..count {
        let range = number(start).and_then(|nbytes| {
            let first = start + NUMBER_NBYTES;
            Some(first..first.checked_add(nbytes)?)
        });
        let found = range.and_then(|range| Some((bytes.get(range.clone())?, range)));
        let (value, range) = found.ok_or_else(|| damaged(framing, "it ends before its last value"))?;
        check(framing, value)?;
        start = range.end;
        ranges.push(range);
    }
    if start != bytes.len() {
        return Err(damaged(framing, "bytes follow its last value"));
    }
    Ok(ranges)
}

fn check(framing: Framing, value: &[u8]) -> Result<(), Error> {
    match framing {
        Framing::Utf8 if std::str::from_utf8(value).is_err() => {
            Err(damaged(framing, "a value is not UTF-8 text"))
        }
        Framing::Sequences { element_nbytes } => {
            let is_whole = (value.len() as u64).checked_rem(element_nbytes) == Some(0);
            if is_whole { Ok(()) } else { Err(damaged(framing, "a value ends within an element")) }
        }
        _ => Ok(()),
    }
}

/// Where the values are in a JSON document: nested lists, one level per axis, followed by a dtype and the shape.
fn json_ranges(bytes: &[u8], count: usize) -> Result<Vec<Range<usize>>, Error> {
    let fault = |problem| damaged(Framing::Json, problem);
    if std::str::from_utf8(bytes).is_err() {
        return Err(fault("it is not UTF-8 text"));
    }
    let most = count.saturating_add(2);
    let list = |range: &Range<usize>| items(bytes, range.clone(), most);
    let no_list = || fault("it is no list of values, their dtype and their shape");
    let mut level = list(&(0..bytes.len())).ok_or_else(no_list)?;
    let shape = level.pop().and_then(|range| list(&range)).ok_or_else(no_list)?;
    level.pop().ok_or_else(no_list)?; // the dtype
    for _ in 1..shape.len() {
        let mut inner = Vec::new();
        for range in &level {
            inner.extend(list(range).ok_or_else(|| fault("its lists do not have its shape"))?);
            if inner.len() > most {
                break;
            }
        }
        level = inner;
    }
    if level.len() == count {
        Ok(level)
    } else {
        Err(fault("it holds another number of values than the chunk has elements"))
    }
}

/// The items of the JSON list at `range`, trimmed; `None` if it is not a list, or has more than `most` items.
fn items(bytes: &[u8], range: Range<usize>, most: usize) -> Option<Vec<Range<usize>>> {
    let range = trimmed(bytes, range);
    let inner = range.start.checked_add(1)?..range.end.checked_sub(1)?;
    if bytes.get(range.start) != Some(&b'[') || bytes.get(inner.end) != Some(&b']') {
        return None;
    }
    let (mut found, mut start, mut depth) = (Vec::new(), inner.start, 0_usize);
    let (mut in_text, mut is_escaped) = (false, false);
    for (position, &byte) in bytes.get(inner.clone())?.iter().enumerate() {
        if in_text {
            in_text = byte != b'"' || is_escaped;
            is_escaped = byte == b'\\' && !is_escaped;
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.checked_sub(1)?,
            b',' if depth == 0 => {
                let end = inner.start + position;
                found.push(trimmed(bytes, start..end));
                start = end + 1;
            }
            _ => {}
        }
        if found.len() > most {
            return None;
        }
    }
    let last = trimmed(bytes, start..inner.end);
    if !last.is_empty() || !found.is_empty() {
        found.push(last);
    }
    let is_whole = depth == 0 && !in_text && found.iter().all(|item| !item.is_empty());
    is_whole.then_some(found)
}

fn trimmed(bytes: &[u8], range: Range<usize>) -> Range<usize> {
    let is_white = |position: usize| bytes.get(position).is_some_and(u8::is_ascii_whitespace);
    let Range { mut start, mut end } = range;
    while start < end && is_white(start) {
        start += 1;
    }
    while start < end && is_white(end - 1) {
        end -= 1;
    }
    start..end
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn framed(values: &[&[u8]]) -> Vec<u8> {
        let number = |value: usize| u32::try_from(value).unwrap().to_le_bytes();
        let mut bytes = number(values.len()).to_vec();
        for value in values {
            bytes.extend(number(value.len()));
            bytes.extend_from_slice(value);
        }
        bytes
    }

    fn decoded(framing: Framing, bytes: &[u8], count: usize) -> Result<Vec<Vec<u8>>, Error> {
        let codecs = [Codec::Values { framing, fill: Vec::new() }];
        let mut scratch = Scratch::default();
        let values = StoredValues::of(&codecs).unwrap().decode(0, bytes, count, &mut scratch)?;
        Ok((0..count).map(|element| values.get(element).to_vec()).collect())
    }

    #[test]
    fn values_are_found() {
        let values: [&[u8]; 3] = [b"a\0b", b"", "\u{fc}".as_bytes()];
        assert_eq!(decoded(Framing::Utf8, &framed(&values), 3).unwrap(), values);
        let json = br#" [ ["a,]\"", {"b": [1, 2]}], [null , NaN], "|O", [2, 2]]"#;
        let found = decoded(Framing::Json, json, 4).unwrap();
        assert_eq!(found, [&br#""a,]\"""#[..], br#"{"b": [1, 2]}"#, b"null", b"NaN"]);
        assert_eq!(decoded(Framing::Json, br#"[7,"|O",[]]"#, 1).unwrap(), [b"7"]);
        assert_eq!(decoded(Framing::Json, br#"["|O",[0]]"#, 0).unwrap(), Vec::<Vec<u8>>::new());
    }

    #[test]
    fn lies_are_named() {
        let good = framed(&[b"ab", b"cdef"]);
        for stop in 0..good.len() {
            assert!(decoded(Framing::Bytes, &good[..stop], 2).is_err(), "cut at {stop}");
        }
        let problem = |framing, bytes: &[u8], count| decoded(framing, bytes, count).unwrap_err().to_string();
        let huge = [0xff; 12];
        assert!(problem(Framing::Bytes, &huge, 2).contains("another number of values"));
        assert!(problem(Framing::Bytes, &huge, 0xffff_ffff).contains("ends before"));
        assert!(problem(Framing::Utf8, &framed(&[b"\xff"]), 1).contains("not UTF-8"));
        assert!(problem(Framing::Bytes, &[&good[..], b"x"].concat(), 2).contains("follow"));
        let wide = Framing::Sequences { element_nbytes: 4 };
        assert!(problem(wide, &framed(&[b"abcdef"]), 1).contains("within an element"));
        for text in
            ["", "[", "]", "[1]", "[1,\"|O\"]", "[1,,\"|O\",[2]]", "[\"|O\",[1]", "[[1,\"|O\",[1]]", "{}"]
        {
            assert!(decoded(Framing::Json, text.as_bytes(), 1).is_err(), "{text}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert!(decoded(Framing::Json, deep.as_bytes(), 1).is_err());
    }
}
