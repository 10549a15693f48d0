//! Types of elements in words: as NumPy writes them, so that all recorders say the same.

#![allow(unsafe_code)]

use std::ffi::{CStr, c_uint};

use crate::libhdf5::{Describing, Held, Id, Library, MOST_NDIM};

/// `H5T_INTEGER` and so on.
const INTEGER: i32 = 0;
const FLOAT: i32 = 1;
const STRING: i32 = 3;
const BITFIELD: i32 = 4;
const OPAQUE: i32 = 5;
const COMPOUND: i32 = 6;
const ENUMERATION: i32 = 8;
const ARRAY: i32 = 10;
const COMPLEX: i32 = 11;
/// `H5T_ORDER_BE`, and whether it is this machine's order.
const BIG: i32 = 1;
const IS_BIG: bool = cfg!(target_endian = "big");
/// `H5T_SGN_NONE`.
const UNSIGNED: i32 = 0;
/// Types within types are described so far.
const MOST_DEPTH: u32 = 8;
const MOST_FIELDS: u32 = 200;
const OBJECT: &str = "object";

/// The type of an array, such as `<f4`.
pub(crate) fn stored_type(library: &Library, describing: &Describing, kind: Id) -> String {
    described(library, describing, kind, 0)
}

/// A number that tells integers and floating-point numbers apart, so that the words for them are made only once: many
/// programs give each call a new identifier of the same type. `None` for all other types.
pub(crate) fn simple(library: &Library, describing: &Describing, kind: Id) -> Option<u64> {
    // SAFETY: the functions take any identifier.
    unsafe {
        let class = (library.call.type_class)(kind);
        let sign = match class {
            INTEGER => (describing.type_sign)(kind),
            FLOAT => 0,
            _ => return None,
        };
        let order = (library.call.type_order)(kind);
        let nbytes = u32::try_from((library.call.type_nbytes)(kind)).ok()?;
        let small = |number: i32| u64::from(number.cast_unsigned() & 0xff);
        Some(u64::from(nbytes) << 24 | small(class) << 16 | small(sign) << 8 | small(order))
    }
}

/// The type in a program's memory, such as `float32`; one in another byte order as above.
pub(crate) fn memory_type(library: &Library, describing: &Describing, kind: Id) -> String {
    let short = stored_type(library, describing, kind);
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

fn described(library: &Library, describing: &Describing, kind: Id, depth: u32) -> String {
    // SAFETY: the functions take any identifier.
    let (class, nbytes) = unsafe { ((library.call.type_class)(kind), (library.call.type_nbytes)(kind)) };
    let of_base = || {
        // SAFETY: as above.
        let base = Held::new(library, unsafe { (describing.type_super)(kind) })?;
        (depth < MOST_DEPTH).then(|| described(library, describing, base.id, depth + 1))
    };
    let ordered = |code: &str, nbytes: usize| {
        // SAFETY: as above.
        let is_big = unsafe { (library.call.type_order)(kind) } == BIG;
        format!(
            "{}{code}{nbytes}",
            if nbytes == 1 {
                '|'
            } else if is_big {
                '>'
            } else {
                '<'
            }
        )
    };
    match class {
        // SAFETY: as above.
        INTEGER => {
            ordered(if unsafe { (describing.type_sign)(kind) } == UNSIGNED { "u" } else { "i" }, nbytes)
        }
        FLOAT => ordered("f", nbytes),
        BITFIELD => ordered("u", nbytes),
        // SAFETY: as above.
        STRING if unsafe { (describing.type_is_text)(kind) } == 0 => format!("|S{nbytes}"),
        COMPOUND if depth < MOST_DEPTH => compound(library, describing, kind, depth),
        ENUMERATION if is_boolean(describing, kind) => "|b1".to_owned(),
        ENUMERATION => of_base().unwrap_or_else(|| OBJECT.to_owned()),
        ARRAY => {
            let mut shape = [0_u64; MOST_NDIM];
            // SAFETY: there is room for as many axes as libhdf5 allows.
            let ndim = unsafe {
                (describing.array_shape)(kind, shape.as_mut_ptr());
                (describing.array_ndim)(kind)
            };
            let shape = &shape[..usize::try_from(ndim).unwrap_or(0).min(MOST_NDIM)];
            let lengths: Vec<String> = shape.iter().map(u64::to_string).collect();
            let comma = if lengths.len() == 1 { "," } else { "" };
            format!("({}, ({}{comma}))", quoted(&of_base().unwrap_or_default()), lengths.join(", "))
        }
        COMPLEX => of_base().map_or_else(|| OBJECT.to_owned(), |base| complex(&base, nbytes)),
        OPAQUE => format!("|V{nbytes}"),
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

fn compound(library: &Library, describing: &Describing, kind: Id, depth: u32) -> String {
    let mut fields = Vec::new();
    for number in 0..member_count(describing, kind) {
        // SAFETY: the number is that of a field.
        let field = Held::new(library, unsafe { (describing.member_type)(kind, number) });
        let text = field.map(|field| described(library, describing, field.id, depth + 1)).unwrap_or_default();
        fields.push((member_name(describing, kind, number), text));
    }
    // SAFETY: the function takes any identifier.
    let nbytes = unsafe { (library.call.type_nbytes)(kind) };
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
fn is_boolean(describing: &Describing, kind: Id) -> bool {
    member_count(describing, kind) == 2
        && member_name(describing, kind, 0) == "FALSE"
        && member_name(describing, kind, 1) == "TRUE"
}

fn member_count(describing: &Describing, kind: Id) -> c_uint {
    // SAFETY: the function takes any identifier.
    c_uint::try_from(unsafe { (describing.member_count)(kind) }).unwrap_or(0).min(MOST_FIELDS)
}

fn member_name(describing: &Describing, kind: Id, number: c_uint) -> String {
    // SAFETY: the number is that of a field; libhdf5 frees what it has allocated.
    unsafe {
        let name = (describing.member_name)(kind, number);
        if name.is_null() {
            return String::new();
        }
        let text = CStr::from_ptr(name).to_string_lossy().into_owned();
        (describing.free)(name.cast());
        text
    }
}
