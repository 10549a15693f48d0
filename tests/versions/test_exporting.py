"""Versions as files of their own, read by other libraries: the same values, with chunks as they were stored."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import DamagedFile, FileChanged, Refused, UsageError

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


TARGETS = {"hdf5": "b.h5", "netcdf4": "b.nc", "zarr2": "b2.zarr", "zarr3": "b.zarr"}
KEPT_BACK = {"raw_data", "chunks", "prev_version", "committed", "timestamp"}


@pytest.fixture(scope="module")
def numbers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A version with arrays that every format can hold, one of them in a group."""
    path = tmp_path_factory.mktemp("numbers") / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("x", data=np.arange(100.0), chunks=(16,), compression="gzip", shuffle=True)
            version.create_dataset("g/y", data=np.arange(30, dtype="i4").reshape(5, 6), chunks=(2, 6))
            version["x"].attrs["units"] = "m"
            version["g"].attrs["chunks"] = "of cheese"  # on a group this is no word of the layout
        with file.stage_version("b") as version:
            version["x"].resize((110,))
            version["x"][100:] = -1
            version.attrs["author"] = "Ada"
    return path


def read_by_peers(format: str, path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]], dict[str, Any]]:
    """What another library reads: elements, attributes, and how far each axis can grow (None: without limit)."""
    if format.startswith("zarr"):
        zarr = pytest.importorskip("zarr")
        root = zarr.open_group(path, mode="r", zarr_format=int(format[-1]))
        arrays = {"x": root["x"], "g/y": root["g/y"]}
        nodes = {"": root, "g": root["g"], **arrays}
        return {name: one[...] for name, one in arrays.items()}, {k: dict(v.attrs) for k, v in nodes.items()}, {}
    with h5py.File(path) as file:
        arrays = {"x": file["x"], "g/y": file["g/y"]}
        nodes = {"": file, "g": file["g"], **arrays}
        attributes = {name: dict(node.attrs) for name, node in nodes.items()}
        return {k: v[()] for k, v in arrays.items()}, attributes, {k: v.maxshape for k, v in arrays.items()}


@pytest.mark.parametrize("format", TARGETS)
def test_every_format_is_read_by_its_own_library_and_can_grow(numbers: Path, tmp_path: Path, format: str) -> None:
    target = tmp_path / TARGETS[format]
    with hs.VersionedFile(numbers) as file:
        done = file.export("b", target, format=format)
    hs.convert(numbers, tmp_path / f"again-{target.name}", format=format, version="b")
    assert (done.left_out, done.array_count) == ({}, 2)
    assert sorted(done.encoded_again) == (["g/y", "x"] if format == "netcdf4" else [])
    for path in (target, tmp_path / f"again-{target.name}"):
        elements, attributes, limits = read_by_peers(format, path)
        np.testing.assert_array_equal(elements["x"], [*np.arange(100.0), *[-1] * 10])
        np.testing.assert_array_equal(elements["g/y"], np.arange(30).reshape(5, 6))
        for name in ("", "x", "g/y"):
            assert not KEPT_BACK & attributes[name].keys(), name
        said = [attributes[name][key] for name, key in (("", "author"), ("x", "units"), ("g", "chunks"))]
        assert [one.decode() if isinstance(one, bytes) else one for one in said] == ["Ada", "m", "of cheese"]
        assert all(one == (None,) * len(one) for one in limits.values())
    if format == "netcdf4":
        with pytest.importorskip("netCDF4").Dataset(target) as opened:
            assert all(one.isunlimited() for one in opened.dimensions.values())
            np.testing.assert_array_equal(opened["g/y"][:], np.arange(30).reshape(5, 6))


def test_a_version_of_versioned_hdf5_is_exported_as_it_reads_it(tmp_path: Path) -> None:
    theirs = pytest.importorskip("versioned_hdf5")
    with h5py.File(tmp_path / "v.h5", "w") as file:
        versioned = theirs.VersionedHDF5File(file)
        with versioned.stage_version("one") as group:
            group.create_dataset("data", data=np.arange(100), chunks=(30,), maxshape=(None,))
            group["data"].attrs["units"] = "m"
        with versioned.stage_version("two") as group:
            group["data"].resize((130,))
            group["data"][100:] = 7
        expected = versioned["one"]["data"][()]
    with hs.VersionedFile(tmp_path / "v.h5") as mine:
        mine.export("one", tmp_path / "one.h5")
    with h5py.File(tmp_path / "one.h5", "r+") as made:
        np.testing.assert_array_equal(made["data"][()], expected)
        assert (dict(made["data"].attrs), dict(made.attrs), made["data"].maxshape) == ({"units": "m"}, {}, (None,))
        with theirs.VersionedHDF5File(made).stage_version("first") as group:  # nothing is left of the old versions
            group.create_dataset("again", data=made["data"][()])


def test_a_conversion_of_a_version_can_have_other_chunks(numbers: Path, tmp_path: Path) -> None:
    hs.convert(numbers, tmp_path / "b.h5", version="b", chunks={"x": [50]}, codec={"/g/y": "deflate:3"})
    with h5py.File(tmp_path / "b.h5") as file:
        assert (file["x"].chunks, file["x"].compression, file["g/y"].compression_opts) == ((50,), "gzip", 3)
        np.testing.assert_array_equal(file["x"], [*np.arange(100.0), *[-1] * 10])
        np.testing.assert_array_equal(file["g/y"], np.arange(30).reshape(5, 6))


@pytest.mark.parametrize("name", ["g.h5", "g.zarr"])
def test_a_group_of_a_version_is_converted_with_all_attributes_of_its_own(tmp_path: Path, name: str) -> None:
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file, file.stage_version("a") as version:
        version.create_dataset("g/h/y", data=np.arange(30), chunks=(4,))
        version["g"].attrs["timestamp"] = "mine"
    with hs.open(tmp_path / "v.h5", version="a") as root:
        hs.convert(root["g"], tmp_path / name)
    made = hs.open(tmp_path / name)
    assert (dict(made.attrs), dict(made["h/y"].attrs)) == ({"timestamp": "mine"}, {})
    np.testing.assert_array_equal(made["h/y"][...], np.arange(30))


KILLED = """
import os, signal, sys, hyperslab as hs
def kill(*_): os.kill(os.getpid(), signal.SIGKILL)
with hs.VersionedFile(sys.argv[1]) as file:
    file.export("b", sys.argv[2], progress=kill)
"""


@pytest.mark.parametrize("name", ["b.h5", "b.zarr"])
def test_a_kill_leaves_the_target_as_it_was_and_the_next_export_nothing_else(
    numbers: Path, tmp_path: Path, name: str
) -> None:
    if name == "b.zarr":
        pytest.importorskip("zarr")
    else:
        (tmp_path / name).write_text("old")
    killed = subprocess.run([sys.executable, "-c", KILLED, numbers, tmp_path / name], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert (tmp_path / name).exists() == (name == "b.h5")
    if name == "b.h5":
        assert (tmp_path / name).read_text() == "old"
    with hs.VersionedFile(numbers) as file:
        file.export("b", tmp_path / name)
    assert [one.name for one in tmp_path.iterdir()] == [name]
    assert hs.open(tmp_path / name)["x"][-1] == -1


def test_others_may_commit_but_not_replace_the_file_meanwhile(numbers: Path, tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    shutil.copy(numbers, path)

    def commit(*_: Any) -> None:
        with hs.VersionedFile(path, "r+") as file:
            if "c" not in file.versions:
                with file.stage_version("c") as version:
                    version["x"][:] = 0

    with hs.VersionedFile(path) as file:
        file.export("b", tmp_path / "b.zarr", progress=commit)
    assert hs.open(tmp_path / "b.zarr")["x"][-1] == -1
    assert hs.VersionedFile(path).versions == ["a", "b", "c"]

    def replace(*_: Any) -> None:
        shutil.copy(numbers, tmp_path / "other.h5")
        (tmp_path / "other.h5").replace(path)

    with hs.VersionedFile(path) as file, pytest.raises(FileChanged):
        file.export("b", tmp_path / "c.zarr", progress=replace)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["b.zarr", "v.h5"]


def test_an_interrupted_conversion_of_a_version_goes_on_although_others_have_committed(tmp_path: Path) -> None:
    path, elements = tmp_path / "v.h5", np.arange(400_000.0).reshape(400, 1000)
    with hs.VersionedFile(path, "w") as file, file.stage_version("a") as version:
        version.create_dataset("x", data=elements, chunks=(10, 1000), compression="gzip")
        version.create_dataset("words", data=["a", "b"], dtype=h5py.string_dtype(), chunks=(1,))
    seen: list[str] = []

    def stop(what: str, *_: int) -> None:
        seen.append(what)
        if len(seen) == 3:
            raise KeyboardInterrupt

    options: dict[str, Any] = {"version": "a", "chunks": {"x": [40, 500]}, "memory": 1 << 20}
    with pytest.raises(KeyboardInterrupt):
        hs.convert(path, tmp_path / "a.h5", **options, progress=stop)
    with hs.VersionedFile(path, "r+") as file, file.stage_version("b") as version:
        version["x"][0, 0] = 7
    assert hs.convert(path, tmp_path / "a.h5", **options, resume=True).is_resumed
    with h5py.File(tmp_path / "a.h5") as made:
        np.testing.assert_array_equal(made["x"], elements)
        assert (made["x"].chunks, made["words"].asstr()[:].tolist()) == ((40, 500), ["a", "b"])


def test_an_array_that_disagrees_with_its_chunks_is_damage_that_can_be_left_out(numbers: Path, tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    shutil.copy(numbers, path)
    with h5py.File(path, "r+") as file:
        file["_version_data/versions/b/x"].attrs["chunks"] = [17]
    with hs.VersionedFile(path) as file:
        for format, name in TARGETS.items():
            with pytest.raises(DamagedFile, match=r"chunk shape \(17,\)"):
                file.export("b", tmp_path / name, format=format)
            done = file.export("b", tmp_path / name, format=format, skip_unsupported=True)
            assert (list(done.left_out), done.array_count) == (["x"], 1)
            assert hs.open(tmp_path / name)["g/y"][4, 5] == 29
