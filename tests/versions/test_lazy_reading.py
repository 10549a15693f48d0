"""Looking up chunks when arrays are read finds the same chunks as looking them up when the file is opened."""

from __future__ import annotations

import os
import random
import struct
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.group import Group
from hyperslab.errors import DamagedFile, FileChanged, HyperslabError
from hyperslab.versions.layout.names import DATA, VERSIONS
from hyperslab.versions.layout.reading import parsed, version_group

ARRAYS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "x": ((7001,), (3,), {}),  # mappings in one piece, and an index of several levels
    "g/y": ((37, 23), (5, 4), {"compression": "gzip", "shuffle": True}),
    "g/z": ((9, 8, 7), (2, 3, 7), {"compression": "lzf"}),
    "one": ((5,), (10,), {}),
}


def make(path: Path, library: str, libver: str = "earliest") -> dict[str, dict[str, np.ndarray[Any, Any]]]:
    """Two versions of all arrays, one of them with holes; and what is in them."""
    rng = np.random.default_rng(0)
    first = {name: rng.random(shape) for name, (shape, _, _) in ARRAYS.items()}
    first["x"][2400:4500] = 0  # chunks of only the fill value are not stored
    second = {name: data.copy() for name, data in first.items()}
    for data in second.values():
        data[data.shape[0] // 2] = -1
    with ExitStack() as stack:
        file = h5py.File(path, "w", libver=libver)
        if library == "theirs":
            versions: Any = VersionedHDF5File(stack.enter_context(file))
        else:
            file.close()
            versions = stack.enter_context(hs.VersionedFile(path, "a"))
        with versions.stage_version("a") as version:
            for name, (_, chunks, options) in ARRAYS.items():
                version.create_dataset(name, data=first[name], chunks=chunks, **options)
        with versions.stage_version("b") as version:
            for name, data in second.items():
                version[name][data.shape[0] // 2] = -1
    return {"a": first, "b": second}


def eager(path: Path, name: str) -> Group:
    """A version whose chunks are all looked up when it is opened."""
    root = parsed(str(path), 0, (f"{VERSIONS}/{name}/**", f"{DATA}/**/raw_data"))
    group = root[f"{VERSIONS}/{name}"]
    assert isinstance(group, Group)
    return group


def array_of(group: Group, name: str) -> Array:
    found = group[name]
    assert isinstance(found, Array)
    return found


def selections(shape: tuple[int, ...], count: int) -> list[Any]:
    """Elements, short slices, and a few keys that touch many chunks."""
    rng = random.Random(str(shape))
    made: list[Any] = [tuple(rng.randrange(length) for length in shape) for _ in range(count)]
    for _ in range(count // 2):
        starts = [rng.randrange(length) for length in shape]
        made.append(tuple(slice(start, start + rng.randrange(9)) for start in starts))
    made += [tuple(slice(0, None, 3) for _ in shape), ([0, shape[0] - 1], *(slice(None),) * (len(shape) - 1)), ...]
    rng.shuffle(made)
    return made


@pytest.mark.parametrize("libver", ["earliest", "latest"])
@pytest.mark.parametrize("library", ["ours", "theirs"])
def test_few_chunks_or_all(tmp_path: Path, library: str, libver: str) -> None:
    path = tmp_path / "v.h5"
    state = make(path, library, libver)
    for version, arrays in state.items():
        lazy = version_group(str(path), version)
        for name, data in arrays.items():
            for count in (3, 60):  # before all chunks are looked up, and until they are
                array = array_of(version_group(str(path), version), name)
                for key in selections(data.shape, count):
                    np.testing.assert_array_equal(array[key], data[key], err_msg=f"{name} {key}")
            np.testing.assert_array_equal(array_of(lazy, name)[...], data)
            points = np.stack([np.arange(4) * 17 % length for length in data.shape], axis=1)
            expected = data[tuple(points.T)]
            np.testing.assert_array_equal(array_of(lazy, name)[hs.Points(points)], expected)


@pytest.mark.parametrize("library", ["ours", "theirs"])
def test_what_is_said_of_arrays(tmp_path: Path, library: str) -> None:
    path = tmp_path / "v.h5"
    make(path, library)
    for version in ("a", "b"):
        all_of_it = eager(path, version)
        said = (
            "chunks",
            "chunk_count",
            "stored_chunk_count",
            "stored_nbytes",
            "codecs",
            "unsupported",
            "damaged",
            "via",
        )
        for name in ARRAYS:
            for attribute in (
                *said,
                "shape",
                "max_shape",
                "dtype",
                "fill_value",
                "nbytes",
            ):  # arrays that were not read
                lazy = array_of(version_group(str(path), version), name)
                assert getattr(lazy, attribute) == getattr(array_of(all_of_it, name), attribute), attribute
            lazy, other = array_of(version_group(str(path), version), name), array_of(all_of_it, name)
            assert repr(lazy.plan()) == repr(other.plan())
            assert lazy.file_paths() == other.file_paths()
            places = [
                [
                    [column().tolist() for column in (part.indices, part.offsets, part.lengths)]
                    for part in array.segments()
                ]
                for array in (lazy, other)
            ]
            assert places[0] == places[1]
    raw = [array_of(group, f"/{DATA}/x/raw_data") for group in (version_group(str(path), "a"), eager(path, "a"))]
    assert raw[0][4] == raw[1][4]
    assert raw[0].stored_chunk_count == raw[1].stored_chunk_count
    np.testing.assert_array_equal(raw[0][...], raw[1][...])


def outcome(read: Any) -> Any:
    try:
        return read()
    except HyperslabError as error:
        return type(error)


def test_damaged_files(tmp_path: Path) -> None:
    """Looking for a few chunks finds what looking for all of them finds, or reports what is wrong."""
    path, state = tmp_path / "v.h5", make(tmp_path / "v.h5", "ours")["b"]
    good, rng = path.read_bytes(), random.Random(1)
    nodes = [place for place in range(0, len(good), 8) if good[place : place + 4] in (b"TREE", b"GCOL", b"SNOD")]
    key = {"x": 2377, "g/y": (30, 20)}
    for trial in range(60):
        damaged = bytearray(good)
        node = rng.choice(nodes) if trial % 2 else rng.randrange(len(good) - 3000)
        for _ in range(rng.choice([1, 1, 4])):
            damaged[node + rng.randrange(2200)] ^= 1 << rng.randrange(8)
        path.write_bytes(damaged)
        for name, at in key.items():
            general = outcome(lambda name=name, at=at: array_of(eager(path, "b"), name)[at])
            quick = outcome(lambda name=name, at=at: array_of(version_group(str(path), "b"), name)[at])
            same = quick == general if isinstance(general, type) else np.array_equal(quick, general, equal_nan=True)
            # Reading fewer bytes may miss the damage.
            assert same or quick == state[name][at], f"trial {trial}: {name}: {quick} and {general}"


def test_a_file_that_lost_its_name(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    state = make(path, "ours")["b"]
    group = version_group(str(path), "b")
    path.unlink()
    np.testing.assert_array_equal(array_of(group, "x")[...], state["x"])
    assert array_of(group, "one")[2] == -1


def test_a_commit_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Arrays of a version that was opened before are read between commits, and do not change."""
    path = tmp_path / "v.h5"
    state = make(path, "ours")["b"]
    group = version_group(str(path), "b")
    with hs.VersionedFile(path, "r+") as file:
        for number in range(5):
            with file.stage_version(f"more {number}") as version:
                version["x"][...] = np.arange(7001) + number
    entered = []
    from hyperslab.journal import settling

    inner = settling.between_commits
    monkeypatch.setattr(settling, "between_commits", lambda path: entered.append(path) or inner(path))
    assert array_of(group, "x")[6000] == state["x"][6000]
    np.testing.assert_array_equal(array_of(group, "x")[...], state["x"])
    assert entered == [str(path)] * 2


def test_somebody_writes_who_tells_nobody(tmp_path: Path) -> None:
    """The index of an array's chunks while libhdf5 writes it: half of a node has moved already."""
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file, file.stage_version("a") as version:
        version.create_dataset("x", data=np.arange(1, 41), chunks=(2,))
    group = version_group(str(path), "a")
    assert array_of(group, "x")[2] == 3
    with h5py.File(path) as plain:
        chunks = [plain[f"{DATA}/x/raw_data"].id.get_chunk_info(number).byte_offset for number in range(20)]
    data = bytearray(path.read_bytes())
    last = data.index(struct.pack("<Q", chunks[19]))
    node = data.rindex(b"TREE", 0, last)
    assert data[node + 6] == 20
    data[node + 6] = 10
    before = path.stat()
    path.write_bytes(data)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1_000_000))
    for key in (slice(None), 39):
        with pytest.raises(FileChanged):
            array_of(group, "x")[key]
    again = version_group(str(path), "a")  # as libhdf5 reads it
    with h5py.File(path) as plain:
        np.testing.assert_array_equal(array_of(again, "x")[...], plain[f"{VERSIONS}/a/x"][...])


def test_an_index_that_is_damaged_is_met_when_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    make(path, "ours")
    data = bytearray(path.read_bytes())
    with h5py.File(path) as plain:
        first = plain[f"{DATA}/g/y/raw_data"].id.get_chunk_info(0).byte_offset
    node = data.rindex(b"TREE", 0, data.index(struct.pack("<Q", first)))
    data[node : node + 4] = b"EERT"
    path.write_bytes(data)
    group = version_group(str(path), "a")
    for key in ((3, 3), ...):
        with pytest.raises(DamagedFile, match="g/y"):
            array_of(group, "g/y")[key]
    assert "TREE" in (array_of(group, "g/y").damaged or "")
    np.testing.assert_array_equal(array_of(group, "x")[...], array_of(eager(path, "a"), "x")[...])
