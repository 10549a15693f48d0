"""`verify` finds what is not as it was committed, and names it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import ALL
from flips import hired
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import HyperslabError
from hyperslab.versions.inspect import witness
from hyperslab.versions.inspect.chunk_stack import ChunkStack

VERSIONS = "_version_data/versions"


@pytest.fixture(scope="module")
def committed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twenty versions of three arrays, with one chunk of each changed at a time."""
    path = tmp_path_factory.mktemp("verify") / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("v0") as version:
            version.create_dataset("x", data=np.arange(1000.0), chunks=(16,))
            version.create_dataset("g/y", data=np.arange(630).reshape(30, 21), chunks=(4, 5), compression="gzip")
            words = np.array([f"word {number}" for number in range(11)], object)
            version.create_dataset("text", data=words, dtype=h5py.string_dtype(), chunks=(4,))
        for number in range(1, 20):
            with file.stage_version(f"v{number}") as version:
                version["x"][number * 3] = -number
                version["g/y"][number, number] = -number
                version["text"][number % 11] = f"new {number}"
    return path


@pytest.fixture
def path(committed: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(committed, tmp_path / "v.h5"))


def verified(path: Path, *versions: Any) -> Any:
    with hs.VersionedFile(path) as file:
        return file.verify(*versions)


@pytest.mark.slow
def test_each_chunk_is_read_once_however_many_versions_have_it(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, load = [], ChunkStack.load
    monkeypatch.setattr(ChunkStack, "load", lambda self, slots: loaded.append(len(slots)) or load(self, slots))
    seen = []
    with hs.VersionedFile(path) as file:
        found = file.verify(progress=lambda *said: seen.append(said))
    with h5py.File(path) as file:
        counts = [int(file[f"_version_data/{name}/hash_table"].attrs["largest_index"]) for name in ("x", "g/y", "text")]
    assert (found.is_whole, found.version_count, found.array_count) == (True, 20, 60)
    assert found.chunk_count == sum(counts) == sum(loaded)
    assert seen[-1][1:] == (sum(counts), sum(counts))
    one = verified(path, "v3")
    assert (one.version_count, one.chunk_count) == (1, 63 + 40 + 3)
    assert verified(path, "v3", -1, "v3").version_count == 2


@pytest.mark.slow
@pytest.mark.parametrize("name", ["x", "g/y", "text"])
def test_a_damaged_chunk_is_named_with_the_versions_that_have_it(path: Path, name: str) -> None:
    with h5py.File(path) as file:
        raw = file[f"_version_data/{name}/raw_data"]
        stored = raw.id.get_chunk_info(2)
        slot = stored.chunk_offset[0] // raw.chunks[0]
    data = bytearray(path.read_bytes())
    # In text the places, not the lengths: HDF5 would ask for gigabytes.
    for offset in range(stored.byte_offset + 4, stored.byte_offset + stored.size, 16):
        data[offset] ^= 0x55
    path.write_bytes(data)
    found = verified(path)
    assert [(one.array, one.what.split(":")[0]) for one in found.damages] == [(name, f"chunk {slot}")]
    damage, users = found.damages[0], all_users(path, name, slot)
    assert set(damage.versions) <= set(users)
    assert len(damage.versions) == min(8, len(users))
    assert damage.chunk_index is not None
    assert verified(path, damage.versions[0]).damage_count == 1
    for version in sorted({f"v{number}" for number in range(20)} - set(users))[:2]:
        assert verified(path, version).is_whole


def all_users(path: Path, name: str, slot: int) -> list[str]:
    users = []
    with h5py.File(path) as file:
        for version in file[VERSIONS]:
            array = file[f"{VERSIONS}/{version}"].get(name)
            if array is not None:
                starts = [one.src_space.get_select_bounds()[0][0] for one in array.virtual_sources()]
                users += [version] if slot * array.attrs["chunks"][0] in starts else []
    return users


def edit(path: Path, change: Any) -> Any:
    with h5py.File(path, "r+") as file:
        change(file)
    found = verified(path)
    assert not found.is_whole
    return found.damages


@pytest.mark.slow
def test_hashes_that_are_wrong_or_missing(path: Path, committed: Path) -> None:
    def wrong_hash(file: Any) -> None:
        table = file["_version_data/x/hash_table"]
        row = table[5]
        row["hash"][0] ^= 1
        table[5] = row

    damages = edit(path, wrong_hash)
    [damage] = [one for one in damages if one.chunk_index is not None]  # others are the fingerprints of its versions
    assert (damage.array, damage.chunk_index, damage.versions[0]) == ("x", (5,), "v0")
    assert {one.array for one in damages} == {"x"}

    def wrong_rows(file: Any) -> None:
        table = file["_version_data/x/hash_table"]
        rows = table[:]
        rows["shape"][6] = [-16, 0]
        rows["shape"][7] = rows["shape"][8]
        table[:] = rows

    shutil.copy(committed, path)
    said = " ".join(one.what for one in edit(path, wrong_rows))
    assert "1 rows of its hash table belong to no chunk" in said
    assert "1 of its chunks have several rows" in said
    assert "2 of its chunks have no hash, the first is chunk 6" in said

    def fewer_count(file: Any) -> None:
        file["_version_data/x/hash_table"].attrs["largest_index"] = 60

    shutil.copy(committed, path)
    assert "have no hash" in edit(path, fewer_count)[0].what

    def more_count(file: Any) -> None:
        file["_version_data/x/hash_table"].attrs["largest_index"] = 10**9

    shutil.copy(committed, path)
    said = " ".join(one.what for one in edit(path, more_count))
    assert "the count says 1000000000 rows" in said, said


@pytest.mark.slow
def test_versions_that_contradict_each_other(path: Path, committed: Path) -> None:
    def no_parent(file: Any) -> None:
        file[f"{VERSIONS}/v7"].attrs["prev_version"] = "gone"

    assert [(one.what, one.versions) for one in edit(path, no_parent)] == [
        ("its parent 'gone' does not exist", ("v7",)),
        ("its parent is 'gone', but was 'v6'", ("v7",)),
    ]

    def circle(file: Any) -> None:
        file[f"{VERSIONS}/v7"].attrs["prev_version"] = "v9"

    shutil.copy(committed, path)
    said = {one.what for one in edit(path, circle)}
    assert said == {"its ancestors form a circle", "its parent is 'v9', but was 'v6'"}

    def nowhere(file: Any) -> None:
        file[VERSIONS].attrs["current_version"] = "gone"

    shutil.copy(committed, path)
    assert "names 'gone' as the current version" in edit(path, nowhere)[0].what

    def chunks(file: Any) -> None:
        file[f"{VERSIONS}/v3/x"].attrs["chunks"] = np.array([8])

    shutil.copy(committed, path)
    assert edit(path, chunks)[0].array == "x"

    def no_chunks(file: Any) -> None:
        del file["_version_data/g/y/raw_data"]

    shutil.copy(committed, path)
    assert {one.array for one in edit(path, no_chunks)} == {"g/y"}


def test_what_was_never_committed_is_no_damage(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        begun = file.create_group(f"{VERSIONS}/begun")
        begun.attrs["committed"], begun.attrs["prev_version"] = np.False_, "v19"
        file[VERSIONS].attrs["current_version"] = "begun"  # versioned-hdf5 writes this before it commits
    found = verified(path)
    assert (found.is_whole, found.uncommitted) == (True, ["begun"])


def test_a_table_of_hashes_with_gaps_is_told_and_a_commit_of_ours_mends_it(tmp_path: Path) -> None:
    """versioned-hdf5 makes such tables when it rebuilds hashes after `del file[name]` deleted a version."""
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        versions = VersionedHDF5File(file)
        for number in range(3):
            with versions.stage_version(f"v{number}", "") as version:
                version.create_dataset("x", data=np.arange(40) + number, chunks=(10,))
        del versions["v0"]
        versions.rebuild_hashtables()
    assert "commit of versioned-hdf5 overwrites them" in " ".join(one.what for one in verified(path).damages)
    with hs.VersionedFile(path, "r+") as file, file.stage_version("ours", "v2") as staged:
        staged["x"][5:15] = -1
    assert verified(path).is_whole
    with h5py.File(path, "r+") as file, VersionedHDF5File(file).stage_version("theirs") as staged:
        staged["x"][35] = -2
    assert verified(path).is_whole
    with hs.VersionedFile(path) as file:
        for number in (1, 2):
            np.testing.assert_array_equal(file[f"v{number}"]["x"][...], np.arange(40) + number)
        assert [file["theirs"]["x"][place] for place in (4, 5, 14, 15, 35)] == [6, -1, -1, 17, -2]


@pytest.mark.slow
def test_no_flipped_bit_goes_unseen(committed: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever byte is damaged: each version is what it was, or `verify` reports it. (HYPERSLAB_CRASHES=all: 500.)"""
    monkeypatch.setattr(witness, "hired", hired)
    data, rng, path = committed.read_bytes(), np.random.default_rng(11), tmp_path / "flipped.h5"
    expected = contents(committed)
    seen = 0
    for place in rng.integers(0, len(data), 500 if ALL else 12).tolist():
        path.write_bytes(data[:place] + bytes([data[place] ^ (1 << int(rng.integers(8)))]) + data[place + 1 :])
        try:
            is_whole = verified(path).is_whole
            found = contents(path)
        except HyperslabError:
            seen += 1
            continue
        seen += not is_whole
        assert not is_whole or found == expected, f"byte {place}"
    assert seen > 3


def contents(path: Path) -> dict[str, dict[str, Any]]:
    with hs.VersionedFile(path) as file:
        return {
            name: {array.name: (array.shape, str(array.dtype), array[...].tolist()) for array in file[name].walk()}
            for name in ("v0", "v9", "v19")
            if name in file
        }
