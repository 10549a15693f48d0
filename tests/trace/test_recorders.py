"""What h5py, zarr and our engine did equals what the trace says: the elements of each access, in order."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
from hyperslab.trace import selection

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
SHAPE = (12, 9)
FEW = settings(max_examples=few(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


def masks(trace: hs.Trace) -> list[np.ndarray]:
    return [selection.mask(*trace.selection(k), trace[k].array.shape) for k in range(len(trace))]


def expected(key: Any, shape: tuple[int, ...] = SHAPE) -> np.ndarray:
    """The elements that NumPy selects."""
    found = np.zeros(shape, bool)
    found[key] = True
    return found


@st.composite
def plain_keys(draw: st.DrawFn) -> tuple[Any, ...]:
    axes: list[Any] = []
    for length in SHAPE:
        start = draw(st.integers(0, length - 1))
        stop = draw(st.integers(0, length))
        step = draw(st.integers(1, 4))
        axes.append(draw(st.sampled_from([start - length, start, slice(start, stop, step), slice(None)])))
    shorter = draw(st.integers(1, len(axes)))
    return draw(st.sampled_from([tuple(axes), tuple(axes[:shorter]), (..., axes[-1]), (axes[0], ...)]))


def listed(length: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(0, length - 1), min_size=1, max_size=length, unique=True).map(sorted)


@pytest.fixture
def stored(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(108, dtype="i4").reshape(SHAPE), chunks=(4, 4), compression="gzip")
        file.create_dataset("table", data=np.zeros(5, [("a", "i4"), ("b", "f8")]))
        file.create_dataset("one", data=3.0)
    return tmp_path


@FEW
@given(keys=st.lists(plain_keys(), min_size=1, max_size=5), column=listed(9), seed=st.integers(0, 99))
def test_h5py_reads(stored: Path, keys: list[Any], column: list[int], seed: int) -> None:
    mask = np.random.default_rng(seed).random(SHAPE) < 0.2
    asked = [*keys, np.s_[2:7, column], mask]
    with h5py.File(stored / "a.h5") as file, hs.record() as trace:
        for key in asked:
            file["x"][key]
    assert trace.notes == []
    assert len(trace) == len(asked)
    for found, key in zip(masks(trace), asked, strict=True):
        np.testing.assert_array_equal(found, expected(key))
    assert [one.nbytes for one in trace] == [4 * int(one.sum()) for one in masks(trace)]


@FEW
@given(keys=st.lists(plain_keys(), min_size=1, max_size=5))
def test_h5py_writes(stored: Path, keys: list[Any]) -> None:
    with h5py.File(stored / "w.h5", "w") as file, hs.record() as trace:
        file.create_dataset("new", data=np.ones(SHAPE))
        for key in keys:
            file["new"][key] = 2
    assert [one.operation for one in trace] == ["write"] * (len(keys) + 1)
    for found, key in zip(masks(trace), [..., *keys], strict=True):
        np.testing.assert_array_equal(found, expected(key))


@FEW
@given(keys=st.lists(plain_keys(), min_size=1, max_size=4), rows=listed(12), columns=listed(9))
def test_zarr(stored: Path, keys: list[Any], rows: list[int], columns: list[int]) -> None:
    array = zarr.create_array(stored / "a.zarr", shape=SHAPE, chunks=(5, 2), dtype="i2", overwrite=True)
    points = (rows[: len(columns)], columns[: len(rows)])
    with hs.record() as trace:
        array[...] = 1
        for key in keys:
            array[key]
        array.oindex[rows, columns]
        array.vindex[points]
    assert trace.notes == []
    asked = [..., *keys, np.ix_(rows, columns), points]
    assert [one.operation for one in trace] == ["write"] + ["read"] * (len(asked) - 1)
    for found, key in zip(masks(trace), asked, strict=True):
        np.testing.assert_array_equal(found, expected(key))


@FEW
@given(keys=st.lists(plain_keys(), min_size=1, max_size=4), rows=listed(12), columns=listed(9))
def test_our_engine(stored: Path, keys: list[Any], rows: list[int], columns: list[int]) -> None:
    array = hs.open(stored / "a.h5")["x"]
    slab = hs.Hyperslab([1, 0], [5, 3], [2, 2], [2, 2])
    with hs.record() as trace:
        for key in keys:
            array[key]
        array[rows, columns]
        array.read(slab)
        array.read(hs.Points([[3, 4], [1, 2]]))
    asked = [*keys, np.ix_(rows, columns), np.ix_([1, 2, 6, 7], [0, 1, 3, 4]), ([3, 1], [4, 2])]
    for found, key in zip(masks(trace), asked, strict=True):
        np.testing.assert_array_equal(found, expected(key))


def test_facts_of_an_array(stored: Path) -> None:
    with h5py.File(stored / "a.h5", rdcc_nbytes=12345, rdcc_nslots=11, rdcc_w0=0.5) as file, hs.record() as trace:
        file["x"].astype("f8")[3]
    (access,) = trace
    array = access.array
    assert (array.library, array.file, array.array) == ("h5py", str(stored / "a.h5"), "/x")
    assert (array.shape, array.chunks, array.dtype, array.filters) == (SHAPE, (4, 4), "<i4", ("deflate",))
    assert (array.cache_nbytes, array.cache_slots, array.cache_w0) == (12345, 11, 0.5)
    assert (access.memory_type, access.nbytes, access.has_failed) == ("float64", 36, False)
    assert 0 < access.seconds < 60
    assert {1, 2, 3, 32000} <= set(array.decodes or ())  # deflate, shuffle, Fletcher-32, and h5py's own LZF


def test_unusual_reads_of_h5py(stored: Path) -> None:
    with h5py.File(stored / "a.h5") as file, hs.record() as trace:
        file["table"]["a"]
        file["table"]["b", 2:4]
        file["one"][()]
        np.asarray(file["x"])
        file["x"].read_direct(np.empty((2, 9), "i4"), np.s_[3:5], np.s_[0:2])
        list(file["x"])
    assert [one.nbytes for one in trace] == [60, 24, 8, 432, 72] + [36] * 12
    assert masks(trace)[4].sum(axis=1).tolist() == [0, 0, 0, 9, 9] + [0] * 7


def test_a_read_that_fails_is_marked(stored: Path) -> None:
    with h5py.File(stored / "a.h5", "r+") as file:
        properties = file["x"].id.get_chunk_info(0)
    content = bytearray((stored / "a.h5").read_bytes())
    content[properties.byte_offset : properties.byte_offset + properties.size] = bytes(properties.size)
    (stored / "a.h5").write_bytes(content)
    with h5py.File(stored / "a.h5") as file, hs.record() as trace, pytest.raises(OSError, match="filter"):
        file["x"][0, 0]
    assert [one.has_failed for one in trace] == [True]


def test_nothing_is_recorded_outside_and_everything_is_restored(stored: Path) -> None:
    from h5py._hl.dataset import Dataset

    before = Dataset.__getitem__
    with h5py.File(stored / "a.h5") as file:
        with hs.record() as first:
            file["x"][0]
        file["x"][1]
        with hs.record() as second:
            file["x"][2]
    assert (len(first), len(second)) == (1, 1)
    assert Dataset.__getitem__ is before


def test_wrong_keys_raise_what_they_raise_without_a_recorder(stored: Path) -> None:
    with h5py.File(stored / "a.h5") as file, hs.record() as trace:
        for key, error in (
            (np.s_[99], IndexError),
            (np.s_[::-1], ValueError),
            (np.s_[0, 0, 0], (TypeError, ValueError)),
        ):
            with pytest.raises(error):
                file["x"][key]
    assert len(trace) == 0
