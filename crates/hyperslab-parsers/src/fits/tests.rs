//! Hand-made headers, good and damaged.

use hyperslab_core::{AxisSelection, ByteRange, Codec, Dither, Element, Link, Segment, Unreadable, known};

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

/// An image of 3 by 5 in rows of 2 elements, so that axes are cut: six rows of a descriptor and a scale each.
fn compressed() -> Vec<u8> {
    let mut bytes = header(&[
        "XTENSION= 'BINTABLE'",
        "BITPIX  =                    8",
        "NAXIS   =                    2",
        "NAXIS1  =                   24",
        "NAXIS2  =                    9",
        "PCOUNT  =                   90",
        "GCOUNT  =                    1",
        "TFIELDS =                    3",
        "TTYPE1  = 'COMPRESSED_DATA'",
        "TFORM1  = '1PB(9)  '",
        "TTYPE2  = 'ZSCALE  '",
        "TFORM2  = '1D      '",
        "TTYPE3  = 'ZZERO   '",
        "TFORM3  = '1D      '",
        "ZIMAGE  =                    T",
        "ZBITPIX =                  -32",
        "ZNAXIS  =                    2",
        "ZNAXIS1 =                    5",
        "ZNAXIS2 =                    3",
        "ZTILE1  =                    2",
        "ZTILE2  =                    1",
        "ZCMPTYPE= 'RICE_1  '",
        "ZNAME1  = 'BLOCKSIZE'",
        "ZVAL1   =                   16",
        "ZQUANTIZ= 'SUBTRACTIVE_DITHER_1'",
        "ZDITHER0=                    7",
        "OBJECT  = 'it      '",
    ]);
    for row in 0..9_u32 {
        bytes.extend([10_u32, row * 10].map(u32::to_be_bytes).concat());
        bytes.extend([f64::from(row), 0.5].map(f64::to_be_bytes).concat());
    }
    bytes.resize(3 * 2880, 0);
    bytes
}

#[test]
fn a_compressed_image_and_the_chunks_that_its_end_cuts() {
    let tree = parsed(parse, &[image(), compressed()].concat()).unwrap();
    let array = &tree.arrays[1];
    assert_eq!(array.shape, Some(vec![3, 5]));
    let names: Vec<_> = array.attributes.iter().map(|it| it.name.as_str()).collect();
    assert_eq!(names, ["ZQUANTIZ", "ZDITHER0", "OBJECT"]);
    let segments = array.segments.as_ref().unwrap();
    let origin = |it: &Segment| it.shown().map(AxisSelection::start).collect::<Vec<_>>();
    let shapes: Vec<_> = segments.iter().map(|it| (origin(it), it.grid.chunk_shape().to_vec())).collect();
    assert_eq!(shapes, [(vec![0, 0], vec![1, 2]), (vec![0, 4], vec![1, 1])]);
    let first = 3 * 2880 + 9 * 24;
    let offsets: Vec<_> = segments[1].manifest.stored().map(|chunk| chunk.range.offset - first).collect();
    assert_eq!(offsets, [20, 50, 80], "the last chunk of each row of three");
    let Codec::Quantize { chunks, dither, .. } = &segments[1].codecs[0] else { panic!("not quantized") };
    let scales: Vec<_> = chunks.iter().map(|it| (it.scale, it.dither_start)).collect();
    assert_eq!((scales, *dither), (vec![(2.0, 8), (5.0, 11), (8.0, 14)], Dither::Subtractive));
    assert_eq!(segments[0].codecs[1], Codec::with(&known::rice, [4, 16]));
}

#[test]
fn damage_of_a_compressed_image_is_survived() {
    damage(parse, &[image(), compressed()].concat());
}
