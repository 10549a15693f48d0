//! A small document, whole and damaged.

use hyperslab_core::{ByteRange, ChunkState, Link, Tree};

use super::{beside, parse};
use crate::error::Error;
use crate::hostile;
use crate::pages::{Memory, Pages};

const DOCUMENT: &str = r#"<?xml version="1.0" encoding="ISO-8859-1"?>
<Dataset xmlns:dmrpp="http://xml.opendap.org/dap/dmrpp/1.0.0#" name="a.h5" dmrpp:href="a.h5" dmrpp:version="3">
<Dimension name="y" size="5"/><Enumeration name="e" basetype="Int8"><EnumConst name="no" value="-1"/></Enumeration>
<Attribute name="s" type="String"><Value>a &lt; b &#228;</Value></Attribute><Group name="g"><Float32 name="x">
<Dim name="/y"/><Dim size="4"/><Attribute name="_FillValue" type="Float32"><Value>1.2345678</Value></Attribute>
<dmrpp:chunks compressionType="shuffle deflate" fillValue="1.23457" byteOrder="BE">
<dmrpp:chunkDimensionSizes>3 4</dmrpp:chunkDimensionSizes>
<dmrpp:chunk offset="16" nBytes="7" chunkPositionInArray="[3,0]" fm="2" href="b.h5"/></dmrpp:chunks></Float32>
<Enum name="k" enum="e"><dmrpp:compact>/w==</dmrpp:compact></Enum><Structure name="p"><Int8 name="a"/><Int16 name="b">
<Dim size="2"/></Int16><Dim size="2"/><dmrpp:chunks fillValue="1 2 3" structOffset="2 6"/></Structure>
<String name="w"><Dim size="3"/><dmrpp:vlsa><v>a</v><v c="2">bc</v></dmrpp:vlsa></String></Group></Dataset>"#;

fn of_pages(pages: &mut Pages<'_>) -> Result<Tree, Error> {
    let length = pages.file_length();
    pages.want(ByteRange { offset: 0, length });
    pages.fetch()?;
    let bytes = pages.bytes("a document", 0, length)?;
    parse(&Memory(&bytes))
}

#[test]
fn a_document_says_where_its_chunks_are() {
    let tree = parse(&Memory(DOCUMENT.as_bytes())).unwrap();
    assert_eq!(tree.other_files, ["a.h5", "b.h5"]);
    let links: Vec<_> = tree.groups.iter().flat_map(|group| &group.links).collect();
    assert_eq!(links.len(), 5);
    assert!(matches!(links.first(), Some((name, Link::Group(1))) if name == "g"));
    let mut segments = tree.arrays.iter().map(|array| array.segments.as_deref().unwrap().first().unwrap());
    let first = segments.next().unwrap();
    assert!(matches!(first.manifest.state(1), ChunkState::Stored { file: 2, filter_mask: 2, .. }));
    assert_eq!(first.manifest.state(0), ChunkState::Missing);
    assert_eq!(first.fill, hyperslab_core::Fill::Value(1.234_567_8_f32.to_be_bytes().to_vec()));
    assert_eq!(segments.next().unwrap().manifest.state(0), ChunkState::Inline(b"\xff"));
    assert_eq!(segments.next().unwrap().fill, hyperslab_core::Fill::Value(vec![1, 0, 2, 0, 3, 0]));
    assert_eq!(segments.next().unwrap().manifest.state(0), ChunkState::Inline(b"a\0bcbc"));
}

/// Deflated by zlib, as a long text of Hyrax is.
const TEXTS: &str = r#"<Dataset><String name="w"><Dim size="3"/><dmrpp:vlsa><v s="SIZE" c="2">
eJxLTEpOSUykhAAAUHQZUQ==</v><v>b</v></dmrpp:vlsa></String></Dataset>"#;

#[test]
fn deflated_texts_have_the_length_that_is_said() {
    let told = |size: &str| parse(&Memory(TEXTS.replace("SIZE", size).as_bytes())).unwrap();
    let tree = told("66");
    let first = tree.arrays.first().and_then(|array| array.segments.as_deref().ok()).unwrap().first();
    let held = [&b"abcda".repeat(14)[..66], &b"abcda".repeat(14)[..66], b"b"].concat();
    match first.unwrap().manifest.state(0) {
        ChunkState::Inline(bytes) => assert_eq!(bytes.get(..133), held.get(..133)),
        other => panic!("{other:?}"),
    }
    for size in ["65", "67", "0", "-1", "x", "99999999999999999999", "1000000000"] {
        assert!(told(size).arrays.is_empty(), "{size}");
    }
}

#[test]
fn damage_is_told_or_harmless() {
    hostile::damage(of_pages, DOCUMENT.as_bytes());
}

#[test]
fn documents_are_named_after_their_files() {
    for document in ["a.nc", "a.nc.dmrpp", "a.nc.dap.dmrpp"] {
        assert_eq!(beside(document), "a.nc");
    }
}
