//! Hand-made headers, good and damaged.

use hyperslab_core::{ByteRange, Element, Link, Unreadable};

use super::*;
use crate::hostile::{damage, parsed};

fn header(cards: &[&str]) -> Vec<u8> {
    let mut bytes: Vec<u8> = cards.iter().flat_map(|card| format!("{card:80}").into_bytes()).collect();
    bytes.extend(format!("{:80}", "END").into_bytes());
    bytes.resize(bytes.len().next_multiple_of(2880), b' ');
    bytes
}

fn image() -> Vec<u8> {
    let mut bytes = header(&[
        "SIMPLE  =                    T / standard",
        "BITPIX  =                  -32",
        "NAXIS   =                    2",
        "NAXIS1  =                    5",
        "NAXIS2  =                    3",
        "OBJECT  = 'O''Neill  '         / quoted",
        "LONG    = 'one &'",
        "CONTINUE  'two'",
        "HIERARCH ESO TEL NAME = 1.5D3 / long keyword",
        "COMMENT first",
        "COMMENT second",
    ]);
    bytes.resize(2 * 2880, 1);
    bytes
}

fn table() -> Vec<u8> {
    let mut bytes = header(&[
        "XTENSION= 'BINTABLE'",
        "BITPIX  =                    8",
        "NAXIS   =                    2",
        "NAXIS1  =                   38",
        "NAXIS2  =                    2",
        "PCOUNT  =                   16",
        "GCOUNT  =                    1",
        "TFIELDS =                    4",
        "TTYPE1  = 'a       '",
        "TFORM1  = '6E      '",
        "TDIM1   = '(3,2)   '",
        "TTYPE2  = 's       '",
        "TFORM2  = '4A      '",
        "TTYPE3  = 'v       '",
        "TFORM3  = '1PE(3)  '",
        "TTYPE4  = 'x       '",
        "TFORM4  = '11X     '",
        "EXTNAME = 'EVENTS  '",
    ]);
    bytes.resize(2 * 2880, 1);
    bytes
}

fn text(tree: &Tree, name: &str) -> String {
    let attribute = tree.arrays[0].attributes.iter().find(|attribute| attribute.name == name).unwrap();
    String::from_utf8_lossy(&attribute.value.as_ref().unwrap().bytes).into_owned()
}

#[test]
fn an_image_and_its_cards() {
    let tree = parsed(parse, &image()).unwrap();
    assert_eq!(tree.groups[0].links[0].0, "primary");
    assert_eq!(tree.arrays[0].shape, Some(vec![3, 5]));
    let chunk = tree.arrays[0].segments.as_ref().unwrap()[0].manifest.stored().next().unwrap();
    assert_eq!(chunk.range, ByteRange { offset: 2880, length: 60 });
    assert_eq!(text(&tree, "OBJECT"), "O'Neill");
    assert_eq!(text(&tree, "LONG"), "one two");
    assert_eq!(text(&tree, "COMMENT"), "first\nsecond");
    let long = tree.arrays[0].attributes.iter().find(|it| it.name == "ESO TEL NAME").unwrap();
    assert_eq!(long.value.as_ref().unwrap().bytes, 1500.0_f64.to_le_bytes());
}

#[test]
fn a_table_without_its_variable_column() {
    let tree = parsed(parse, &[image(), table()].concat()).unwrap();
    let Element::Compound { nbytes, fields } = &tree.arrays[1].element else { panic!("no compound") };
    let offsets: Vec<_> = fields.iter().map(|field| (field.name.as_str(), field.offset)).collect();
    assert_eq!((*nbytes, offsets), (38, vec![("a", 0), ("s", 24), ("x", 36)]));
    assert!(matches!(&fields[0].element, Element::Array { shape, .. } if *shape == [2, 3]));
    assert!(
        matches!(&tree.groups[0].links[2], (name, Link::Unreadable(Unreadable::Unsupported { .. })) if name == "EVENTS.v")
    );
}

#[test]
fn two_of_one_name() {
    let tree = parsed(parse, &[image(), table(), table()].concat()).unwrap();
    let names: Vec<_> = tree.groups[0].links.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["primary", "EVENTS", "EVENTS.v", "EVENTS_1", "EVENTS_1.v"]);
}

#[test]
fn sizes_that_no_file_has_are_named() {
    let huge = i64::MAX;
    for axes in [vec![huge], vec![huge, huge], vec![1 << 32, 1 << 32], vec![huge; 9]] {
        let mut cards =
            vec!["SIMPLE  = T".to_owned(), "BITPIX  = -64".to_owned(), format!("NAXIS   = {}", axes.len())];
        cards.extend(axes.iter().zip(1..).map(|(length, axis)| format!("NAXIS{axis}  = {length}")));
        let bytes = header(&cards.iter().map(String::as_str).collect::<Vec<_>>());
        let tree = parsed(parse, &bytes).unwrap();
        let is_named = |link: &Link| match link {
            Link::Array(number) => tree.arrays[*number].segments.is_err(),
            other => matches!(other, Link::Unreadable(_)),
        };
        assert!(tree.groups[0].links.iter().all(|(_, link)| is_named(link)), "{axes:?} {tree:?}");
    }
    let rows = String::from_utf8(table())
        .unwrap_or_default()
        .replace("NAXIS2  =                    2", "NAXIS2  =  9223372036854775807");
    let tree = parsed(parse, &[image(), rows.into_bytes()].concat()).unwrap();
    assert!(tree.arrays.get(1).is_none_or(|array| array.segments.is_err()));
}

#[test]
fn damage_is_survived() {
    let bytes = [image(), table()].concat();
    damage(parse, bytes.get(..9000).unwrap());
}
