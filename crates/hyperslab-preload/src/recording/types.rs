//! Types of elements in words: as NumPy writes them, so that all recorders say the same.

use hyperslab_libhdf5::{Class, MOST_NDIM, Order, Type};

/// Whether the other byte order is this machine's.
const IS_BIG: bool = cfg!(target_endian = "big");
/// Types within types are described so far.
const MOST_DEPTH: u32 = 8;
const MOST_FIELDS: u32 = 200;
const OBJECT: &str = "object";

/// The type of an array, such as `<f4`.
pub(crate) fn stored_type(kind: Type<'_>) -> String {
    described(kind, 0)
}

/// A number that tells integers and floating-point numbers apart, so that the words for them are made only once: many
/// programs give each call a new identifier of the same type. `None` for all other types.
pub(crate) fn simple(kind: Type<'_>) -> Option<u64> {
    let class = kind.class()?;
    let is_signed = match class {
        Class::Integer => kind.is_signed(),
        Class::Float => false,
        _ => return None,
    };
    let order = kind.order().map_or(u8::MAX, |order| order as u8);
    let nbytes = u32::try_from(kind.nbytes()).ok()?;
    Some(u64::from(nbytes) << 24 | (class as u64) << 16 | u64::from(is_signed) << 8 | u64::from(order))
}

/// The type in a program's memory, such as `float32`; one in another byte order as above.
pub(crate) fn memory_type(kind: Type<'_>) -> String {
    let short = stored_type(kind);
    let own = if IS_BIG { '>' } else { '<' };
    let Some(code) = short.strip_prefix([own, '|']) else { return short };
    let Some(nbytes) = code.get(1..).and_then(|digits| digits.parse::<u32>().ok()) else { return short };
    match &code[..1] {
        "i" => format!("int{}", 8 * nbytes),
        "u" => format!("uint{}", 8 * nbytes),
        "f" => format!("float{}", 8 * nbytes),
        "c" => format!("complex{}", 8 * nbytes),
        "b" => "bool".to_owned(),
        _ => short,
    }
}

fn described(kind: Type<'_>, depth: u32) -> String {
    let nbytes = kind.nbytes();
    let of_base = || {
        let base = kind.base()?;
        (depth < MOST_DEPTH).then(|| described(*base, depth + 1))
    };
    let ordered = |code: &str| {
        let is_big = kind.order() == Some(Order::Big);
        let order = if is_big { '>' } else { '<' };
        format!("{}{code}{nbytes}", if nbytes == 1 { '|' } else { order })
    };
    match kind.class() {
        Some(Class::Integer) => ordered(if kind.is_signed() { "i" } else { "u" }),
        Some(Class::Float) => ordered("f"),
        Some(Class::Bitfield) => ordered("u"),
        Some(Class::Text) if kind.is_fixed_text() => format!("|S{nbytes}"),
        Some(Class::Compound) if depth < MOST_DEPTH => compound(kind, depth),
        Some(Class::Enumeration) if is_boolean(kind) => "|b1".to_owned(),
        Some(Class::Enumeration) => of_base().unwrap_or_else(|| OBJECT.to_owned()),
        Some(Class::Array) => {
            let mut room = [0_u64; MOST_NDIM];
            let lengths: Vec<String> =
                kind.shape(&mut room).unwrap_or(&[]).iter().map(u64::to_string).collect();
            let comma = if lengths.len() == 1 { "," } else { "" };
            format!("({}, ({}{comma}))", quoted(&of_base().unwrap_or_default()), lengths.join(", "))
        }
        Some(Class::Complex) => of_base().map_or_else(|| OBJECT.to_owned(), |base| complex(&base, nbytes)),
        Some(Class::Opaque) => format!("|V{nbytes}"),
        _ => OBJECT.to_owned(), // references, and elements of variable length
    }
}

fn complex(part: &str, nbytes: usize) -> String {
    format!("{}c{nbytes}", part.get(..1).unwrap_or("<"))
}

fn quoted(kind: &str) -> String {
    let is_list = kind.starts_with(['[', '(']);
    if is_list { kind.to_owned() } else { format!("'{}'", if kind == OBJECT { "O" } else { kind }) }
}

fn compound(kind: Type<'_>, depth: u32) -> String {
    let mut fields = Vec::new();
    for number in 0..kind.member_count().min(MOST_FIELDS) {
        let text = kind.member(number).map(|field| described(*field, depth + 1)).unwrap_or_default();
        fields.push((kind.member_name(number).unwrap_or_default(), text));
    }
    let nbytes = kind.nbytes();
    match &fields[..] {
        [(r, real), (i, imaginary)]
            if r == "r" && i == "i" && real == imaginary && real.get(1..2) == Some("f") =>
        {
            complex(real, nbytes)
        }
        _ => {
            let words = fields.iter().map(|(name, kind)| format!("('{name}', {})", quoted(kind)));
            format!("[{}]", words.collect::<Vec<_>>().join(", "))
        }
    }
}

/// h5py stores booleans so.
fn is_boolean(kind: Type<'_>) -> bool {
    let is = |number, name| kind.member_name(number).as_deref() == Some(name);
    kind.member_count() == 2 && is(0, "FALSE") && is(1, "TRUE")
}
