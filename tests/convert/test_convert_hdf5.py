"""HDF5 to HDF5: everything is kept, as h5py judges, with any chunks and codecs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from convert_sources import assert_same, make_rich
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyperslab as hs
from hyperslab.errors import Refused, UsageError

CODECS = ("none", "deflate-1", "deflate-4+shuffle", "lzf", "shuffle+lzf", "deflate-9+fletcher32", "fletcher32")
PLUGINS = (
    "zstd-3", "zstd-1+shuffle", "lz4", "blosc-lz4-5+shuffle", "blosc-zstd-3+shuffle", "blosc-zlib-4", "bitshuffle-lz4",
    "blosc-lz4-9+bits", "bitshuffle", "bitshuffle-zstd",
)  # fmt: skip


@pytest.fixture(scope="module")
def rich(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("rich") / "rich.h5"
    make_rich(path)
    return path


@pytest.mark.parametrize("verify", ["checksum", "library", "none"])
def test_everything_is_kept(rich: Path, tmp_path: Path, verify: Any) -> None:
    done = hs.convert(rich, tmp_path / "copy.h5", verify=verify)
    assert_same(rich, tmp_path / "copy.h5")
    assert done.losses == []
    assert [path.name for path in tmp_path.iterdir()] == ["copy.h5"]


def test_new_chunks_and_codecs(rich: Path, tmp_path: Path) -> None:
    chunks = {"inner/maps": "time=20,lat=5,lon=7", "contiguous": [1000], "records": [70], "texts": [30]}
    hs.convert(rich, tmp_path / "copy.h5", chunks=chunks, codec="deflate-4+shuffle")
    new = {"inner/maps": (20, 5, 7), "contiguous": (1000,), "records": (70,), "sparse": (10, 10), "texts": (30,)}
    assert_same(rich, tmp_path / "copy.h5", new)
    with h5py.File(tmp_path / "copy.h5") as file:
        assert file["sparse"].id.get_num_chunks() == 3
        assert (file["inner/maps"].compression, file["inner/maps"].compression_opts) == ("gzip", 4)


@pytest.mark.parametrize("codec", CODECS + PLUGINS)
@pytest.mark.parametrize("dtype", ["<f4", ">i2", "S5", "f8"])
def test_codecs(tmp_path: Path, codec: str, dtype: str) -> None:
    if codec in PLUGINS:
        pytest.importorskip("hdf5plugin")
    random = np.random.default_rng(1)
    values = random.integers(0, 50, (300, 130)).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(50, 50))
    hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", codec=codec, chunks="64,100")
    with h5py.File(tmp_path / "b.h5") as file:
        np.testing.assert_array_equal(file["x"][...], values)
        assert file["x"].chunks == (64, 100)
    # Chunks of a codec that stays are encoded again in the same way when only their shape changes.
    hs.convert(tmp_path / "b.h5", tmp_path / "c.h5", chunks="300,13")
    with h5py.File(tmp_path / "b.h5") as before, h5py.File(tmp_path / "c.h5") as file:
        np.testing.assert_array_equal(file["x"][...], values)
        assert [one[0] for one in _filters(file["x"])] == [one[0] for one in _filters(before["x"])]


@pytest.mark.parametrize("dtype", ["u1", "<i2", ">f4", "f8", "S3", "c16"])
def test_columns_of_shuffled_chunks_become_rows(tmp_path: Path, dtype: str) -> None:
    values = np.random.default_rng(2).integers(0, 99, (507, 9)).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(50, 1), compression=1, shuffle=True)
        file.create_dataset("pairs", data=values, chunks=(50, 2), compression=1, shuffle=True)
    for name in ("x", "pairs"):
        found = hs.open(tmp_path / "a.h5")[name]
        for key in (np.s_[:], np.s_[3:477:2, 1:6], np.s_[:, 4], np.s_[7:60, ::3], np.s_[48:52, :]):
            np.testing.assert_array_equal(found[key], values[key])
    hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", chunks="507,3")
    assert_same(tmp_path / "a.h5", tmp_path / "b.h5", {"x": (507, 3)})


def _filters(array: h5py.Dataset) -> list[Any]:
    found = array.id.get_create_plist()
    return [found.get_filter(index) for index in range(found.get_nfilters())]


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_shape_and_memory(tmp_path: Path, data: st.DataObject) -> None:
    ndim = data.draw(st.integers(1, 4))
    lengths = st.lists(st.integers(1, 12), min_size=ndim, max_size=ndim)
    shape, old, new = (tuple(data.draw(lengths)) for _ in range(3))
    dtype = data.draw(st.sampled_from(["u1", "<i4", ">f8", "S3"]))
    values = np.arange(np.prod(shape)).reshape(shape).astype(dtype)
    source, target = tmp_path / "any.h5", tmp_path / "new.h5"
    grows = data.draw(st.booleans())
    with h5py.File(source, "w") as file:
        chunks = old if grows else tuple(map(min, old, shape))
        limit = (None,) * ndim if grows else None
        array = file.create_dataset("x", shape, dtype, chunks=chunks, maxshape=limit, fillvalue=np.zeros((), dtype)[()])
        if data.draw(st.booleans()):
            array[...] = values
        else:
            array[tuple(slice(0, data.draw(st.integers(0, length))) for length in shape)] = 0
    least = np.dtype(dtype).itemsize * int(np.prod(tuple(map(min, new, shape)))) * 2
    memory = data.draw(st.integers(least, 20 * least))
    codec = data.draw(st.sampled_from(CODECS))
    hs.convert(
        source, target, chunks=new, codec=codec, memory=memory, overwrite=True, threads=data.draw(st.integers(1, 3))
    )
    assert_same(source, target)


def test_what_is_left_out_is_named_first(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = np.arange(5)
        kind = h5py.h5t.vlen_create(h5py.h5t.py_create(np.dtype([("r", h5py.ref_dtype)]), logical=True))
        h5py.h5d.create(file.id, b"odd", kind, h5py.h5s.create_simple((2,)))
    with pytest.raises(Refused, match="/odd: its elements are lists of references"):
        hs.convert(tmp_path / "a.h5", tmp_path / "b.h5")
    assert [path.name for path in tmp_path.iterdir()] == ["a.h5"]
    done = hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", skip_unsupported=True)
    assert [path for path, _ in done.losses] == ["/odd"]
    with h5py.File(tmp_path / "b.h5") as file:
        assert list(file) == ["x"]


@pytest.mark.parametrize("given", [{"codec": "gzap"}, {"codec": "deflate-12"}, {"chunks": "a,b"}, {"memory": -1},
                                   {"format": "csv"}, {"chunks": [0]}, {"like": {"x": 1}}])  # fmt: skip
def test_wrong_requests_are_refused(rich: Path, tmp_path: Path, given: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        hs.convert(rich, tmp_path / "copy.h5", **given)
    assert list(tmp_path.iterdir()) == []


def test_relayout_keeps_the_stored_bytes_and_puts_metadata_in_front(rich: Path, tmp_path: Path) -> None:
    target = tmp_path / "copy.h5"
    hs.convert(rich, target, relayout=True)
    assert_same(rich, target)
    with h5py.File(rich) as before, h5py.File(target) as file:
        for path in ("inner/maps", "sparse", "records"):
            old, new = before[path].id, file[path].id
            assert [old.read_direct_chunk(_at(old, n)) for n in range(old.get_num_chunks())] == [
                new.read_direct_chunk(_at(new, n)) for n in range(new.get_num_chunks())
            ]
        first = min(file["inner/maps"].id.get_chunk_info(n).byte_offset for n in range(3))
        assert max(h5py.h5o.get_info(file[path].id).addr for path in ("inner/maps", "records", "sparse")) < first


def _at(array: Any, number: int) -> tuple[int, ...]:
    found: tuple[int, ...] = array.get_chunk_info(number).chunk_offset
    return found
