//! Fill values from JSON, as the bytes of one element.

use hyperslab_core::{ByteOrder, Element, Fill, Unreadable};
use serde_json::Value;

use super::base64::decoded;
use super::document::BARE;
use super::element::NUMPY_TAG;

/// The fill value of an array. Fails if we do not understand it.
pub(super) fn of(element: &Element, value: Option<&Value>) -> Result<Fill, Unreadable> {
    match value {
        None | Some(Value::Null) => Ok(Fill::Undefined),
        Some(value) => {
            let bytes = encode(element, value).filter(|bytes| bytes.len() as u64 == element.nbytes());
            bytes.map(Fill::Value).ok_or_else(|| Unreadable::unsupported(format!("fill value {value}")))
        }
    }
}

fn encode(element: &Element, value: &Value) -> Option<Vec<u8>> {
    match element {
        Element::Integer { nbytes, order, .. } => integer(value).map(|value| ordered(value, *nbytes, *order)),
        Element::Enumeration { .. } => truth(value).map(|value| vec![u8::from(value)]),
        Element::Float { nbytes, order, layout } => {
            let bits =
                hexadecimal(value).or_else(|| float_bits(float(value)?, *nbytes, layout.mantissa_nbits))?;
            Some(ordered(bits, *nbytes, *order))
        }
        Element::Complex { part } => {
            let parts = value.as_array().filter(|parts| parts.len() == 2);
            let zero = Value::from(0);
            let (real, imaginary) = match parts {
                Some(parts) => (parts.first()?, parts.get(1)?),
                None => (value, &zero),
            };
            Some([encode(part, real)?, encode(part, imaginary)?].concat())
        }
        Element::Opaque { nbytes, tag } => opaque(*nbytes, tag, value),
        Element::Compound { fields, nbytes } if value.is_object() => {
            let mut bytes = vec![0; usize::try_from(*nbytes).ok().filter(|&nbytes| nbytes < 1 << 24)?];
            for field in fields {
                let part = encode(&field.element, value.get(&field.name)?)?;
                let start = usize::try_from(field.offset).ok()?;
                bytes.get_mut(start..start.checked_add(part.len())?)?.copy_from_slice(&part);
            }
            Some(bytes)
        }
        _ => raw(element.nbytes(), value),
    }
}

fn opaque(nbytes: u64, tag: &str, value: &Value) -> Option<Vec<u8>> {
    let tag = tag.strip_prefix(NUMPY_TAG).unwrap_or(tag);
    let order = if tag.starts_with('>') { ByteOrder::Big } else { ByteOrder::Little };
    match tag.chars().nth(1) {
        Some('M' | 'm') if value.as_str() == Some("NaT") => Some(ordered(1 << 63, 8, order)),
        Some('M' | 'm') => integer(value).map(|value| ordered(value, 8, order)),
        Some('U') if value.is_string() => {
            let points =
                value.as_str()?.chars().flat_map(|point| ordered(u64::from(u32::from(point)), 4, order));
            padded(points.collect(), nbytes)
        }
        _ => raw(nbytes, value),
    }
}

/// Base64, a list of bytes, or a zero that stands for as many as needed.
fn raw(nbytes: u64, value: &Value) -> Option<Vec<u8>> {
    let bytes = match value {
        Value::String(text) => decoded(text)?,
        Value::Array(items) => items
            .iter()
            .map(|item| item.as_u64().and_then(|byte| u8::try_from(byte).ok()))
            .collect::<Option<_>>()?,
        Value::Number(number) if number.as_f64() == Some(0.0) => Vec::new(),
        _ => return None,
    };
    padded(bytes, nbytes)
}

fn padded(mut bytes: Vec<u8>, nbytes: u64) -> Option<Vec<u8>> {
    let nbytes = usize::try_from(nbytes).ok().filter(|&nbytes| nbytes < 1 << 24)?;
    if bytes.len() <= nbytes {
        bytes.resize(nbytes, 0);
    }
    Some(bytes)
}

/// The low bytes of a number, in this byte order.
fn ordered(value: u64, nbytes: u64, order: ByteOrder) -> Vec<u8> {
    let mut bytes: Vec<u8> =
        value.to_le_bytes().into_iter().take(usize::try_from(nbytes).unwrap_or(8)).collect();
    if order == ByteOrder::Big {
        bytes.reverse();
    }
    bytes
}

/// The two's complement bits of an integer, which may be written as `0.0`.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // an integer below 2^53
fn integer(value: &Value) -> Option<u64> {
    let whole =
        |value: f64| (value.fract() == 0.0 && value.abs() < 9e15).then_some((value as i64).cast_unsigned());
    let signed = || value.as_i64().map(i64::cast_unsigned);
    value.as_u64().or_else(signed).or_else(|| whole(value.as_f64()?)).or_else(|| truth(value).map(u64::from))
}

fn truth(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| value.as_f64().map(|value| value != 0.0))
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::String(text) => match text.trim_start_matches(BARE) {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        Value::Bool(value) => Some(f64::from(u8::from(*value))),
        _ => value.as_f64(),
    }
}

/// Bits in version 3's hexadecimal form: `0x7fc00000`.
fn hexadecimal(value: &Value) -> Option<u64> {
    u64::from_str_radix(value.as_str()?.strip_prefix("0x")?, 16).ok()
}

#[allow(clippy::cast_possible_truncation)] // rounding is intended
fn float_bits(value: f64, nbytes: u64, mantissa_nbits: u8) -> Option<u64> {
    match (nbytes, mantissa_nbits) {
        (8, _) => Some(value.to_bits()),
        (4, _) => Some(u64::from((value as f32).to_bits())),
        (2, 10) => Some(half_bits(value)),
        (2, 7) => {
            let bits = u64::from((value as f32).to_bits());
            let rounded = bits + 0x7fff + (bits >> 16 & 1); // to nearest, ties to even
            Some(if value.is_nan() { 0x7fc0 } else { rounded >> 16 })
        }
        _ => None,
    }
}

/// The binary16 nearest to a number, ties to even.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // both are integers below 2^16
fn half_bits(value: f64) -> u64 {
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let magnitude = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    if magnitude < 2.0_f64.powi(-14) {
        // Subnormals, in units of 2^-24.
        return sign | (magnitude * 2.0_f64.powi(24)).round_ties_even() as u64;
    }
    if magnitude >= 65520.0 {
        return sign | 0x7c00;
    }
    let exponent = (magnitude.to_bits() >> 52) + 15 - 1023; // between 1 and 30
    let scale = f64::from_bits((magnitude.to_bits() >> 52) << 52);
    let mantissa = ((magnitude / scale - 1.0) * 1024.0).round_ties_even() as u64;
    sign | ((exponent << 10) + mantissa) // a mantissa of 1024 correctly carries into the exponent
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves() {
        for (value, bits) in [
            (1.0, 0x3c00),
            (-2.0, 0xc000),
            (65504.0, 0x7bff),
            (1e9, 0x7c00),
            (2f64.powi(-24), 1),
            (0.1, 0x2e66),
        ] {
            assert_eq!(half_bits(value), bits, "{value}");
        }
    }
}
