//! Base64 as in RFC 4648, section 4.

/// The bytes; `None` if the text is not base64. Skips white space, because some writers wrap lines.
pub(crate) fn decoded(text: &str) -> Option<Vec<u8>> {
    let digits = text.bytes().filter(|byte| !byte.is_ascii_whitespace());
    let digits: Vec<u8> = digits.collect();
    let unpadded = digits.iter().rposition(|&byte| byte != b'=').map_or(0, |last| last + 1);
    let padding = digits.len() - unpadded;
    if padding > 2 || !digits.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(unpadded / 4 * 3 + 2);
    let (mut bits, mut nbits) = (0_u32, 0);
    for &digit in digits.get(..unpadded)? {
        let value = match digit {
            b'A'..=b'Z' => digit - b'A',
            b'a'..=b'z' => digit - b'a' + 26,
            b'0'..=b'9' => digit - b'0' + 52,
            b'+' => 62,
            b'/' => 63,
            _ => return None,
        };
        bits = (bits << 6 | u32::from(value)) & 0xffff;
        nbits += 6;
        if nbits >= 8 {
            nbits -= 8;
            bytes.push((bits >> nbits & 0xff) as u8);
        }
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::decoded;

    #[test]
    fn vectors_of_rfc_4648() {
        for (text, bytes) in [("", ""), ("Zg==", "f"), ("Zm8=", "fo"), ("Zm9v", "foo"), ("Zm9vYg==", "foob")]
        {
            assert_eq!(decoded(text).as_deref(), Some(bytes.as_bytes()));
        }
        assert_eq!(decoded("Zm9v\n YmE=\n").as_deref(), Some(&b"fooba"[..]));
        for text in ["!", "Z", "Zg", "Zg=", "Z===", "Zg==Zg=="] {
            assert_eq!(decoded(text), None, "{text}");
        }
    }
}
