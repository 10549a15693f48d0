"""HDF5 to HDF5: everything is kept, as h5py judges, with any chunks and codecs."""

from __future__ import annotations

import ctypes
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from convert_sources import assert_same, make_rich
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
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


@settings(max_examples=few(60), deadline=None, suppress_health_check=list(HealthCheck))
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
    whole = new if grows else tuple(map(min, new, shape))  # a chunk is encoded as a whole
    least = np.dtype(dtype).itemsize * int(np.prod(whole)) * 2
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


@pytest.mark.parametrize("options", [{}, {"relayout": True}, {"verify": "none"}, {"chunks": "5,7"}])
@pytest.mark.parametrize("limits", [(20, None), (None, 30), (None, None), (20, 90), (20, 30)])
def test_every_chunk_stays_where_it_was_whichever_axis_grows(tmp_path: Path, limits: Any, options: Any) -> None:
    source, target = tmp_path / "a.h5", tmp_path / "b.h5"
    with h5py.File(source, "w", libver="latest") as file:
        for name, filters in (("plain", {}), ("packed", {"compression": 4, "shuffle": True})):
            array = file.create_dataset(name, (20, 30), "i4", chunks=(4, 5), maxshape=limits, fillvalue=-1, **filters)
            array[2:19, 3:29] = np.arange(17 * 26).reshape(17, 26)
    hs.convert(source, target, **options)
    assert_same(source, target)


def test_a_user_block_moves_no_chunk(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=1024, libver="latest") as file:
        file.create_dataset("x", data=np.arange(600).reshape(20, 30), chunks=(4, 5), maxshape=(20, None))
        file.create_dataset("plain", data=np.arange(20_000.0))
    hs.convert(tmp_path / "a.h5", tmp_path / "b.h5")
    assert_same(tmp_path / "a.h5", tmp_path / "b.h5")


@pytest.mark.parametrize("options", [{}, {"relayout": True}, {"codec": "deflate-1", "chunks": [5]}])
def test_bitfields_are_kept(tmp_path: Path, options: Any) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        odd = h5py.h5t.STD_B16LE.copy()
        (library,) = (Path(h5py.__file__).parents[1] / "h5py.libs").glob("libhdf5-*.so*")
        call = ctypes.CDLL(str(library)).H5Tset_precision  # h5py cannot make such a bitfield
        call.argtypes = [ctypes.c_int64, ctypes.c_size_t]
        assert call(odd.id, 12) == 0
        for name, kind, values in (
            (b"flag", h5py.h5t.STD_B8LE, np.array(1, "u1")),
            (b"big", h5py.h5t.STD_B32BE, np.array([1, 2**31], ">u4")),
            (b"odd", odd, np.array([1, 0xABC], "<u2")),
        ):
            space = h5py.h5s.create_simple(values.shape) if values.shape else h5py.h5s.create(h5py.h5s.SCALAR)
            h5py.h5a.create(file.id, name, kind, space).write(values, kind)
            h5py.h5d.create(file.id, name, kind, space).write(h5py.h5s.ALL, h5py.h5s.ALL, values, kind)
        long = h5py.h5s.create_simple((40,))
        made = h5py.h5d.create(file.id, b"flags", h5py.h5t.STD_B8LE, long)
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, np.arange(40, dtype="u1"), h5py.h5t.STD_B8LE)
    hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", **options)
    with h5py.File(tmp_path / "a.h5") as before, h5py.File(tmp_path / "b.h5") as file:
        assert list(file) == list(before)
        assert list(file.attrs) == list(before.attrs)
        for old, new in [
            *((before[name].id, file[name].id) for name in file),
            *((before.attrs.get_id(name), file.attrs.get_id(name)) for name in file.attrs),
        ]:
            assert old.get_type().equal(new.get_type())
            assert _stored(old) == _stored(new)


def _stored(one: Any) -> bytes:
    kind = one.get_type()
    out = np.empty(one.shape, f"V{kind.get_size()}")
    one.read(*([h5py.h5s.ALL] * 2 if isinstance(one, h5py.h5d.DatasetID) else []), out, kind)
    return out.tobytes()


def test_tables_of_pandas_and_pytables_are_converted(tmp_path: Path) -> None:
    pandas, tables = pytest.importorskip("pandas"), pytest.importorskip("tables")
    frame = pandas.DataFrame({"a": np.arange(50), "b": np.arange(50) % 2 == 0, "c": [f"n{n}" for n in range(50)]})
    frame.to_hdf(tmp_path / "a.h5", key="frame", format="table", data_columns=["b"])
    with tables.open_file(str(tmp_path / "a.h5"), "a") as file:
        file.create_array("/", "flags", np.arange(9) % 2 == 0)
        file.root.flags.attrs.is_good = np.bool_(True)
    for options in ({}, {"codec": "deflate-1+shuffle"}, {"relayout": True}):
        hs.convert(tmp_path / "a.h5", tmp_path / "b.h5", overwrite=True, **options)
        pandas.testing.assert_frame_equal(pandas.read_hdf(tmp_path / "b.h5", "frame"), frame)
        with tables.open_file(str(tmp_path / "b.h5")) as file:
            assert file.root.flags[:].tolist() == (np.arange(9) % 2 == 0).tolist()
            assert file.root.flags.attrs.is_good == np.True_
