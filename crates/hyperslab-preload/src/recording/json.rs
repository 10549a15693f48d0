//! JSON, as far as the log needs it.

use std::fmt::Write;

/// Appends a string.
pub(crate) fn put_text(out: &mut String, text: &str) {
    out.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => {
                out.push('\\');
                out.push(letter);
            }
            '\0'..='\x1f' => {
                let _ = write!(out, "\\u{:04x}", u32::from(letter)); // which does not fail
            }
            _ => out.push(letter),
        }
    }
    out.push('"');
}

/// Appends a list of numbers.
pub(crate) fn put_numbers(out: &mut String, numbers: &[u64]) {
    out.push('[');
    for (place, number) in numbers.iter().enumerate() {
        let _ = write!(out, "{}{number}", if place > 0 { ", " } else { "" });
    }
    out.push(']');
}
