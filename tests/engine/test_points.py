"""Points: any elements in any order, equal to NumPy's pointwise indexing, each chunk decoded once."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyperslab
from draws import few
from hyperslab import Points
from hyperslab.archive import Array
from hyperslab.errors import DamagedFile

SHAPE = (23, 17, 11)
LAYOUTS = {
    "plain": {},
    "deflated": {"chunks": (5, 4, 3), "compression": "gzip", "shuffle": True},
    "chunked": {"chunks": (5, 4, 3)},
    "checked": {"chunks": (23, 17, 1), "fletcher32": True},
}


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Path, np.ndarray]:
    path = tmp_path_factory.mktemp("points") / "a.h5"
    values = np.arange(np.prod(SHAPE), dtype="i4").reshape(SHAPE)
    with h5py.File(path, "w") as file:
        for name, layout in LAYOUTS.items():
            file.create_dataset(name, data=values, **layout)
        file["text"] = [f"number {place}" for place in range(100)]
        sparse = file.create_dataset("sparse", (100, 100), "f4", chunks=(10, 10), fillvalue=3, compression="gzip")
        sparse[:10, :10] = 1
    return path, values


def array_of(path: Path, name: str) -> Array:
    found = hyperslab.open(path)[name]
    assert isinstance(found, Array)
    return found


@pytest.mark.parametrize("name", LAYOUTS)
@settings(max_examples=few(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_points_are_numpys(made, name, data) -> None:
    path, values = made
    point = st.tuples(*(st.integers(0, length - 1) for length in SHAPE))
    listed = data.draw(st.lists(point, max_size=200))
    coordinates = np.array(listed, np.int64).reshape(-1, 3)
    points = Points(coordinates)
    array = array_of(path, name)
    expected = values[tuple(coordinates.T)]
    for threads in (1, 3):
        read = array.read(points, threads=threads)
        assert (read.shape, read.dtype) == ((len(listed),), values.dtype)
        np.testing.assert_array_equal(read, expected)
    out = np.empty(len(listed), "i8")
    assert array.read(points, out=out) is out
    np.testing.assert_array_equal(out, expected)
    plan = array.plan(points)
    assert (plan.shape, plan.element_count, plan.output_nbytes) == ((len(listed),), len(listed), 4 * len(listed))
    if array.chunks:
        assert plan.chunk_count == len(np.unique(coordinates // np.array(array.chunks), axis=0))
    if array.codecs:
        assert plan.decoded_nbytes == plan.chunk_count * int(np.prod(array.chunks)) * 4
        assert plan.request_count <= plan.chunk_count


def test_many_points_of_many_chunks(made) -> None:
    path, values = made
    coordinates = np.random.default_rng(1).integers(0, SHAPE, (50_000, 3))
    expected = values[tuple(coordinates.T)]
    for name in LAYOUTS:
        np.testing.assert_array_equal(array_of(path, name).read(Points(coordinates)), expected)


def test_missing_chunks_and_text(made) -> None:
    path, _ = made
    sparse = array_of(path, "sparse")
    points = Points([[5, 5], [50, 50], [9, 10], [0, 0], [5, 5]])
    assert sparse.read(points).tolist() == [1, 3, 3, 1, 1]
    assert (sparse.plan(points).chunk_count, sparse.plan(points).missing_chunk_count) == (3, 2)
    assert array_of(path, "text")[Points([[7], [99], [7]])].tolist() == [b"number 7", b"number 99", b"number 7"] or (
        array_of(path, "text")[Points([[7], [99], [7]])].tolist() == ["number 7", "number 99", "number 7"]
    )


def test_points_that_do_not_fit(made) -> None:
    path, _ = made
    array = array_of(path, "deflated")
    with pytest.raises(IndexError, match="23"):
        array.read(Points([[23, 0, 0]]))
    with pytest.raises(IndexError):
        array.plan(Points([[23, 0, 0]]))
    with pytest.raises(ValueError, match="axes"):
        array.read(Points([[1, 1]]))
    with pytest.raises(ValueError, match="shape"):
        array.read(Points([[1, 1, 1]]), out=np.empty(2, "i4"))


def test_damage_is_named(tmp_path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        made = file.create_dataset("a", data=np.arange(1000), chunks=(100,), fletcher32=True)
        place = made.id.get_chunk_info(3).byte_offset
    with path.open("r+b") as raw:
        raw.seek(place)
        raw.write(b"damage")
    array = array_of(path, "a")
    assert array.read(Points([[299], [400]])).tolist() == [299, 400]
    with pytest.raises(DamagedFile, match=rf"chunk \[3\] at offset {place}"):
        array.read(Points([[1], [301]]))


def test_what_h5py_reads_for_us(made, monkeypatch) -> None:
    path, values = made
    array = array_of(path, "deflated")
    monkeypatch.setitem(array.__dict__, "via", "h5py")
    points = np.array([[3, 4, 5], [22, 16, 10], [3, 4, 5]])
    assert array.read(Points(points)).tolist() == values[tuple(points.T)].tolist()
