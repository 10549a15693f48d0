//! Hand-made reference files, good, damaged and hostile.

use std::path::Path;

use hyperslab_core::{ByteRange, ChunkState, Manifest, Tree};

use super::{Table, parse_references, parse_tables};
use crate::allowed::Allowed;
use crate::error::Error;
use crate::pages::Memory;

const ARRAY: &str = r#"{"zarr_format": 2, "shape": [8], "chunks": [2], "dtype": "|u1", "compressor": null,
    "filters": null, "order": "C", "fill_value": 9}"#;

fn parsed(json: &str) -> Result<Tree, Error> {
    parse_references(&Memory(json.as_bytes()), Path::new("/no such folder"), &Allowed::default())
}

fn failure(json: &str) -> String {
    parsed(json).unwrap_err().to_string()
}

/// Version 1 with an array `x` and further members.
fn version_1(refs: &str, more: &str) -> String {
    format!(
        r#"{{"version": 1, "refs": {{".zgroup": {{"zarr_format": 2}}, "x/.zarray": {ARRAY}{refs}}}{more}}}"#
    )
}

fn manifest(tree: &Tree) -> &Manifest {
    &tree.arrays[0].segments.as_ref().unwrap()[0].manifest
}

/// File, offset and length of a chunk in a file.
fn location(tree: &Tree, index: u64) -> Option<(&str, u64, u64)> {
    match manifest(tree).state(index) {
        ChunkState::Stored { file, range, .. } => {
            Some((tree.other_files[file as usize - 1].as_str(), range.offset, range.length))
        }
        _ => None,
    }
}

fn inline(tree: &Tree, index: u64) -> Option<&[u8]> {
    match manifest(tree).state(index) {
        ChunkState::Inline(bytes) => Some(bytes),
        _ => None,
    }
}

#[test]
fn version_0_is_the_map_itself() {
    let document = ARRAY.replace('"', "\\\"").replace('\n', "\\n");
    let json = format!(
        r#"{{".zgroup": "{{\"zarr_format\": 2}}", "x/.zarray": "{document}", "x/0": ["file:///a/b.nc", 3, 2],
        "x/1": "hi", "x/2": "base64:AP8=", "x/3": null, "x/4": ["beyond.nc", 0, 2], "x/0.0": ["other.nc"]}}"#
    );
    let tree = parsed(&json).unwrap();
    assert_eq!(location(&tree, 0), Some(("/a/b.nc", 3, 2)));
    assert_eq!(inline(&tree, 1), Some(&b"hi"[..]));
    assert_eq!(inline(&tree, 2), Some(&[0, 255][..]));
    assert_eq!(manifest(&tree).state(3), ChunkState::Missing);
    assert_eq!(manifest(&tree).chunk_count(), 3);
}

#[test]
fn templates_of_version_1() {
    let refs = r#", "x/0": ["{{u}}/a.nc", 1, 2], "x/1": ["s3://{{f(c='text', d=1)}}", 3, 2], "x/1": ["{{u}}b", 4, 2]"#;
    let json = version_1(refs, r#", "templates": {"u": "file://here", "f": "{{c}}-{{d + 1}}"}"#);
    let tree = parsed(&json).unwrap();
    assert_eq!(location(&tree, 0), Some(("here/a.nc", 1, 2)));
    assert_eq!(location(&tree, 1), Some(("hereb", 4, 2)), "of a key twice there, the later counts");
    assert!(tree.other_files.iter().any(|name| name == "s3://text-2"));
}

#[test]
fn keys_are_generated() {
    let generators = r#", "templates": {"u": "day"}, "gen": [{"key": "x/{{2 * j + i}}", "url": "{{u}}_{{i}}.nc",
        "offset": "{{(i + 1) * 1000 - -j // 2 % 7}}", "length": "2",
        "dimensions": {"i": {"stop": 2}, "j": [0, 1]}}]"#;
    let tree = parsed(&version_1("", generators)).unwrap();
    let locations: Vec<_> = (0..4).map(|index| location(&tree, index).unwrap()).collect();
    // -1 // 2 % 7 is -1 % 7, which is 6
    assert_eq!(
        locations,
        [("day_0.nc", 1000, 2), ("day_1.nc", 2000, 2), ("day_0.nc", 994, 2), ("day_1.nc", 1994, 2)]
    );
}

#[test]
fn what_is_beyond_us_or_hostile_is_named() {
    let generator = |member: &str| {
        let entry = r#""key": "x/{{i}}", "url": "u", "dimensions": {"i": {"stop": 3}}"#;
        version_1("", &format!(r#", "gen": [{{{entry}, {member}}}]"#))
    };
    let many = |stop: &str| generator("\"offset\": 0").replace("\"stop\": 3", &format!("\"stop\": {stop}"));
    let deep = format!("{}{}", "(".repeat(100_000), ")".repeat(100_000));
    let cases = [
        (version_1("", "").replace("\"version\": 1", "\"version\": 2"), "version 2"),
        (version_1(r#", "x/0": ["{{v}}", 0, 2]"#, ""), "no value \"v\""),
        (version_1(r#", "x/0": ["{{v|upper}}", 0, 2]"#, r#", "templates": {"v": "u"}"#), "v|upper"),
        (version_1(&format!(r#", "x/0": ["{{{{{deep}}}}}", 0, 2]"#), ""), "not supported"),
        (version_1(r#", "x/0": ["{{1 // 0}}", 0, 2]"#, ""), "no value"),
        (version_1(r#", "x/0": ["u", 0]"#, ""), "without a length"),
        (version_1(r#", "x/0": ["u", 1, 2, 3]"#, ""), "more than a file"),
        (version_1(r#", "x/0": ["u", -1, 2]"#, ""), "x/0"),
        (version_1(r#", "x/0": ["u", 18446744073709551615, 2]"#, ""), "x/0"),
        (version_1(r#", "x/0": [null, 0, 2]"#, ""), "x/0"),
        (version_1(r#", "x/0": "base64:A""#, ""), "base64"),
        (version_1(r#", "x/0": 5"#, ""), "x/0"),
        (generator("\"offset\": 0"), "both or neither"),
        (generator(r#""offset": "{{i}} b", "length": 1"#), "not an offset or length"),
        (many("9000000000000000000"), "more than"),
        (many("3, \"step\": 0"), "step is 0"),
        ("{\"a\":".repeat(100_000), "recursion"),
        (version_1("", "")[..90].to_owned(), "EOF"),
        ("{}".to_owned(), "no zarr.json"),
    ];
    for (json, word) in cases {
        let reason = failure(&json);
        let shown = json.get(..300).unwrap_or(&json);
        assert!(reason.contains(word), "{reason}\n{shown}");
    }
}

#[test]
fn a_template_that_grows_is_stopped() {
    let long = "{{u}}".repeat(30_000);
    let refs = [1, 2].map(|number| format!(r#", "x/{number}": ["{number}{long}", 0, 1]"#)).concat();
    let json = version_1(&refs, &format!(r#", "templates": {{"u": "{}"}}"#, "u".repeat(1000)));
    assert!(failure(&json).contains("more than"));
}

#[test]
fn a_file_far_away_of_unknown_length_concerns_its_array_only() {
    let tree = parsed(&version_1(r#", "x/0": ["https://host/a.nc"]"#, "")).unwrap();
    let reason = tree.arrays[0].segments.as_ref().unwrap_err().to_string();
    assert!(reason.contains("https://host/a.nc"), "{reason}");
}

#[test]
fn chunk_stores_in_consolidated_metadata() {
    for prefix in ["x/", ""] {
        let store = format!(
            r#"{{"{prefix}0": {{"offset": 7, "size": 2}}, "{prefix}2": {{"offset": 9, "size": 2}},
            "source": {{"array_name": "/x", "uri": "file:///data/a.h5"}}}}"#
        );
        let json = format!(
            r#"{{"zarr_consolidated_format": 1, "metadata": {{".zgroup": {{"zarr_format": 2}},
            "x/.zarray": {ARRAY}, "x/.zchunkstore": {store}}}}}"#
        );
        let tree = parsed(&json).unwrap();
        assert_eq!((location(&tree, 0), location(&tree, 1)), (Some(("/data/a.h5", 7, 2)), None));
        assert_eq!(location(&tree, 2), Some(("/data/a.h5", 9, 2)));
        let without = failure(&json.replace("\"uri\"", "\"url\""));
        assert!(without.contains("no source"), "{without}");
        let damaged = failure(&json.replace("\"size\"", "\"length\""));
        assert!(damaged.contains("no offset or size"), "{damaged}");
    }
}

#[test]
fn tables_of_chunks() {
    let documents = [("x/.zarray".to_owned(), ARRAY.as_bytes().to_vec())];
    let inline = || [(2, vec![1, 2]), (40, vec![3])].into();
    let files = ["a.nc".to_owned(), "file:///b.nc".to_owned()];
    let (numbers, offsets) = ([1, Table::NO_FILE, 0, 0, 0], [5, 0, 0, 7, 8]);
    let table = Table::new(&numbers, &offsets, &[2, 0, 0, 2, 2], inline(), 2).unwrap();
    let tree =
        parse_tables(documents, [("x".to_owned(), table)], &files, Path::new("/"), &Allowed::default());
    let tree = tree.unwrap();
    assert_eq!((location(&tree, 0), location(&tree, 1)), (Some(("/b.nc", 5, 2)), None));
    assert_eq!((inline_of(&tree), location(&tree, 3)), (Some(&[1, 2][..]), Some(("a.nc", 7, 2))));
    assert_eq!(manifest(&tree).chunk_count(), 3, "the fifth is beyond the array");
    assert!(Table::new(&numbers, &offsets, &[2], inline(), 2).is_err());
    assert!(Table::new(&numbers, &offsets, &[2, 0, 0, 2, 2], inline(), 1).is_err());
    assert!(Table::new(&[0], &[u64::MAX], &[1], inline(), 1).is_err());
}

fn inline_of(tree: &Tree) -> Option<&[u8]> {
    inline(tree, 2)
}

#[test]
fn shards_may_be_parts_of_files_or_inline() {
    let index: Vec<u8> = [0_u64, 2, 2, 1].iter().flat_map(|entry| entry.to_le_bytes()).collect();
    let shard = [vec![7; 3], index].concat();
    let path = std::env::temp_dir().join(format!("hyperslab-references-{}", std::process::id()));
    std::fs::write(&path, [&b"before"[..], &shard, b"behind"].concat()).unwrap();
    let document = r#"{"zarr_format": 3, "node_type": "array", "shape": [8], "data_type": "uint8", "fill_value": 0,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [4]}},
        "chunk_key_encoding": {"name": "default"}, "codecs": [{"name": "sharding_indexed", "configuration":
        {"chunk_shape": [2], "codecs": ["bytes"], "index_codecs": ["bytes"]}}]}"#;
    let text = shard.iter().map(|byte| format!("\\u{byte:04x}")).collect::<Vec<_>>().concat();
    let json = format!(
        r#"{{"zarr.json": {document}, "c/0": "{text}", "c/1": ["{}", 6, {}]}}"#,
        path.display(),
        shard.len()
    );
    let tree = parsed(&json);
    std::fs::remove_file(&path).unwrap();
    let tree = tree.unwrap();
    assert_eq!((inline(&tree, 0), inline(&tree, 1)), (Some(&[7, 7][..]), Some(&[7][..])));
    let ranges: Vec<_> = manifest(&tree).stored().map(|chunk| (chunk.index, chunk.range)).collect();
    let range = |offset, length| ByteRange { offset, length };
    assert_eq!(ranges, [(2, range(6, 2)), (3, range(8, 1))]);
}

#[test]
fn damaged_everywhere_it_says_so_soon() {
    let refs = r#", "x/0": ["{{u}}", 0, 2], "x/1": "base64:AP8=""#;
    let generators = r#", "gen": [{"key": "x/{{i + 2}}", "url": "u", "dimensions": {"i": {"stop": 1}}}]"#;
    let json = version_1(refs, &format!(r#", "templates": {{"u": "v"}}{generators}"#));
    assert!(parsed(&json).is_ok());
    for location in 0..json.len() {
        for byte in [b'"', b'{', b'9', b'-', b',', 0xff] {
            let mut changed = json.clone().into_bytes();
            changed[location] = byte;
            let _ = parse_references(&Memory(&changed), Path::new("/no such folder"), &Allowed::default());
            let _ = parse_references(
                &Memory(&changed[..location]),
                Path::new("/no such folder"),
                &Allowed::default(),
            );
        }
    }
}
