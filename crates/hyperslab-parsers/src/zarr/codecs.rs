//! Codecs by name: numcodecs' identifiers (version 2, and `numcodecs.…` in version 3), and version 3's own names.

use hyperslab_core::{
    ByteOrder, Checksum, Codec, Element, Framing, KnownCodec, Unreadable, is_convertible, same_bytes,
};
use serde_json::Value;

use super::shards::Shards;
use super::{document, element};

/// A version 3 chain: the codecs of a chunk, or with shards of a subchunk.
pub(super) struct Chain {
    pub codecs: Vec<Codec>,
    pub order: ByteOrder,
    pub shards: Option<Shards>,
}

/// A version 3 list of codecs, for arrays of `ndim` axes.
pub(super) fn chain(list: Option<&Value>, ndim: usize) -> Result<Chain, Unreadable> {
    let list = list.and_then(Value::as_array).ok_or_else(|| Unreadable::damaged("codecs is missing"))?;
    let mut chain = Chain { codecs: Vec::new(), order: ByteOrder::Little, shards: None };
    let mut is_serialised = false;
    for item in list {
        let (name, configuration) =
            document::extension(item).ok_or_else(|| Unreadable::damaged("a codec without a name"))?;
        let configuration = Value::Object(configuration);
        match name {
            "bytes" | "endian" => {
                chain.order = order(&configuration)?;
                is_serialised = true;
            }
            "sharding_indexed" => {
                let shards = sharded(&configuration, ndim)?;
                if list.len() > 1 {
                    return Err(Unreadable::unsupported("a codec around sharding_indexed"));
                }
                return Ok(shards);
            }
            "vlen-utf8" | "vlen_utf8" | "vlen-bytes" | "vlen_bytes" => {
                let framing = if name.ends_with("utf8") { Framing::Utf8 } else { Framing::Bytes };
                chain.codecs.push(Codec::Values { framing, fill: Vec::new() });
                is_serialised = true;
            }
            _ => chain.codecs.extend(codec(name, &configuration, ndim)?),
        }
    }
    if !is_serialised {
        chain.codecs.push(unknown("no known codec from array to bytes"));
    }
    Ok(chain)
}

/// The chain of the subchunks, with their shards.
fn sharded(configuration: &Value, ndim: usize) -> Result<Chain, Unreadable> {
    let mut inner = chain(configuration.get("codecs"), ndim)?;
    let index_at_start = match document::string(configuration, "index_location") {
        None | Some("end") => false,
        Some("start") => true,
        Some(other) => return Err(Unreadable::unsupported(format!("index_location {other:?}"))),
    };
    let subchunk_shape = document::lengths(configuration, "chunk_shape")?;
    if subchunk_shape.len() != ndim || subchunk_shape.contains(&0) {
        return Err(Unreadable::damaged("the chunk_shape of sharding_indexed does not fit the array"));
    }
    let (order, has_checksum) = index_codecs(configuration.get("index_codecs"), ndim)?;
    let within = inner.shards.take().map(Box::new);
    inner.shards = Some(Shards { subchunk_shape, order, has_checksum, index_at_start, within });
    Ok(inner)
}

/// The index itself: 16 bytes for each subchunk, and possibly a checksum.
fn index_codecs(list: Option<&Value>, ndim: usize) -> Result<(ByteOrder, bool), Unreadable> {
    let Some(list) = list else { return Ok((ByteOrder::Little, true)) };
    let index = chain(Some(list), ndim.saturating_add(1))?;
    match index.codecs.as_slice() {
        [] => Ok((index.order, false)),
        [Codec::Checksum { sum: Checksum::Crc32c, at_start: false }] => Ok((index.order, true)),
        _ => Err(Unreadable::unsupported("a compressed shard index")),
    }
}

fn order(configuration: &Value) -> Result<ByteOrder, Unreadable> {
    match document::string(configuration, "endian") {
        Some("little") | None => Ok(ByteOrder::Little),
        Some("big") => Ok(ByteOrder::Big),
        Some(other) => Err(Unreadable::unsupported(format!("endian {other:?}"))),
    }
}

/// A codec of version 3; `None` if decoding changes nothing.
fn codec(name: &str, configuration: &Value, ndim: usize) -> Result<Option<Codec>, Unreadable> {
    Ok(Some(match name {
        "transpose" => Codec::Transpose { order: permutation(configuration, ndim)? },
        "crc32c" => Codec::checksum(Checksum::Crc32c),
        _ => match name.strip_prefix("numcodecs.") {
            Some(name) => return numcodec(name, configuration),
            None => KnownCodec::of_zarr3(name).map_or_else(|| unknown(name), Codec::known),
        },
    }))
}

fn permutation(configuration: &Value, ndim: usize) -> Result<Vec<usize>, Unreadable> {
    let order = configuration.get("order");
    if let Some(word) = order.and_then(Value::as_str) {
        let forward = 0..ndim;
        return Ok(if word == "F" { forward.rev().collect() } else { forward.collect() });
    }
    let axis = |axis: &Value| axis.as_u64().and_then(|axis| usize::try_from(axis).ok());
    let order: Option<Vec<usize>> = order.and_then(|order| order.as_array()?.iter().map(axis).collect());
    let order = order.ok_or_else(|| Unreadable::damaged("transpose without an order"))?;
    let mut sorted = order.clone();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(0..ndim) {
        Ok(order)
    } else {
        Err(Unreadable::damaged("transpose: not a permutation of the axes"))
    }
}

/// A numcodecs codec, by its identifier; `None` if decoding changes nothing.
pub(super) fn numcodec(name: &str, configuration: &Value) -> Result<Option<Codec>, Unreadable> {
    let number = |key: &str| configuration.get(key).and_then(Value::as_f64);
    Ok(Some(match name {
        "bitround" => return Ok(None), // it rounds when it encodes
        "quantize" => {
            let (decoded, stored) = pair(configuration)?;
            return Ok(cast(name, stored, decoded));
        }
        "astype" => {
            let of = |key| element::of_string(document::string(configuration, key).unwrap_or_default());
            let ((stored, _), (decoded, _)) = (of("encode_dtype")?, of("decode_dtype")?);
            return Ok(cast(name, stored, decoded));
        }
        "vlen-utf8" => Codec::Values { framing: Framing::Utf8, fill: Vec::new() },
        "vlen-bytes" => Codec::Values { framing: Framing::Bytes, fill: Vec::new() },
        "vlen-array" => Codec::Values { framing: Framing::Sequences { element_nbytes: 1 }, fill: Vec::new() },
        "json2" => Codec::Values { framing: Framing::Json, fill: Vec::new() },
        "shuffle" => {
            let width = configuration.get("elementsize").and_then(Value::as_u64).unwrap_or(4);
            Codec::Shuffle { element_nbytes: width }
        }
        "delta" => {
            let (decoded, stored) = pair(configuration)?;
            Codec::Delta { stored, decoded }
        }
        "fixedscaleoffset" => {
            let (decoded, stored) = pair(configuration)?;
            let (scale, offset) = number("scale")
                .zip(number("offset"))
                .ok_or_else(|| Unreadable::damaged("fixedscaleoffset without numbers"))?;
            Codec::FixedScaleOffset { scale, offset, stored, decoded }
        }
        "fletcher32" => Codec::checksum(Checksum::Fletcher32),
        "crc32" => checksum(Checksum::Crc32, configuration, "start")?,
        "adler32" => checksum(Checksum::Adler32, configuration, "start")?,
        "crc32c" => checksum(Checksum::Crc32c, configuration, "end")?,
        _ => KnownCodec::of_numcodecs(name).map_or_else(|| unknown(name), Codec::known),
    }))
}

/// Numbers that were stored as others; `None` if these are the same. We only decode them if each stored number has an
/// equal decoded one: NumPy, which numcodecs leaves this to, does what the machine does with other numbers.
fn cast(name: &str, stored: Element, decoded: Element) -> Option<Codec> {
    if same_bytes(&stored, &decoded) {
        return None;
    }
    let is_exact = is_convertible(&stored, &decoded) && holds_all(&decoded, &stored);
    Some(if is_exact { Codec::Convert { stored, decoded } } else { unknown(name) })
}

/// Whether the first kind of numbers has all of the second.
fn holds_all(wide: &Element, narrow: &Element) -> bool {
    match (wide, narrow) {
        (
            Element::Integer { nbytes: wide, signed, .. },
            Element::Integer { nbytes: narrow, signed: is_narrow_signed, .. },
        ) => {
            if signed == is_narrow_signed {
                wide >= narrow
            } else {
                *signed && wide > narrow
            }
        }
        (Element::Float { nbytes: wide, .. }, Element::Float { nbytes: narrow, .. }) => wide >= narrow,
        (Element::Float { nbytes: wide, .. }, Element::Integer { nbytes: narrow, .. }) => wide > narrow,
        _ => false,
    }
}

/// A numcodecs checksum, at one end of the data.
fn checksum(sum: Checksum, configuration: &Value, default: &str) -> Result<Codec, Unreadable> {
    match document::string(configuration, "location").unwrap_or(default) {
        "end" => Ok(Codec::checksum(sum)),
        "start" => Ok(Codec::Checksum { sum, at_start: true }),
        other => Err(Unreadable::unsupported(format!("{} at location {other:?}", sum.name()))),
    }
}

/// `dtype` and `astype`, which defaults to `dtype`.
fn pair(configuration: &Value) -> Result<(Element, Element), Unreadable> {
    let dtype = document::string(configuration, "dtype")
        .ok_or_else(|| Unreadable::damaged("a codec without a dtype"))?;
    let (decoded, _) = element::of_string(dtype)?;
    let stored = document::string(configuration, "astype").map(element::of_string).transpose()?;
    let stored = stored.map_or_else(|| decoded.clone(), |(stored, _)| stored);
    Ok((decoded, stored))
}

fn unknown(name: &str) -> Codec {
    let name = if name.is_empty() { "without a name" } else { name };
    Codec::Unknown { number: None, name: name.into() }
}
