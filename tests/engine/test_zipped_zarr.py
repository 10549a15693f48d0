"""Zarr in ZIP files, written by zarr-python's `ZipStore`."""

from __future__ import annotations

import pickle
import struct
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import DamagedFile, ReadError, Unsupported

zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")


def written(path: Path, version: int, **options: object) -> dict[str, np.ndarray]:
    """Numbers in several chunks, a scalar, text, and shards where there are any."""
    numbers = np.arange(120, dtype="f4").reshape(10, 12)
    expected = {"g/numbers": numbers, "scalar": np.array(5.5), "g/words": np.array(["a", "bb", "c", "", "e"], object)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with zarr.storage.ZipStore(path, mode="w", **options) as store:
            root = zarr.create_group(store, zarr_format=version)
            root.create_array("g/numbers", shape=(10, 12), chunks=(3, 5), dtype="f4")[...] = numbers
            root.create_array("scalar", shape=(), dtype="f8")[...] = 5.5
            root.create_array("g/words", shape=(5,), chunks=(2,), dtype="string")[...] = expected["g/words"]
            if version == 3:
                expected["shards"] = np.arange(40)
                array = root.create_array("shards", shape=(40,), chunks=(4,), shards=(16,), dtype="i8")
                array[...] = expected["shards"]
    return expected


@pytest.mark.parametrize("version", [2, 3])
def test_what_zarr_writes(tmp_path, version):
    expected = written(tmp_path / "a.zarr.zip", version)
    with hs.open(tmp_path / "a.zarr.zip", allowed=()) as file:
        assert {array.name for array in file.walk()} == {f"/{name}" for name in expected}
        for name, values in expected.items():
            assert np.asarray(file[name][...]).tolist() == values.tolist(), name
        np.testing.assert_array_equal(file["g/numbers"][2:8:2, ::3], expected["g/numbers"][2:8:2, ::3])
        again = pickle.loads(pickle.dumps(file["g/numbers"]))
    np.testing.assert_array_equal(again[...], expected["g/numbers"])


def test_what_was_never_written(tmp_path):
    with zarr.storage.ZipStore(tmp_path / "a.zip", mode="w") as store:
        root = zarr.create_group(store)
        root.create_array("a", shape=(9,), chunks=(3,), dtype="i4", fill_value=7)[3:6] = [1, 2, 3]
    assert hs.open(tmp_path / "a.zip")["a"][...].tolist() == [7, 7, 7, 1, 2, 3, 7, 7, 7]


def test_in_a_folder_of_the_file(tmp_path):
    expected = written(tmp_path / "a.zip", 3)
    with zipfile.ZipFile(tmp_path / "a.zip") as made, zipfile.ZipFile(tmp_path / "b.zip", "w") as other:
        for name in made.namelist():
            other.writestr(f"a.zarr/{name}", made.read(name))
    np.testing.assert_array_equal(hs.open(tmp_path / "b.zip")["g/numbers"][...], expected["g/numbers"])


def test_compressed_members_are_refused(tmp_path):
    written(tmp_path / "a.zip", 3, compression=zipfile.ZIP_DEFLATED)
    with (
        hs.open(tmp_path / "a.zip") as file,
        pytest.raises(Unsupported, match="compressed or encrypted"),
    ):
        file["g/numbers"][...]


def test_documents_expand_to_no_more_than_memory_bears(tmp_path):
    group = '{"zarr_format": 3, "node_type": "group"}'
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("zarr.json", group)
        for number in range(100):
            made.writestr(f"{number}/zarr.json", group)
            made.filelist[-1].file_size = 3 << 20  # as the directory tells it
    with pytest.raises(
        DamagedFile, match=r"bomb\.zip: its 101 metadata documents expand to 314572840 bytes, but at most"
    ):
        hs.open(bomb)
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("zarr.json", group)
        for number in range(2):  # either alone would do
            made.writestr(f"{number}/zarr.json", f'{{"attributes": {{"a": [{"0," * (9 << 20)}0]}}, {group[1:]}')
    with pytest.raises(DamagedFile, match="values in Zarr metadata: more than 16777216"):
        hs.open(bomb)


def test_a_directory_is_not_read_whatever_its_length(tmp_path):
    """A sparse file may say that its directory has gigabytes."""
    length = 3 << 30
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 1, 1, length, 0, 0)
    with (tmp_path / "a.zip").open("wb") as file:
        file.truncate(length)
        file.seek(length)
        file.write(end)
    with pytest.raises(DamagedFile, match=f"{length} bytes are to be read at once"):
        hs.open(tmp_path / "a.zip")


def test_damage_is_named(tmp_path):
    written(tmp_path / "a.zip", 3)
    good = (tmp_path / "a.zip").read_bytes()
    bad = tmp_path / "bad.zip"
    for content in (b"", b"PK", good[:-30], good[: len(good) // 2]):
        bad.write_bytes(content)
        with pytest.raises((DamagedFile, Unsupported), match=r"bad\.zip"):
            hs.open(bad)
    with zipfile.ZipFile(tmp_path / "a.zip") as made:
        place = made.getinfo("g/numbers/c/0/0").header_offset
    bad.write_bytes(good[:place] + b"XX" + good[place + 2 :])
    with hs.open(bad) as file, pytest.raises(DamagedFile, match=r"g/numbers/c/0/0 is not where the directory"):
        file["g/numbers"][...]
    longer = good[: place + 28] + struct.pack("<H", 65535) + good[place + 30 :]
    bad.write_bytes(longer)  # the bytes of the chunk are said to be behind others, or the end
    with hs.open(bad) as file, pytest.raises((DamagedFile, ReadError)):
        file["g/numbers"][...]
    with zipfile.ZipFile(bad, "w") as other:
        other.writestr("note.txt", "nothing")
    with pytest.raises(Unsupported, match="without Zarr metadata"):
        hs.open(bad)
