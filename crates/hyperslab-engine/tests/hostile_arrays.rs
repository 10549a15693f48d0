//! Arrays whose chunks lie about their location and size: the result must be an error, or what the bytes say.
#![allow(missing_docs, clippy::unwrap_used)] // a test's name says what it does; it fails by panicking

use std::path::Path;
use std::sync::Arc;

use hyperslab_core::{
    Array, ByteOrder, ByteRange, ChunkGrid, Codec, Element, Fill, Manifest, Notes, Orthogonal, ReadPlan,
    Role, Segment, SegmentAxis, StoredChunk, VirtualMappings,
};
use hyperslab_engine::{ChunkCache, Error, Execution, FileStore, ReadError, Stores, execute};

/// Bytes of `length`, in chunks at these offsets. Elements have one byte, so shuffling changes nothing.
fn array(length: u64, chunk: u64, offsets: &[u64], is_plain: bool) -> Array {
    let element = Element::integer(1, false, ByteOrder::Little);
    let range = |offset| ByteRange { offset, length: chunk.min(10) };
    let chunks = (0..).zip(offsets);
    let chunks =
        chunks.map(|(index, &offset)| StoredChunk { index, file: 0, range: range(offset), filter_mask: 0 });
    let segment = Segment {
        axes: SegmentAxis::of_box(&[0], &[length], &[0]).unwrap(),
        grid: ChunkGrid::new(vec![length], vec![chunk]).unwrap(),
        codecs: if is_plain { vec![] } else { vec![Codec::Shuffle { element_nbytes: 1 }] },
        element: element.clone(),
        plain_edge_chunks: false,
        manifest: Manifest::of_chunks(chunks.collect()).into(),
        fill: Fill::Zero,
    };
    Array {
        shape: Some(vec![length]),
        max_shape: vec![None],
        element,
        fill: Fill::Zero,
        segments: Ok(vec![segment]),
        is_chunked: true,
        notes: Notes::default(),
        role: Role::default(),
        virtual_mappings: VirtualMappings::NONE,
        dimensions: None,
        attributes: Vec::new(),
    }
}

/// All of an array whose chunks are in these bytes.
fn read(bytes: &[u8], array: &Array) -> Result<Vec<u8>, ReadError> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("raw");
    std::fs::write(&path, bytes).unwrap();
    let plan = ReadPlan::new(array, &Orthogonal::all(array.shape.as_ref().unwrap()).unwrap()).unwrap();
    let stores = Stores::new(Some(Arc::new(FileStore::open(&path)?)), Path::new(""), Vec::new());
    let mut out = vec![0xaa; usize::try_from(plan.element_count()).unwrap()];
    let cache = &ChunkCache::new(0);
    let (array_name, array_number, thread_count) = ("made", 0, 2);
    let execution = Execution {
        plan: &plan,
        array,
        array_name,
        array_number,
        stores: &stores,
        cache,
        thread_count,
        is_reused: false,
        values: None,
    };
    execute(&execution, &mut out, &mut || false).map(|()| out)
}

#[test]
fn chunks_may_share_bytes() {
    let bytes: Vec<u8> = (0..40).collect();
    for offsets in [[0, 1, 2, 3], [7, 7, 7, 7], [30, 0, 29, 1], [5, 14, 6, 13]] {
        let expected: Vec<u8> = offsets.iter().flat_map(|&offset| offset..offset + 10).collect();
        for is_plain in [true, false] {
            let found = read(&bytes, &array(40, 10, &offsets.map(u64::from), is_plain));
            assert_eq!(found.as_ref(), Ok(&expected), "{offsets:?}");
        }
    }
}

#[test]
fn chunks_beyond_the_file_are_named() {
    for offset in [31, 40, 1 << 63, u64::MAX - 10, u64::MAX] {
        for is_plain in [true, false] {
            let error = read(&[1; 40], &array(20, 10, &[0, offset], is_plain)).unwrap_err();
            let is_named = matches!(
                &error,
                ReadError::Chunk { chunk_index, problem: Error::PastEnd { file_nbytes: 40, .. }, .. }
                    if *chunk_index == [1]
            );
            assert!(is_named, "{error}");
        }
    }
}

#[test]
fn chunks_larger_than_memory_are_refused() {
    let too_large = |error: &ReadError| match error {
        ReadError::Chunk { problem, .. } => {
            matches!(problem, Error::OutOfMemory { .. } | Error::DecodedSize { .. })
        }
        _ => false,
    };
    for chunk in [1 << 40, 1 << 61] {
        for is_plain in [true, false] {
            let error = read(&[1; 40], &array(20, chunk, &[0], is_plain)).unwrap_err();
            assert!(too_large(&error), "{error}");
        }
    }
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_rather_than_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let made = std::process::Command::new("mkfifo").arg(folder.path().join("pipe")).status();
    assert!(made.is_ok_and(|status| status.success()));
    let stores = Stores::new(None, folder.path(), vec!["pipe".to_owned(), "/dev/zero".to_owned()]);
    for number in [1, 2] {
        let error = stores.get(number).err().unwrap();
        assert!(error.to_string().contains("not a regular file"), "{error}");
    }
}
