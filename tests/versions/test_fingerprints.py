"""Fingerprints: what they say, who keeps them true, and what other software may do without being reported as damage."""

from __future__ import annotations

import base64
import hashlib
import json
import struct
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from typer.testing import CliRunner
from versioned_hdf5 import VersionedHDF5File, delete_versions, modify_metadata

import hyperslab as hs
from hyperslab.cli import app
from hyperslab.errors import DamagedFile

VERSIONS = "_version_data/versions"
LOG = "_version_fingerprints"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    made = tmp_path / "v.h5"
    with hs.VersionedFile(made, "w") as file:
        for number in range(5):
            with file.stage_version(f"v{number}") as version:
                if not number:
                    version.create_dataset("x", data=np.arange(50.0), chunks=(10,))
                    version.create_dataset("g/y", data=np.arange(40).reshape(8, 5), chunks=(3, 2), fillvalue=7)
                    words = np.array(["a", "é", ""] * 5, object)
                    version.create_dataset("g/t", data=words, dtype=h5py.string_dtype(), chunks=(4,))
                    version.create_dataset("empty", shape=(9,), dtype="f4", chunks=(4,))
                    version["x"].attrs["units"] = "m"
                    version["g"].attrs.update(many=[1, 2, 3], yes=True)
                    continue
                version["x"][number] = -number
                version["g/t"][number] = f"new {number}"
                version.attrs["number"] = number
    return made


def verified(path: Path, *names: str) -> Any:
    with hs.VersionedFile(path) as file:
        return file.verify(*names)


def assert_proved(path: Path) -> None:
    found = verified(path)
    assert (found.damages, found.unproved) == ([], {})
    with hs.VersionedFile(path) as file:
        assert sorted(found.proved) == sorted(file.versions)


def records(path: Path) -> list[dict[str, Any]]:
    """The list of fingerprints, read as docs/versions-layout.md describes it, without hyperslab."""
    with h5py.File(path) as file:
        stored, found, at = file[LOG][()].tobytes(), [], 0
    while at < len(stored):
        length, checksum = struct.unpack_from("<II", stored, at)
        body = stored[at + 8 : at + 8 + length]
        assert zlib.crc32(body) == checksum
        found.append(json.loads(zlib.decompress(body)))
        at += 8 + length
    return found


def short(*parts: bytes, nbytes: int) -> bytes:
    return hashlib.sha256(b"".join(parts)).digest()[:nbytes]


def test_a_fingerprint_is_what_the_layout_says(path: Path) -> None:
    """Compute a record from docs/versions-layout.md and h5py alone."""
    found = {record["version"]: record for record in records(path)}
    record = found["v3"]
    assert (record["parent"], record["current"]) == ("v2", "v3")
    with h5py.File(path) as file:
        version = file[f"{VERSIONS}/v3"]
        assert record["timestamp"] == version.attrs["timestamp"]
        names = ["aempty", "gg", "ag/t", "ag/y", "ax"]
        assert record["names"] == names
        number = b"<i8 ()\n" + np.int64(3).tobytes()
        one = struct.pack("<II", len(b"number"), len(number)) + b"number" + number
        assert record["attributes"] == short(one, nbytes=4).hex()
        marks = base64.b64decode(record["marks"])
        array, table = version["x"], file["_version_data/x/hash_table"]
        keys = b""
        for source in array.virtual_sources():
            start = source.src_space.get_select_bounds()[0][0]
            [row] = [row for row in table[: table.attrs["largest_index"]] if row["shape"][0] == start]
            keys += row["hash"].tobytes()[:8]
        units = b"text ()\n" + struct.pack("<Q", 1) + b"m"
        expected = short(b"<f8 (10,) " + bytes(8).hex().encode(), nbytes=4)
        expected += short(struct.pack("<II", len(b"units"), len(units)) + b"units" + units, nbytes=4)
        expected += short(struct.pack("<qq", 1, 50), keys, nbytes=8)
        assert marks[16 * names.index("ax") :][:16] == expected
        expected = short(b"<f4 (4,) " + bytes(4).hex().encode(), nbytes=4) + bytes(4)
        expected += short(struct.pack("<qq", 1, 9), bytes(8 * 3), nbytes=8)
        assert marks[16 * names.index("aempty") :][:16] == expected
        address = h5py.h5o.get_info(table.id).addr
        assert len(record["tables"]) == len(names)
        assert record["tables"][names.index("ax")] == address
        assert record["tables"][names.index("gg")] == 0


@pytest.mark.slow
def test_all_that_we_do_keeps_versions_proved(path: Path) -> None:
    assert_proved(path)
    with hs.VersionedFile(path, "r+") as file:
        file.modify_metadata("x", chunks=(7,), dtype="f4")
        file.modify_metadata("g/y", fillvalue=9, repack=False)
        file.modify_metadata("g/y", compression="gzip")
    assert_proved(path)
    with hs.VersionedFile(path, "r+") as file:
        file.delete_versions(["v1", "v4"])
        file.delete_versions("v0", repack=False)
        file.current_version = "v2"
        with file.stage_version("side", "v3", make_current=False) as version:
            version["x"].resize((60,))
            del version["g/y"]
            version.create_group("new").attrs["a"] = "b"
        with file.stage_version("none", "") as version:
            version.create_dataset("x", data=np.arange(5, dtype="f4"), chunks=(7,))
    assert_proved(path)
    with hs.VersionedFile(path, "r+") as file:
        file.repack()
        with pytest.raises(ZeroDivisionError), file.stage_version("broken"):
            raise ZeroDivisionError
    assert_proved(path)
    with h5py.File(path, "r+") as h5, hs.VersionedFile(h5).stage_version("borrowed") as version:
        version["x"][0] = 5
    assert_proved(path)


@pytest.mark.slow
def test_versions_of_others_are_not_called_proved(tmp_path: Path) -> None:
    path = tmp_path / "theirs.h5"
    with h5py.File(path, "w") as h5, VersionedHDF5File(h5).stage_version("theirs") as version:
        version.create_dataset("x", data=np.arange(30), chunks=(10,))
        version.create_dataset("same", data=np.arange(30), chunks=(10,))
    found = verified(path)
    assert (found.is_whole, found.proved, list(found.unproved)) == (True, [], ["theirs"])
    with hs.VersionedFile(path, "r+") as file, file.stage_version("ours") as version:
        version["x"][3] = 9
    found = verified(path)
    assert (found.is_whole, found.proved, list(found.unproved)) == (True, ["ours"], ["theirs"])
    shown = CliRunner().invoke(app, ["versions", "verify", str(path)])
    assert shown.exit_code == 0
    assert "1 of 2 versions are proved" in shown.output
    assert "theirs" in shown.output
    said = json.loads(CliRunner().invoke(app, ["versions", "verify", "--json", str(path)]).stdout)
    assert (said["proved"], list(said["unproved"])) == (["ours"], ["theirs"])


@pytest.mark.slow
def test_what_versioned_hdf5_does_is_no_damage(path: Path) -> None:
    with h5py.File(path, "r+") as h5:
        with VersionedHDF5File(h5).stage_version("theirs") as version:
            version["x"][7] = 70
        delete_versions(h5, ["v1", "v3"])
    found = verified(path)
    assert (found.damages, list(found.unproved)) == ([], ["theirs"])
    assert found.proved == ["v0", "v2", "v4"]
    with h5py.File(path, "r+") as h5:
        delete_versions(h5, ["theirs", "v4"])
    found = verified(path)
    assert (found.damages, found.unproved, found.proved) == ([], {}, ["v0", "v2"])
    with hs.VersionedFile(path, "r+") as file, file.stage_version("v4", "v2") as version:
        version["x"][0] = 123
    assert_proved(path)


@pytest.mark.slow
def test_what_versioned_hdf5_stores_otherwise_is_unproved(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        for number in range(3):
            with file.stage_version(f"v{number}") as version:
                if not number:
                    version.create_dataset("x", data=np.arange(50.0), chunks=(10,))
                version["x"][number * 5] = -number
    with h5py.File(path, "r+") as h5:
        modify_metadata(h5, "x", dtype="f4")
    found = verified(path)
    assert (found.damages, sorted(found.unproved)) == ([], ["v0", "v1", "v2"])


def attribute(file: h5py.File) -> None:
    file[f"{VERSIONS}/v2/g"].attrs["many"] = [1, 2, 4]


def array_attribute(file: h5py.File) -> None:
    file[f"{VERSIONS}/v2/x"].attrs["units"] = "k"


def version_attribute(file: h5py.File) -> None:
    file[f"{VERSIONS}/v2"].attrs["number"] = 5


def no_array(file: h5py.File) -> None:
    del file[f"{VERSIONS}/v2/g/y"]


def other_array(file: h5py.File) -> None:
    del file[f"{VERSIONS}/v2/x"]
    file[f"{VERSIONS}/v2/x"] = file[f"{VERSIONS}/v1/x"]


def parent(file: h5py.File) -> None:
    file[f"{VERSIONS}/v2"].attrs["prev_version"] = "v0"


def time(file: h5py.File) -> None:
    file[f"{VERSIONS}/v2"].attrs["timestamp"] = "2024-01-01 00:00:00.000000+0000"


def name(file: h5py.File) -> None:
    file[VERSIONS].move("v4", "v5")
    file[VERSIONS].attrs["current_version"] = "v5"


def gone(file: h5py.File) -> None:
    del file[f"{VERSIONS}/v4"]
    file[VERSIONS].attrs["current_version"] = "v3"


def current(file: h5py.File) -> None:
    file[VERSIONS].attrs["current_version"] = "v3"


def uncommitted(file: h5py.File) -> None:
    file[f"{VERSIONS}/v4"].attrs["committed"] = np.False_


def log(file: h5py.File) -> None:
    file[LOG][30] ^= 1


DAMAGES: list[tuple[Callable[[h5py.File], None], str]] = [
    (attribute, "its attributes are not those"),
    (array_attribute, "its attributes are not those"),
    (version_attribute, "its attributes are not those"),
    (no_array, "are not those that were committed: g/y"),
    (other_array, "or the list of its chunks, is not"),
    (parent, "its parent is 'v0', but was 'v1'"),
    (time, "its time is not the one that was committed"),
    (name, "was committed, but does not exist"),
    (gone, "was committed, but does not exist"),
    (current, "the current version is 'v3', but was 'v4'"),
    (uncommitted, "was committed, but its attributes say that it was not"),
    (log, "the list of fingerprints is damaged"),
]


@pytest.mark.parametrize(("change", "said"), DAMAGES, ids=lambda one: getattr(one, "__name__", ""))
def test_damage_that_contradicts_nothing_is_found(path: Path, change: Callable[[h5py.File], None], said: str) -> None:
    with h5py.File(path, "r+") as file:
        if change is log:
            stored = file[LOG][30]
            file[LOG][30] = stored ^ 1
        else:
            change(file)
    found = verified(path)
    assert any(said in one.what for one in found.damages), found


@pytest.mark.parametrize("flag", [np.False_, np.int64(1), "yes", np.array([True]), None], ids=str)
def test_a_version_that_was_committed_is_never_removed(path: Path, flag: Any) -> None:
    """Whatever happened to the attribute that says so. One flipped bit once made the next writer remove the version."""
    with h5py.File(path, "r+") as file:
        del file[f"{VERSIONS}/v2"].attrs["committed"]
        if flag is not None:
            file[f"{VERSIONS}/v2"].attrs["committed"] = flag
    before = path.read_bytes()
    with pytest.raises(DamagedFile, match="'v2'"):
        hs.VersionedFile(path, "r+")
    with h5py.File(path) as file:
        assert "v2" in file[VERSIONS]
    assert path.read_bytes()[: len(before)] == before
    with hs.VersionedFile(path) as file:
        for ask in (lambda: file.versions, lambda: file["v2"], lambda: file[-1], lambda: file.log()):
            with pytest.raises(DamagedFile, match="'v2'"):
                ask()
        assert len(file["v4"]["x"][...])  # the other versions exist
    with pytest.raises(DamagedFile, match="'v2'"):
        hs.open(path, version="v2")


def test_what_was_not_committed_is_left_out(path: Path) -> None:
    """Nor a version whose name was committed once, at another time."""
    with hs.VersionedFile(path, "r+") as file:
        file.delete_versions("v2", repack=False)
    with h5py.File(path, "r+") as file:
        for name in ("begun", "v2"):
            begun = file.create_group(f"{VERSIONS}/{name}")
            begun.attrs.update(prev_version="v4", committed=np.False_, timestamp="2024-01-01 00:00:00.000000+0000")
    with hs.VersionedFile(path) as file:
        assert file.versions == ["v0", "v1", "v3", "v4"]
        with pytest.raises(KeyError):
            file["v2"]


def test_what_others_began_is_removed(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        begun = file.create_group(f"{VERSIONS}/begun")
        begun.attrs.update(prev_version="v4", committed=np.False_, timestamp="2024-01-01 00:00:00.000000+0000")
        file.create_group(f"{VERSIONS}/hardly begun")
        file[VERSIONS].attrs["current_version"] = "begun"
    with hs.VersionedFile(path, "r+") as file:
        assert (file.current_version, len(file)) == ("v4", 5)
    assert_proved(path)


@pytest.mark.slow
@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_file_that_is_open_for_writing_can_be_verified(tmp_path: Path, libver: str) -> None:
    """HDF5 lets nobody else open a file of its newest layouts: that is not damage, but nothing is proved."""
    path = tmp_path / "v.h5"
    with h5py.File(path, "w", libver=libver) as h5:
        file = hs.VersionedFile(h5)
        with file.stage_version("v") as version:
            version.create_dataset("x", data=np.arange(10))
        found = file.verify()
        assert (found.damages, found.proved) == ([], ["v"] if libver == "earliest" else [])
    assert_proved(path)
    if libver == "earliest":
        with hs.VersionedFile(path, "r+") as file:
            assert file.verify().proved == ["v"]
