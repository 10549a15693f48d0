//! Hand-made directories, good and damaged.

use std::path::PathBuf;

use hyperslab_core::{ByteRange, Codec, Fill, Link, Unreadable};

use super::*;

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str, files: &[(&str, &[u8])]) -> Self {
        let folder = std::env::temp_dir().join(format!("hyperslab-zarr-{}-{name}", std::process::id()));
        for (path, bytes) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// The name of a file of a manifest.
fn file(tree: &Tree, number: u32) -> &str {
    &tree.other_files[number as usize - 1]
}

const OLD: &str = r#"{"zarr_format": 2, "shape": [5], "chunks": [2], "dtype": ">i2",
    "compressor": {"id": "zlib"},
    "filters": null, "order": "C", "fill_value": -2}"#;

fn sharded(codecs: &str) -> String {
    format!(
        r#"{{"zarr_format": 3, "node_type": "array", "shape": [7], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {{"name": "regular", "configuration": {{"chunk_shape": [4]}}}},
        "chunk_key_encoding": {{"name": "default"}}, "attributes": {{"nan": NaN}}, "codecs": [{codecs}]}}"#
    )
}

const SHARDING: &str = r#"{"name": "sharding_indexed", "configuration": {
    "chunk_shape": [2], "codecs": ["bytes"],
    "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}, "crc32c"]}}"#;

fn shard(entries: &[u64]) -> Vec<u8> {
    let index: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    let checksum = shards::crc32c(&index).to_le_bytes();
    [vec![7; 4], index, checksum.to_vec()].concat()
}

#[test]
fn version_2() {
    let files: [(&str, &[u8]); 6] = [
        (".zgroup", b"{}"),
        ("a/b/.zarray", OLD.as_bytes()),
        ("a/b/.zattrs", br#"{"_ARRAY_DIMENSIONS": ["x"], "n": 1}"#),
        ("a/b/0", b"123"),
        ("a/b/2", b"1234"),
        ("a/b/03", b"not a chunk"),
    ];
    let folder = Folder::new("version_2", &files);
    let tree = parse_directory(&folder.0, &Allowed::default()).unwrap();
    assert_eq!(tree.groups[1].links, [("b".to_owned(), Link::Array(0))]);
    let array = &tree.arrays[0];
    assert_eq!(
        (array.fill.clone(), array.dimensions.clone()),
        (Fill::Value(vec![0xff, 0xfe]), Some(vec!["x".into()]))
    );
    let chunks: Vec<_> = array.segments.as_ref().unwrap()[0].manifest.stored().collect();
    let locations = chunks.iter().map(|chunk| (chunk.index, file(&tree, chunk.file)));
    assert_eq!(locations.collect::<Vec<_>>(), [(0, "a/b/0"), (2, "a/b/2")]);
    assert_eq!(chunks[1].range, ByteRange { offset: 0, length: 4 });
}

#[test]
fn shards() {
    let document = sharded(SHARDING);
    let (first, second) = (shard(&[u64::MAX, u64::MAX, 0, 2]), shard(&[1, 2, 3, 1]));
    let folder =
        Folder::new("shards", &[("zarr.json", document.as_bytes()), ("c/0", &first), ("c/1", &second)]);
    let tree = parse_directory(&folder.0, &Allowed::default()).unwrap();
    let chunks = tree.arrays[0].segments.as_ref().unwrap()[0].manifest.stored();
    let found: Vec<_> =
        chunks.map(|chunk| (chunk.index, file(&tree, chunk.file), chunk.range.offset)).collect();
    assert_eq!(found, [(1, "c/0", 0), (2, "c/1", 1), (3, "c/1", 3)]);
}

#[test]
fn damaged_shards_are_named() {
    let mut flipped = shard(&[0, 2, 2, 2]);
    flipped[5] ^= 1;
    for (number, (bytes, word)) in [(flipped, "checksum"), (vec![0; 9], "truncated")].iter().enumerate() {
        let document = sharded(SHARDING);
        let name = format!("damaged_{number}");
        let folder = Folder::new(&name, &[("zarr.json", document.as_bytes()), ("c/0", bytes)]);
        let tree = parse_directory(&folder.0, &Allowed::default()).unwrap();
        let reason = tree.arrays[0].segments.as_ref().unwrap_err();
        assert!(reason.to_string().contains(word), "{reason}");
    }
}

#[test]
fn what_is_unknown_is_named() {
    let unknown = sharded(r#""bytes", {"name": "mystery"}"#);
    let around = sharded(&format!("{SHARDING}, \"crc32c\""));
    let files: [(&str, &[u8]); 4] = [
        ("zarr.json", br#"{"zarr_format": 3, "node_type": "group"}"#),
        ("a/zarr.json", unknown.as_bytes()),
        ("b/zarr.json", around.as_bytes()),
        ("c/zarr.json", b"{]"),
    ];
    let folder = Folder::new("unknown", &files);
    let tree = parse_directory(&folder.0, &Allowed::default()).unwrap();
    let codecs = &tree.arrays[0].segments.as_ref().unwrap()[0].codecs;
    assert_eq!(codecs, &[Codec::Unknown { number: None, name: "mystery".into() }]);
    assert!(tree.arrays[1].segments.as_ref().unwrap_err().to_string().contains("around"));
    assert!(matches!(tree.groups[0].links[2].1, Link::Unreadable(Unreadable::Damaged { .. })));
}

#[test]
fn crc32c_of_rfc_3720() {
    assert_eq!(shards::crc32c(&[0; 32]), 0x8a91_36aa);
    assert_eq!(shards::crc32c(b"123456789"), 0xe306_9283);
}

#[test]
fn consolidated_documents_serve_for_missing_ones() {
    let document = format!(r#"{{"metadata": {{".zgroup": {{}}, "x/.zarray": {OLD}}}}}"#);
    let folder = Folder::new("consolidated", &[(".zmetadata", document.as_bytes()), ("x/1", b"12")]);
    let tree = parse_directory(&folder.0, &Allowed::default()).unwrap();
    assert_eq!(tree.groups[0].links, [("x".to_owned(), Link::Array(0))]);
    let chunks: Vec<_> = tree.arrays[0].segments.as_ref().unwrap()[0].manifest.stored().collect();
    assert_eq!((chunks[0].index, file(&tree, chunks[0].file)), (1, "x/1"));
}

#[test]
fn an_empty_folder_is_no_zarr() {
    let folder = Folder::new("empty", &[("file", b"")]);
    assert!(matches!(parse_directory(&folder.0, &Allowed::default()), Err(Error::UnknownFormat { .. })));
}

#[test]
fn sizes_that_no_folder_has_are_refused_or_small() {
    for (number, (shape, chunks)) in [
        ("[9223372036854775808]", "[1]"),
        ("[18446744073709551615, 2]", "[1, 1]"),
        ("[4611686018427387904]", "[1]"),
        ("[9]", "[9223372036854775807]"),
        ("[4294967296, 4294967296]", "[4294967295, 4294967295]"),
        ("[9]", "[0]"),
        ("[-1]", "[1]"),
    ]
    .into_iter()
    .enumerate()
    {
        let document = OLD.replace("[5]", shape).replace("[2]", chunks);
        let name = format!("sizes_{number}");
        let folder = Folder::new(&name, &[(".zarray", document.as_bytes()), ("0", b"x")]);
        let tree = parse_directory(&folder.0, &Allowed::default()).unwrap();
        let segments = tree.arrays.iter().filter_map(|array| array.segments.as_ref().ok()).flatten();
        let chunk_count: u64 = segments.map(|segment| segment.manifest.chunk_count()).sum();
        assert!(chunk_count <= 1, "{shape} {chunks}");
    }
}

#[cfg(unix)]
#[test]
fn a_folder_may_hold_itself() {
    let folder = Folder::new("cycle", &[("a/.zarray", OLD.as_bytes()), ("a/0", b"x")]);
    std::os::unix::fs::symlink(&folder.0, folder.0.join("a/again")).unwrap();
    std::os::unix::fs::symlink("b", folder.0.join("b")).unwrap();
    let tree = parse_directory(&folder.0, &Allowed::default()).unwrap();
    assert!((1..=2).contains(&tree.arrays.len()), "{:?}", tree.groups);
}

#[test]
fn shards_that_claim_many_chunks_are_named() {
    for length in ["4194304", "1099511627776", "4611686018427387904"] {
        let document = sharded(&SHARDING.replace("[2]", "[1]")).replace("[4]", &format!("[{length}]"));
        let name = format!("shards_of_{length}");
        let folder =
            Folder::new(&name, &[("zarr.json", document.as_bytes()), ("c/0", &shard(&[0, 2, 2, 2]))]);
        let tree = parse_directory(&folder.0, &Allowed::default()).unwrap();
        let reason = tree.arrays[0].segments.as_ref().unwrap_err().to_string();
        assert!(reason.contains("truncated") || reason.contains("more than"), "{reason}");
    }
}
