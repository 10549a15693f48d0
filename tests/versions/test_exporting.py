"""Versions as files of their own, read by other libraries: the same values, with chunks as they were stored."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import Refused, UsageError

PAIR = np.dtype([("a", "<i4"), ("b", "<f8")])
COLOURS = h5py.enum_dtype({"red": 0, "green": 1}, basetype="u1")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, np.ndarray[Any, Any]]]:
    """A version with arrays of many kinds, after another version; and what it holds."""
    path, rng = tmp_path_factory.mktemp("export") / "v.h5", np.random.default_rng(1)
    field = rng.integers(0, 9, (50, 33)) / 2
    field[:20, :10] = np.nan
    state: dict[str, np.ndarray[Any, Any]] = {
        "line": np.arange(1000.0),
        "g/field": field,
        "g/h/cube": rng.integers(0, 9, (5, 6, 7)).astype("i2"),
        "fixed": np.array([b"abc", b"", b"x"] * 5),
        "flags": rng.integers(0, 2, 100).astype(bool),
        "big": np.arange(77, dtype=">i4"),
        "nothing": np.empty((0, 4), "f4"),
    }
    options: dict[str, dict[str, Any]] = {
        "line": {"chunks": (64,), "compression": "gzip", "shuffle": True},
        "g/field": {"chunks": (10, 8), "fillvalue": np.nan, "compression": "gzip"},
        "g/h/cube": {"chunks": (2, 3, 7), "fletcher32": True},
        "nothing": {"chunks": (4, 4)},
    }
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("a") as version:
            for name, data in state.items():
                version.create_dataset(name, data=data, **options.get(name, {"chunks": (8,)}))
            version["line"].attrs["units"] = "m"
            version["g"].attrs["note"] = "inside"
            version["g/field"].attrs["_FillValue"] = np.nan  # otherwise kerchunk references could not express it
            version.attrs["author"] = "Ada"
        with file.stage_version("b") as version:
            version["line"][100:200] = -1
            version["g/field"].resize((55, 30))
            version["g/h/cube"][0] = 5
            version.attrs["author"] = "Bo"
        state["line"][100:200] = -1
        state["g/field"] = np.pad(state["g/field"][:, :30], ((0, 5), (0, 0)), constant_values=np.nan)
        state["g/h/cube"][0] = 5
    return path, state


def test_hdf5_is_read_by_h5py_with_the_same_stored_bytes(made: Any, tmp_path: Path) -> None:
    path, state = made
    seen: list[Any] = []
    with hs.VersionedFile(path) as file:
        done = file.export("b", tmp_path / "b.h5", progress=lambda *said: seen.append(said))
        versioned = {name: file["b"][name] for name in state}
    assert (done.array_count, done.encoded_again, done.left_out) == (len(state), [], {})
    assert ("line", 16, 16) in seen
    with h5py.File(tmp_path / "b.h5") as file, h5py.File(path) as source:
        assert dict(file.attrs) == {"author": "Bo"}
        assert (dict(file["line"].attrs), dict(file["g"].attrs)) == ({"units": "m"}, {"note": "inside"})
        for name, data in state.items():
            np.testing.assert_array_equal(file[name][()], data, name)
            assert file[name].dtype == source[f"_version_data/versions/b/{name}"].dtype
            raw = source[f"_version_data/{name}/raw_data"]
            assert file[name].chunks == raw.chunks
            for place in ("compression", "compression_opts", "shuffle", "fletcher32"):
                assert getattr(file[name], place) == getattr(raw, place)
            np.testing.assert_equal(file[name].fillvalue, raw.fillvalue)
        count = 0
        for name, array in versioned.items():
            for segment in array.segments():
                grid = tuple(-(-n // c) for n, c in zip(array.shape, segment.chunk_shape, strict=True))
                for index, offset, length in zip(
                    segment.indices().tolist(), segment.offsets().tolist(), segment.lengths().tolist(), strict=True
                ):
                    start = tuple(
                        int(i) * c for i, c in zip(np.unravel_index(index, grid), segment.chunk_shape, strict=True)
                    )
                    mask, copied = file[name].id.read_direct_chunk(start)
                    stored = path.read_bytes()[offset : offset + length]
                    assert (mask, copied) == (0, stored)
                    count += 1
        assert count == done.chunk_count > 50
    with h5py.File(tmp_path / "b.h5", "r+") as file:
        file["line"].resize((2000,))  # it is a file like any other


def test_zarr_is_read_by_zarr_python_and_by_us(made: Any, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    path, state = made
    with hs.VersionedFile(path) as file:
        done = file.export("b", tmp_path / "b.zarr")
    assert done.array_count == len(state)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = zarr.open_group(tmp_path / "b.zarr", mode="r")
        for name, data in state.items():
            np.testing.assert_array_equal(root[name][...], data, name)
    assert dict(root.attrs) == {"author": "Bo"}
    assert dict(root["line"].attrs) == {"units": "m"}
    ours = hs.open(tmp_path / "b.zarr")
    for name, data in state.items():
        np.testing.assert_array_equal(ours[name][...], data, name)
    with pytest.raises(UsageError, match="holds something else"), hs.VersionedFile(path) as file:
        file.export("b", tmp_path / "b.zarr")


@pytest.mark.parametrize("suffix", [".json", ".parquet"])
def test_kerchunk_is_read_by_zarr_python_and_xarray_through_fsspec(made: Any, tmp_path: Path, suffix: str) -> None:
    zarr, fsspec = pytest.importorskip("zarr"), pytest.importorskip("fsspec")
    path, state = made
    target = tmp_path / f"b{suffix}"
    with hs.VersionedFile(path) as file:
        done = file.export("b", target)
    assert (done.array_count, done.left_out) == (len(state), {})
    options = {"fo": str(target), "asynchronous": True, "remote_options": {"asynchronous": True}}
    if suffix == ".parquet":
        from fsspec.implementations.reference import LazyReferenceMapper

        pytest.importorskip("pandas").set_option("future.infer_string", False)
        options["fo"] = LazyReferenceMapper(str(target), fs=fsspec.filesystem("file"), engine="pyarrow")
    store = zarr.storage.FsspecStore(
        fsspec.filesystem("reference", remote_protocol="file", **options), read_only=True, path=""
    )
    root = zarr.open_group(store, mode="r", zarr_format=2)
    for name, data in state.items():
        np.testing.assert_array_equal(root[name][...], data, name)
    assert dict(root.attrs) == {"author": "Bo"}
    if suffix == ".json":
        found = pytest.importorskip("xarray").open_dataset(str(target), engine="kerchunk", mask_and_scale=False)
        assert found.attrs == {"author": "Bo"}
        for name in found:
            np.testing.assert_array_equal(found[name].values, state[name], name)
            assert not {"raw_data", "chunks"} & found[name].attrs.keys()


def test_text_and_enumerations(tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    words = np.array(["a", "", "äöü", "long " * 50] * 5, object)
    colours = np.array([0, 1, 1], "u1")
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("words", data=words, dtype=h5py.string_dtype(), chunks=(3,))
            version.create_dataset("colours", data=colours, dtype=COLOURS, chunks=(2,))
            version.create_dataset("pairs", data=np.zeros(5, PAIR), chunks=(2,))
        done = file.export("a", tmp_path / "a.h5")  # works while the file is open for writing, too
        assert done.encoded_again == ["words"]
        assert file.export("a", tmp_path / "a.zarr").encoded_again == ["words"]
    with h5py.File(tmp_path / "a.h5") as made:
        assert made["words"].asstr()[:].tolist() == words.tolist()
        assert h5py.check_enum_dtype(made["colours"].dtype) == {"red": 0, "green": 1}
        assert (made["pairs"].dtype, made["pairs"].shape) == (PAIR, (5,))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        root = zarr.open_group(tmp_path / "a.zarr", mode="r")
        assert root["words"][:].tolist() == words.tolist()
        np.testing.assert_array_equal(root["pairs"][:], np.zeros(5, PAIR))


def test_with_a_file_of_ones_own(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "v.h5", "w") as own:
        file = hs.VersionedFile(own)
        with file.stage_version("a") as version:
            version.create_dataset("x", data=np.arange(10), chunks=(3,))
        file.export(None, tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as made:
        assert made["x"][:].tolist() == list(range(10))


def test_what_cannot_be_written_says_so_and_leaves_nothing(made: Any, tmp_path: Path) -> None:
    path, _ = made
    with hs.VersionedFile(path) as file:
        with pytest.raises(UsageError, match=r"does not end with one of \.h5"):
            file.export("b", tmp_path / "b.csv")
        with pytest.raises(UsageError, match="no folder"):
            file.export("b", tmp_path / "none" / "b.h5")
        with pytest.raises(UsageError, match="the file with the versions"):
            file.export("b", path)
        with pytest.raises(KeyError, match="no version 'z'"):
            file.export("z", tmp_path / "b.h5")

        def interrupt(*_: Any) -> None:
            raise KeyboardInterrupt

        for suffix in (".h5", ".zarr"):
            with pytest.raises(KeyboardInterrupt):
                file.export("b", tmp_path / f"b{suffix}", progress=interrupt)
    assert list(tmp_path.iterdir()) == []
    with hs.VersionedFile(tmp_path / "big.h5", "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("x", data=np.zeros(4, [("a", ">i4"), ("b", "i1")]), chunks=(2,))
            version.create_dataset("y", data=np.zeros(4), chunks=(2,))
        with pytest.raises(Refused, match="big-endian"):
            file.export("a", tmp_path / "a.zarr")
        done = file.export("a", tmp_path / "a.zarr", skip_unsupported=True)
        assert (list(done.left_out), done.array_count) == (["x"], 1)
