"""Our codec pipeline over ordinary Zarr stores returns what zarr-python's own does, also during writes."""

from __future__ import annotations

import itertools
import pickle
import shutil
import threading
from pathlib import Path

import numpy as np
import pytest
import zarr
from hypothesis import given, settings
from hypothesis import strategies as st
from zarr.storage import FsspecStore, LocalStore, MemoryStore, ObjectStore, WrapperStore
from zarr_arrays import arrays, keys, selected

from draws import few
from hyperslab.archive import zarr_pipeline
from hyperslab.errors import DamagedFile, ReadError

OURS, THEIRS = "hyperslab.archive.zarr_pipeline.Pipeline", "zarr.core.codec_pipeline.BatchedCodecPipeline"


def opened(place, pipeline, path=""):
    with zarr.config.set({"codec_pipeline.path": pipeline}):
        return zarr.open_array(place, path=path, mode="r")


@pytest.fixture
def served(monkeypatch):
    """Whether each read so far went through our pipeline."""
    answers: list[bool] = []
    read = zarr_pipeline.Pipeline._read

    def watched(self, *arguments):
        answers.append(read(self, *arguments))
        return answers[-1]

    monkeypatch.setattr(zarr_pipeline.Pipeline, "_read", watched)
    return answers


@pytest.mark.slow
@settings(max_examples=few(150), deadline=None)
@given(data=st.data())
def test_every_selection_equals_zarr_pythons(tmp_path_factory, data):
    said = data.draw(arrays())
    folder = tmp_path_factory.mktemp("any")
    made = zarr.create_array(folder, **{name: value for name, value in said.items() if value is not None})
    values = np.random.default_rng(1).integers(0, 100, said["shape"]).astype(said["dtype"])
    box = tuple(slice(0, data.draw(st.integers(0, length))) for length in said["shape"])  # the rest was never written
    made[box] = values[box]
    ours, theirs = opened(folder, OURS), opened(folder, THEIRS)
    for _ in range(4):
        kind, key = data.draw(keys(said["shape"]))
        expected = found = None
        try:
            expected = selected(theirs, kind, key)
        except (IndexError, ValueError) as error:
            expected = type(error)
        try:
            found = selected(ours, kind, key)
        except (IndexError, ValueError) as error:
            found = type(error)
        if isinstance(expected, type):
            assert found is expected
            continue
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found, expected)
    shutil.rmtree(folder)


@pytest.fixture
def folder(tmp_path) -> Path:
    group = zarr.create_group(tmp_path / "store.zarr")
    array = group.create_array("deep/a", shape=(40, 30), chunks=(7, 8), dtype="f4")
    array[...] = np.arange(1200.0).reshape(40, 30)
    return tmp_path / "store.zarr"


def test_the_stores_of_folders_are_all_served(folder, served):
    from obstore.store import LocalStore as LocalObjects

    expected = np.arange(1200.0).reshape(40, 30)
    for store in (
        LocalStore(folder),
        str(folder),
        ObjectStore(LocalObjects(prefix=folder)),
        FsspecStore.from_url(f"file://{folder}"),
    ):
        array = opened(store, OURS, "deep/a")
        np.testing.assert_array_equal(array[:], expected)
        np.testing.assert_array_equal(array.oindex[[3, 39, 0], 2:9], expected[[3, 39, 0], 2:9])
        first = np.arange(40) < 7  # all of a chunk: zarr 3.2 and newer pass the mask on as it is
        np.testing.assert_array_equal(array.oindex[first, 2:9], expected[first, 2:9])
        np.testing.assert_array_equal(array.vindex[[3, 39, 0], [2, 9, 2]], expected[[3, 39, 0], [2, 9, 2]])
    assert served == [True] * len(served)
    assert len(served) == 16


def test_other_stores_go_zarr_pythons_way(folder, served):
    class Watched(WrapperStore):
        pass

    held = MemoryStore()
    zarr.create_array(held, data=np.arange(10))
    np.testing.assert_array_equal(opened(held, OURS)[2:5], [2, 3, 4])
    np.testing.assert_array_equal(opened(Watched(LocalStore(folder)), OURS, "deep/a")[0, :3], [0, 1, 2])
    assert served == [False, False]


def test_what_we_cannot_read_goes_zarr_pythons_way(tmp_path, served):
    text = zarr.create_array(tmp_path / "t", shape=3, dtype="str", chunks=2)
    text[...] = ["a", "bé", ""]
    records = zarr.create_array(tmp_path / "r", shape=3, dtype=[("x", "<i4"), ("y", "<f8")], zarr_format=2, chunks=2)
    records[...] = np.array([(1, 2.5)] * 3, records.dtype)
    assert list(opened(tmp_path / "t", OURS)[:]) == ["a", "bé", ""]
    assert served == [False]
    assert opened(tmp_path / "r", OURS)[:].tolist() == [(1, 2.5)] * 3
    assert served[-1]


def test_writes_and_what_others_write_are_seen(folder):
    with zarr.config.set({"codec_pipeline.path": OURS}):
        array = zarr.open_array(folder, path="deep/a", mode="r+")
    array[3:20, 5] = -1
    assert (array[3:20, 5] == -1).all()
    other = zarr.open_array(folder, path="deep/a", mode="r+")
    for value in range(5):  # the same length, and within one tick of the clock
        other[...] = value
        assert (array[...] == value).all()
    (folder / "deep" / "a" / "c" / "0" / "0").unlink()
    assert (array[:7, :8] == 0).all()
    assert (array[7:] == 4).all()
    array.resize((50, 64))
    array[45:, 60:] = 9
    assert (array[45:, 60:] == 9).all()
    assert array[40:45].sum() == 0
    array.append(np.ones((2, 64), "f4"))
    assert (array[50:] == 1).all()


def test_shards_that_are_replaced_while_they_are_read(tmp_path):
    made = zarr.create_array(tmp_path / "s", shape=(64, 64), chunks=(8, 8), shards=(64, 64), dtype="i8")
    made[...] = 0
    ours, wrong, is_over, pause = opened(tmp_path / "s", OURS), [], threading.Event(), 0.0

    def write() -> None:
        for value in itertools.count(1):
            made[...] = value % 7 * (1 << (value % 40))  # shards of many lengths
            if is_over.wait(pause):
                return

    writer = threading.Thread(target=write)
    writer.start()
    right = 0
    try:
        for _ in range(60):
            try:
                read = ours[...]
            except ReadError as error:
                if "changed while it was open" not in str(error):
                    raise
                pause += 0.002  # on a loaded machine every attempt may find it replaced again, and the error says so
                continue
            wrong += [np.unique(read)] if (read != read[0, 0]).any() else []
            right += 1
    finally:
        is_over.set()
        writer.join()
    assert not wrong
    assert right


def test_damage_is_named(folder):
    chunk = folder / "deep" / "a" / "c" / "1" / "1"
    chunk.write_bytes(chunk.read_bytes()[:10])
    with pytest.raises(DamagedFile, match=r"c/1/1|chunk \[1, 1\]"):
        opened(folder, OURS, "deep/a")[...]
    chunk.unlink()
    chunk.mkdir()
    assert (opened(folder, OURS, "deep/a")[7:14, 8:16] == 0).all()  # as in zarr-python, a folder is not a chunk


def test_pickles_and_threads(folder):
    array = opened(folder, OURS, "deep/a")
    array[0]
    again = pickle.loads(pickle.dumps(array))
    np.testing.assert_array_equal(again[:], array[:])
    found = []
    threads = [threading.Thread(target=lambda: found.append(array[:].sum())) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(found) == {array[:].sum()}


def test_results_say_which_chunks_are_there(folder, monkeypatch):
    """As zarr-python's pipeline since 3.2: one status for each chunk, or what its own pipeline answers."""
    (folder / "deep" / "a" / "c" / "0" / "0").unlink()
    results = []
    read = zarr_pipeline.Pipeline.read

    async def watched(self, *arguments, **options):
        results.append(await read(self, *arguments, **options))
        return results[-1]

    monkeypatch.setattr(zarr_pipeline.Pipeline, "read", watched)
    if not hasattr(zarr.abc.codec, "GetResult"):
        assert opened(folder, OURS, "deep/a")[:7, :16].shape == (7, 16)
        assert results == [None]
    monkeypatch.setattr(zarr_pipeline, "TELLS_STATUS", True)
    opened(folder, OURS, "deep/a")[:7, :16]
    assert tuple(results[-1]) == ({"status": "missing"}, {"status": "present"})
    theirs = object()

    async def inner(self, *arguments, **options):
        return theirs

    monkeypatch.setattr(zarr.core.codec_pipeline.BatchedCodecPipeline, "read", inner)
    monkeypatch.setattr(zarr_pipeline.Pipeline, "_read", lambda *_: False)
    opened(folder, OURS, "deep/a")[:7, :16]
    assert results[-1] is theirs


@pytest.mark.skipif(not hasattr(zarr.abc.codec, "GetResult"), reason="zarr-python below 3.2 has no such setting")
def test_missing_chunks_that_may_not_be_read(folder):
    (folder / "deep" / "a" / "c" / "0" / "0").unlink()
    with zarr.config.set({"array.read_missing_chunks": False}):
        array = opened(folder, OURS, "deep/a")
        np.testing.assert_array_equal(array[7:], np.arange(1200.0).reshape(40, 30)[7:])
        with pytest.raises(zarr.errors.ChunkNotFoundError):
            array[:]
