//! Repairs elements: clears the bytes after the end of a string, and makes all bits of a narrow integer meaningful.

use hyperslab_core::{ByteOrder, Element, StringPadding};

/// The repair of one part of every element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Repair {
    /// Zeros after the first zero.
    CutAtZero,
    /// Zeros in place of the spaces at the end.
    CutSpaces,
    /// Shifts the significant bits down and extends the sign over the rest.
    Widen { signed: bool, order: ByteOrder, bit_offset: u32, precision: u32 },
}

#[derive(Clone, Copy, Debug)]
struct Part {
    start: usize,
    nbytes: usize,
    repair: Repair,
}

/// Repairs elements in place. Most kinds of elements need no repair.
pub fn tidy(element: &Element, bytes: &mut [u8]) {
    let mut parts = Vec::new();
    collect(element, 0, &mut parts);
    let width = usize::try_from(element.nbytes()).unwrap_or(usize::MAX);
    if parts.is_empty() || width == 0 {
        return;
    }
    for one in bytes.chunks_exact_mut(width) {
        for part in &parts {
            if let Some(bytes) = one.get_mut(part.start..part.start.saturating_add(part.nbytes)) {
                part.repair.apply(bytes);
            }
        }
    }
}

/// Whether [`tidy`] changes nothing, whatever the bytes are.
pub fn is_tidy(element: &Element) -> bool {
    let mut parts = Vec::new();
    collect(element, 0, &mut parts);
    parts.iter().all(|part| part.repair == Repair::CutAtZero && part.nbytes == 1)
}

fn collect(element: &Element, start: usize, parts: &mut Vec<Part>) {
    match element {
        Element::Compound { fields, .. } => {
            for field in fields {
                let offset = usize::try_from(field.offset).unwrap_or(usize::MAX);
                collect(&field.element, start.saturating_add(offset), parts);
            }
        }
        Element::Array { shape, element } => {
            let mut one = Vec::new();
            collect(element, start, &mut one);
            let width = usize::try_from(element.nbytes()).unwrap_or(usize::MAX);
            let count = usize::try_from(shape.iter().product::<u64>()).unwrap_or(0);
            if !one.is_empty() {
                let all = (0..count).flat_map(|number| {
                    one.iter().map(move |part| Part { start: part.start + number * width, ..*part })
                });
                parts.extend(all.collect::<Vec<_>>());
            }
        }
        Element::Enumeration { base, .. } => collect(base, start, parts),
        _ => parts.extend(repair(element).map(|repair| Part {
            start,
            nbytes: usize::try_from(element.nbytes()).unwrap_or(usize::MAX),
            repair,
        })),
    }
}

fn repair(element: &Element) -> Option<Repair> {
    match element {
        Element::FixedString { padding: StringPadding::NullTerminated, .. } => Some(Repair::CutAtZero),
        Element::FixedString { padding: StringPadding::SpacePadded, .. } => Some(Repair::CutSpaces),
        Element::Integer { nbytes, signed, order, bit_offset, precision }
            if *nbytes <= 8 && (*bit_offset != 0 || u64::from(*precision) < *nbytes * 8) =>
        {
            let (bit_offset, precision) = (u32::from(*bit_offset), u32::from(*precision));
            Some(Repair::Widen { signed: *signed, order: *order, bit_offset, precision })
        }
        _ => None,
    }
}

impl Repair {
    fn apply(self, bytes: &mut [u8]) {
        match self {
            Self::CutAtZero => {
                let end = bytes.iter().position(|&byte| byte == 0).unwrap_or(bytes.len());
                bytes[end..].fill(0);
            }
            Self::CutSpaces => {
                let end = bytes.iter().rposition(|&byte| byte != b' ').map_or(0, |last| last + 1);
                bytes[end..].fill(0);
            }
            Self::Widen { signed, order, bit_offset, precision } => {
                if order == ByteOrder::Big {
                    bytes.reverse();
                }
                let mut wide = [0; 8];
                wide[..bytes.len()].copy_from_slice(bytes);
                let value = widened(u64::from_le_bytes(wide), signed, bit_offset, precision);
                bytes.copy_from_slice(&value.to_le_bytes()[..bytes.len()]);
                if order == ByteOrder::Big {
                    bytes.reverse();
                }
            }
        }
    }
}

fn widened(value: u64, signed: bool, bit_offset: u32, precision: u32) -> u64 {
    let Some(unused) = 64_u32.checked_sub(precision).filter(|&unused| unused < 64) else { return 0 };
    let top = value.checked_shr(bit_offset).unwrap_or(0) << unused;
    if signed { (top.cast_signed() >> unused).cast_unsigned() } else { top >> unused }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hyperslab_core::Charset;

    #[test]
    fn strings_end_where_their_padding_says() {
        let text = |padding| Element::FixedString { nbytes: 4, padding, charset: Charset::Ascii };
        let mut bytes = *b"ab\0c";
        tidy(&text(StringPadding::NullTerminated), &mut bytes);
        assert_eq!(&bytes, b"ab\0\0");
        let mut bytes = *b" b  ";
        tidy(&text(StringPadding::SpacePadded), &mut bytes);
        assert_eq!(&bytes, b" b\0\0");
    }

    #[test]
    fn narrow_integers_get_their_sign() {
        let narrow = |order| Element::Integer { nbytes: 2, signed: true, order, bit_offset: 4, precision: 8 };
        let mut bytes = 0x0ff3_u16.to_be_bytes();
        tidy(&narrow(ByteOrder::Big), &mut bytes);
        assert_eq!(i16::from_be_bytes(bytes), -1);
        let mut bytes = 0xf7f3_u16.to_le_bytes();
        tidy(&narrow(ByteOrder::Little), &mut bytes);
        assert_eq!(i16::from_le_bytes(bytes), 0x7f);
    }
}
