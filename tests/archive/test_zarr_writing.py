"""What our codec pipeline writes is what zarr-python would have written, and what zarrs and TensorStore read."""

from __future__ import annotations

import errno
import json
import resource
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path

import numcodecs
import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.storage import LocalStore, MemoryStore
from zarr_arrays import arrays, keys, selected

from draws import few
from hyperslab import _core
from hyperslab.archive.zarr import writing
from hyperslab.archive.zarr.encoding import document_of, steps_of
from hyperslab.errors import DamagedFile

OURS, THEIRS = "hyperslab.archive.zarr_pipeline.Pipeline", "zarr.core.codec_pipeline.BatchedCodecPipeline"
ZARRS = "zarrs.ZarrsCodecPipeline"


def opened(place, pipeline, mode="r"):
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        return zarr.open_array(place, mode=mode)


@pytest.fixture
def written(monkeypatch):
    """Whether each write so far was ours."""
    answers: list[bool] = []
    write = writing.Writer.write

    async def watched(self, *arguments):
        answers.append(await write(self, *arguments))
        return answers[-1]

    monkeypatch.setattr(writing.Writer, "write", watched)
    return answers


def assigned(array, kind, key, value):
    """The class of the error, if any."""
    try:
        if kind == "basic":
            array[key] = value
        else:
            getattr(array, kind)[key] = value
    except (IndexError, ValueError) as error:
        return type(error)
    return None


def chunk_files(folder):
    return {path.relative_to(folder): path for path in Path(folder).rglob("*") if path.is_file()}


@pytest.mark.slow
@settings(max_examples=few(200), deadline=None)
@given(data=st.data())
def test_every_write_leaves_what_zarr_python_leaves(tmp_path_factory, data):
    said = {name: value for name, value in data.draw(arrays()).items() if value is not None}
    said["config"] = {"write_empty_chunks": data.draw(st.booleans())}
    folders = [tmp_path_factory.mktemp(name) for name in ("ours", "theirs")]
    held: dict[str, object] = {}
    plain = {name: value for name, value in said.items() if name != "shards"}  # zarr-python 3.1 fails at some shards
    plain["chunks"] = said.get("shards", said["chunks"])
    targets = []
    ours_in_memory, theirs_plain = (MemoryStore(held), OURS, said), (MemoryStore(), THEIRS, plain)
    asked = [(folders[0], OURS, said), ours_in_memory, theirs_plain, (folders[1], THEIRS, said)]
    for place, pipeline, made in asked:
        with zarr.config.set({"codec_pipeline.path": pipeline}), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            targets.append(zarr.create_array(place, **made))
    did_theirs_fail = False
    for step in range(4):
        kind, key = data.draw(keys(said["shape"])) if step else ("basic", ...)
        shape = np.shape(selected(targets[2], kind, key))
        values = np.random.default_rng(step).integers(0, data.draw(st.sampled_from([1, 2, 100])), shape)
        values = values.astype(said["dtype"])
        values = values if data.draw(st.booleans()) else np.full((), step).astype(said["dtype"])[()]
        ends = [assigned(target, kind, key, values) for target in targets]
        assert ends[0] == ends[1] == ends[2]
        did_theirs_fail |= ends[3] != ends[2]
        expected = targets[2][...]
        for place in (folders[0], targets[1].store):
            np.testing.assert_array_equal(opened(place, THEIRS)[...], expected)
    np.testing.assert_array_equal(opened(folders[0], OURS)[...], expected)
    ours, theirs = chunk_files(folders[0]), chunk_files(folders[1])
    assert set(ours) == {Path(name) for name in held}
    if not did_theirs_fail:
        assert set(ours) == set(theirs)
        if said.get("compressors") is None and said.get("shards") is None:
            assert all(path.read_bytes() == theirs[name].read_bytes() for name, path in ours.items())
    for folder in folders:
        shutil.rmtree(folder)


CODECS = {
    "zstd": zarr.codecs.ZstdCodec(level=0),
    "blosc": zarr.codecs.BloscCodec(cname="lz4", shuffle="bitshuffle", typesize=4),
    "gzip": [zarr.codecs.GzipCodec(level=1), zarr.codecs.Crc32cCodec()],
    "none": None,
}


@pytest.mark.parametrize("shards", [None, (8, 18)])
@pytest.mark.parametrize("codec", CODECS)
def test_other_implementations_read_it(tmp_path, written, codec, shards):
    tensorstore = pytest.importorskip("tensorstore")
    pytest.importorskip("zarrs")
    expected = np.full((21, 30), 7, "f4")
    made = zarr.create_array(
        tmp_path / "a",
        shape=(21, 30),
        chunks=(4, 6),
        shards=shards,
        dtype="f4",
        compressors=CODECS[codec],
        fill_value=7,
    )
    made = opened(tmp_path / "a", OURS, "r+")
    for key, value in [
        ((slice(2, 19), slice(3, 29)), np.arange(17 * 26, dtype="f4").reshape(17, 26)),
        ((slice(4, 8), slice(6, 12)), 7),
        ((slice(None, None, 3), slice(1, None, 4)), -1),
        ((5, slice(2, 7)), np.arange(5)),
        ((20, 29), 3),
    ]:
        made[key] = expected[key] = value
    assert written == [True] * 5
    for pipeline in (THEIRS, ZARRS, OURS):
        np.testing.assert_array_equal(opened(tmp_path / "a", pipeline)[...], expected)
    spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": str(tmp_path / "a")}}
    np.testing.assert_array_equal(tensorstore.open(spec).result().read().result(), expected)


def test_what_is_ours():
    """One rule, from the metadata: everything that it does not know goes to zarr-python."""

    def of(**said):
        array = zarr.create_array(MemoryStore(), shape=(4, 4), dtype="f4", **said)
        prototype = zarr.core.buffer.default_buffer_prototype()
        document = next(iter(array.metadata.to_buffer_dict(prototype).values())).to_bytes()
        return steps_of(document, 4)

    for codec in CODECS.values():
        assert of(compressors=codec) is not None
        assert of(compressors=codec, chunks=(2, 2), shards=(4, 4)) is not None
    old = {"zarr_format": 2}
    assert of(**old, compressors=numcodecs.Zlib(1), filters=[numcodecs.Shuffle(4)]) == [
        ("shuffle", [4]),
        ("deflate", [1]),
    ]
    assert of(**old, compressors=numcodecs.Blosc("zstd", shuffle=2)) == [("blosc", [5, 5, 2, 4])]
    for said in (
        {"compressors": zarr.codecs.ZstdCodec(checksum=True)},  # our frames have none
        {"compressors": zarr.codecs.BloscCodec(cname="blosclz", typesize=4)},
        {"compressors": zarr.codecs.BloscCodec(cname="lz4", typesize=4, blocksize=512)},
        {"filters": zarr.codecs.TransposeCodec(order=(1, 0))},
        {**old, "order": "F"},
        {**old, "compressors": numcodecs.LZ4(3)},
        {**old, "compressors": numcodecs.Blosc("lz4", shuffle=-1)},
        {**old, "compressors": numcodecs.CRC32()},
    ):
        assert of(**said) is None, said


def test_metadata_that_lies_write_nothing_of_ours(tmp_path, written):
    """Chunks that no memory holds, and shards that subchunks do not divide, are refused before anything is written."""
    zarr.create_array(tmp_path / "a", shape=(4,), chunks=(2,), shards=(4,), dtype="u1")
    document = json.loads((tmp_path / "a" / "zarr.json").read_text())
    for chunk, shard, is_ours in [(2, 4, True), (1 << 62, 1 << 62, False), (3, 4, False), (1, 1 << 40, False)]:
        document["chunk_grid"]["configuration"]["chunk_shape"] = [shard]
        document["codecs"][0]["configuration"]["chunk_shape"] = [chunk]
        array = _core.ZarrArray(json.dumps(document).encode(), "", None)
        assert array.is_writable == is_ours, (chunk, shard)


@pytest.mark.parametrize("shards", [None, (8,)])
def test_damage_to_what_is_kept_is_named(tmp_path, shards):
    array = zarr.create_array(tmp_path / "a", shape=(8,), chunks=(4,), shards=shards, dtype="i4", fill_value=0)
    array[...] = np.arange(1, 9)
    path = tmp_path / "a" / "c" / "0"
    stored = path.read_bytes()
    ours = opened(tmp_path / "a", OURS, "r+")
    for damaged in (stored[:9], b"", stored[:-1] + bytes([stored[-1] ^ 1]) if shards else b"\0" * len(stored)):
        path.write_bytes(damaged)
        with pytest.raises(DamagedFile, match="c/0"):
            ours[1:3] = 5
        assert path.read_bytes() == damaged
    ours[...] = 3  # nothing of it is kept
    assert (opened(tmp_path / "a", THEIRS)[...] == 3).all()


def test_writers_of_different_chunks_do_not_disturb_each_other(tmp_path):
    zarr.create_array(tmp_path / "a", shape=(64, 64), chunks=(4, 4), shards=(16, 16), dtype="i4")
    array = opened(tmp_path / "a", OURS, "r+")

    def write(row):
        for value in range(1, 6):
            array[row * 16 : row * 16 + 10] = value * 10 + row

    threads = [threading.Thread(target=write, args=(row,)) for row in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    read = opened(tmp_path / "a", THEIRS)[...]
    assert [sorted(set(read[row * 16 : row * 16 + 16].ravel())) for row in range(4)] == [[0, 50 + r] for r in range(4)]
    assert not list(tmp_path.rglob("*.partial"))


def test_errors_are_zarr_pythons_and_leave_whole_chunks(tmp_path):
    values = np.random.default_rng(0).integers(0, 255, 1 << 16).astype("u1")
    zarr.create_array(tmp_path / "a", shape=1 << 16, chunks=1 << 14, dtype="u1", compressors=None)
    array = opened(tmp_path / "a", OURS, "r+")
    array[:10] = 1
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = (tmp_path / "a" / "c" / "0").read_bytes()
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 13, limits[1]))  # Python ignores the signal, so it is an error
    try:
        with pytest.raises(OSError, match="File too large") as raised:
            array[...] = values
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert raised.value.errno == errno.EFBIG
    assert (tmp_path / "a" / "c" / "0").read_bytes() == before
    assert not list(tmp_path.rglob("*.partial"))
    shutil.rmtree(tmp_path / "a" / "c")
    (tmp_path / "a" / "c").write_bytes(b"")
    with pytest.raises((FileExistsError, NotADirectoryError)):
        array[...] = values
    with pytest.raises(ValueError, match="read-only"):
        opened(LocalStore(tmp_path / "a", read_only=True), OURS)[:3] = 1


def test_a_full_disk_leaves_each_chunk_as_it_was_or_whole(small_disk):
    zarr.create_array(small_disk / "a", shape=1 << 22, chunks=1 << 16, dtype="u1", compressors=None)
    array = opened(small_disk / "a", OURS, "r+")
    array[: 1 << 18] = 1
    values = np.random.default_rng(0).integers(2, 255, 1 << 22).astype("u1")
    with pytest.raises(OSError, match="No space") as raised:
        array[...] = values
    assert raised.value.errno == errno.ENOSPC
    assert not list(small_disk.rglob("*.partial"))
    read = opened(small_disk / "a", THEIRS)[...].reshape(-1, 1 << 16)
    is_new = (read == values.reshape(read.shape)).all(axis=1)
    assert set(np.unique(read[~is_new])) <= {0, 1}
    assert is_new.any()


WRITES_ON_AND_ON = f"""
import sys, numpy as np, zarr
zarr.config.set({{"codec_pipeline.path": "{OURS}"}})
array = zarr.open_array(sys.argv[1], mode="r+")
for value in range(1, 100_000):
    array[...] = np.full(array.shape, value)
    print(value, flush=True)
"""


def test_a_killed_writer_leaves_whole_chunks_and_shards(tmp_path):
    for name, shards in (("chunks", None), ("shards", (1 << 12,))):
        place = tmp_path / name
        zarr.create_array(place, shape=1 << 16, chunks=(1 << 10,), shards=shards, dtype="i8")
        with subprocess.Popen(
            [sys.executable, "-c", WRITES_ON_AND_ON, place], stdout=subprocess.PIPE, text=True
        ) as one:
            said = [int(one.stdout.readline()) for _ in range(5)]
            one.kill()
            said += [int(line) for line in one.stdout]
        read = opened(place, THEIRS)[...].reshape(-1, (shards or (1 << 10,))[0])
        assert (read == read[:, :1]).all(), "each key has the values of one write"
        assert set(np.unique(read)) <= {said[-1], said[-1] + 1}


@pytest.mark.parametrize("length", [2**40, 2**50, 9 * 10**18])
def test_a_slab_that_is_longer_than_its_values_makes_nothing(tmp_path: Path, length: int) -> None:
    """Before anything was compared, memory was taken for each chunk: one call ended the process."""
    array = zarr.create_array(tmp_path, shape=(length,), chunks=(1,), dtype="u1", compressors=None)
    slabs = _core.ZarrArray(document_of(array.metadata), str(tmp_path), b"\0")
    with pytest.raises(MemoryError, match="the values do not have that shape"):
        slabs.write_slab([0], (np.zeros(8, "u1"), (length,)), ([], False, 1))


@pytest.mark.parametrize("in_memory", [True, False])
@pytest.mark.parametrize("chunk", [1, 2, 4, None])
def test_what_lies_outside_after_shrinking_comes_back_as_with_zarr_python(tmp_path, written, chunk, in_memory):
    seen = []
    for pipeline in (OURS, THEIRS):
        store = MemoryStore() if in_memory else LocalStore(tmp_path / pipeline)
        with zarr.config.set({"codec_pipeline.path": pipeline}):
            layout = {"chunks": (4, 2)} if chunk is None else {"chunks": (chunk, 1), "shards": (4, 2)}
            array = zarr.create_array(store, shape=(6, 3), dtype="i2", fill_value=-1, **layout)
            array[:] = np.arange(18).reshape(6, 3)
            for number, shape in enumerate([(2, 3), (7, 2), (5, 1), (3, 3)]):
                array.resize(shape)
                array[:] = 100 + number
                array.resize((8, 4))
                seen.append(array[:])
    for ours, theirs in zip(seen[:4], seen[4:], strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert written == [True] * 5


def test_an_order_of_the_chunks_in_a_shard_that_was_asked_for_is_kept(written):
    orders = getattr(zarr.codecs.sharding, "SUBCHUNK_WRITE_ORDER", ())
    for order in orders:
        codec = zarr.codecs.ShardingCodec(chunk_shape=(1, 1), subchunk_write_order=order)
        with zarr.config.set({"codec_pipeline.path": OURS}):
            array = zarr.create_array(
                MemoryStore(), shape=(4, 4), chunks=(4, 4), dtype="i2", serializer=codec, compressors=None
            )
            array[:] = 1 + np.arange(16).reshape(4, 4)
        np.testing.assert_array_equal(array[:], 1 + np.arange(16).reshape(4, 4))
    assert len(written) == len([one for one in orders if one != "colexicographic"])


def test_a_grid_that_zarr_pythons_configuration_no_longer_allows_is_left_to_it():
    if "array.rectilinear_chunks" not in zarr.config:
        pytest.skip("this zarr-python has no such grids")
    with zarr.config.set({"array.rectilinear_chunks": True, "codec_pipeline.path": OURS}):
        array = zarr.create_array(MemoryStore(), shape=(9,), chunks=((2, 3, 4),), dtype="i2")
    array[:] = np.arange(9)
    np.testing.assert_array_equal(array[[1, 5, 8]], [1, 5, 8])
