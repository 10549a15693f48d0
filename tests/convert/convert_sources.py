"""Sources to convert, and comparisons that h5py judges."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np


def make_rich(path: Path) -> None:
    """An HDF5 file with every kind of object."""
    random = np.random.default_rng(4)
    with h5py.File(path, "w") as file:
        file.attrs["title"] = "rich ✓"
        file.attrs["numbers"] = np.arange(6, dtype=">i2").reshape(2, 3)
        file.attrs["empty"] = h5py.Empty("f4")
        inner = file.create_group("inner", track_order=True)
        for name in ("z", "a", "m"):
            inner.create_group(name)
        maps = random.normal(size=(20, 33, 47)).round(2).astype("f4")
        array = inner.create_dataset(
            "maps", data=maps, chunks=(1, 16, 16), compression="gzip", shuffle=True, fletcher32=True, fillvalue=-9,
            maxshape=(None, 33, 47),
        )  # fmt: skip
        array.attrs["units"] = "K"
        letter = h5py.h5t.C_S1.copy()
        made = h5py.h5a.create(array.id, b"letter", letter, h5py.h5s.create(h5py.h5s.SCALAR))
        made.write(np.array(b"K"), letter)
        for name, length in (("time", 20), ("lat", 33), ("lon", 47)):
            scale = inner.create_dataset(name, data=np.arange(length, dtype="f8"))
            scale.make_scale(name)
        for axis, name in enumerate(("time", "lat", "lon")):
            array.dims[axis].attach_scale(inner[name])
            array.dims[axis].label = name
        sparse = file.create_dataset("sparse", (100, 100), "i4", chunks=(10, 10), fillvalue=7)
        sparse[30:40, 5:25] = 3
        file.create_dataset("contiguous", data=np.arange(50_000, dtype=">f8"))
        file.create_dataset("scalar", data=np.float32(4.5))
        file.create_dataset("null", dtype="f4", shape=None)
        file.create_dataset("nothing", shape=(0, 5), maxshape=(None, 5), chunks=(4, 5), dtype="u1")
        file.create_dataset("texts", data=["one", "zwei", "três"] * 20, dtype=h5py.string_dtype(), chunks=(8,))
        file.create_dataset("bytes", data=np.array([b"ab", b"c", b""] * 50, "S4"), chunks=(16,))
        record = np.dtype([("x", "f4"), ("n", "<i8"), ("name", "S5"), ("v", "i2", (3,))])
        records = np.zeros(70, record)
        records["x"], records["name"], records["v"] = np.arange(70), b"abc", [1, 2, 3]
        file.create_dataset("records", data=records, chunks=(13,), compression="lzf")
        file.create_dataset("flags", data=np.arange(40) % 3 == 0, chunks=(7,))
        colours = h5py.enum_dtype({"red": 1, "blue": 2}, basetype="u1")
        file.create_dataset("colours", data=np.array([1, 2, 1, 1], "u1"), dtype=colours)
        ragged = file.create_dataset("ragged", (3,), h5py.vlen_dtype("i4"))
        ragged[0], ragged[2] = [1, 2], [3]
        file["types/record"] = record
        file.create_dataset("typed", data=records, dtype=file["types/record"], chunks=(20,))
        file["again"] = inner["maps"]
        file["soft"] = h5py.SoftLink("/inner/maps")
        file["dangling"] = h5py.SoftLink("/nowhere")
        file["external"] = h5py.ExternalLink("other.h5", "/x")
        references = file.create_dataset("references", (3,), h5py.ref_dtype)
        references[0], references[1] = inner.ref, inner["maps"].ref
        file.attrs["first"] = inner["maps"].ref
        file.attrs["region"] = inner["maps"].regionref[2:4, 5, 6:9]


def assert_same(left: Path, right: Path, chunks: dict[str, Any] | None = None) -> None:
    """Whether two HDF5 files have the same objects, apart from chunks and filters."""
    with h5py.File(left, "r") as a, h5py.File(right, "r") as b:
        _same_group(a["/"], b["/"], set())
        for path, shape in (chunks or {}).items():
            assert b[path].chunks == shape, path


def _same_group(a: h5py.Group, b: h5py.Group, seen: set[str]) -> None:
    if a.name in seen:
        return
    seen.add(a.name)
    assert list(a) == list(b), a.name
    _same_attributes(a, b)
    for name in a:
        links = a.get(name, getlink=True), b.get(name, getlink=True)
        assert type(links[0]) is type(links[1])
        if isinstance(links[0], h5py.SoftLink):
            assert links[0].path == links[1].path
        elif isinstance(links[0], h5py.ExternalLink):
            assert (links[0].filename, links[0].path) == (links[1].filename, links[1].path)
        elif isinstance(a[name], h5py.Group):
            _same_group(a[name], b[name], seen)
        elif isinstance(a[name], h5py.Dataset):
            _same_array(a[name], b[name])
        else:
            assert a[name].id.equal(b[name].id)
            _same_attributes(a[name], b[name])


def _same_array(a: h5py.Dataset, b: h5py.Dataset) -> None:
    assert (a.shape, a.maxshape if a.chunks else None) == (b.shape, b.maxshape if a.chunks else None), a.name
    assert a.id.get_type().equal(b.id.get_type()), a.name
    assert a.id.get_type().committed() == b.id.get_type().committed()
    if a.shape is not None and a.dtype.kind != "O":
        assert np.asarray(a.fillvalue).tobytes() == np.asarray(b.fillvalue).tobytes(), a.name
    _same_attributes(a, b)
    if a.shape is not None:
        _same_values(a[()], b[()], a.file, b.file, a.name)


def _same_attributes(a: Any, b: Any) -> None:
    assert list(a.attrs) == list(b.attrs), a.name
    for name in a.attrs:
        assert a.attrs.get_id(name).get_type().equal(b.attrs.get_id(name).get_type()), (a.name, name)
        assert a.attrs.get_id(name).shape == b.attrs.get_id(name).shape
        if a.attrs.get_id(name).get_type().equal(h5py.h5t.C_S1):  # h5py itself reads this one as empty
            both = np.empty((2,), "S1")
            for number, one in enumerate((a, b)):
                one.attrs.get_id(name).read(both[number : number + 1].reshape(()), h5py.h5t.C_S1)
            assert both[0] == both[1] == b"K"
        _same_values(a.attrs[name], b.attrs[name], a.file, b.file, f"{a.name}@{name}")


def _same_values(a: Any, b: Any, left: h5py.File, right: h5py.File, what: str) -> None:
    if isinstance(a, h5py.RegionReference):
        assert left[a].name == right[b].name, what
        np.testing.assert_array_equal(left[a][a], right[b][b])
    elif isinstance(a, h5py.Reference):
        assert bool(a) == bool(b), what
        assert not a or left[a].name == right[b].name, what
    elif isinstance(a, h5py.Empty):
        assert a == b, what
    elif isinstance(a, np.ndarray) and a.dtype.kind == "O":
        assert a.shape == b.shape, what
        for one, other in zip(a.flat, b.flat, strict=True):
            _same_values(one, other, left, right, what)
    elif isinstance(a, np.ndarray) and a.dtype.names:
        for name in a.dtype.names:
            _same_values(a[name], b[name], left, right, what)
    else:
        np.testing.assert_array_equal(a, b, err_msg=what)
