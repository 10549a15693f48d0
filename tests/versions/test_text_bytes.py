"""Text that is not UTF-8, because somebody wrote it so or because a bit flipped."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import Refused
from hyperslab.versions import compat, repair

WORDS = np.array([b"ab\xff", b"\xe9t\xe9", "ok", "grün", b"\xed\xa0\x80", "plain"], object)
STORED = [one.encode() if isinstance(one, str) else one for one in WORDS]


def verified(path: Path) -> Any:
    with hs.VersionedFile(path) as file:
        return file.verify()


def stored(path: Path, name: str) -> list[bytes]:
    with h5py.File(path) as file:
        return list(file[name][()])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("w", data=WORDS, dtype=h5py.string_dtype(), chunks=(4,))
        with file.stage_version("b") as version:
            version["w"][5] = "a\udcffb"  # as Python writes file names that are not UTF-8
            version["w"][4] = version["w"][0]
    return path


def test_such_text_is_kept_verified_and_changed_by_both_libraries(path: Path) -> None:
    changed = [*STORED[:4], b"ab\xff", b"a\xffb"]
    assert stored(path, "_version_data/versions/a/w") == STORED
    assert stored(path, "_version_data/versions/b/w") == changed
    with h5py.File(path, "r+") as h5, VersionedHDF5File(h5).stage_version("c") as group:
        group["w"][0] = b"\xfe"
    with hs.VersionedFile(path, "r+") as file:
        elements = file["b"]["w"][...]
        with file.stage_version("d") as version:
            version["w"][:4] = elements[:4]  # as read
            version["w"][1:2] = [elements[5]]
    found = verified(path)
    assert (found.damages, found.proved) == ([], ["a", "b", "d"])
    assert stored(path, "_version_data/versions/d/w") == [STORED[0], b"a\xffb", *changed[2:]]
    with h5py.File(path) as h5:
        assert list(VersionedHDF5File(h5)["d"]["w"][()]) == [STORED[0], b"a\xffb", *changed[2:]]
        assert list(compat.VersionedHDF5File(h5)["d"]["w"][()]) == [STORED[0], b"a\xffb", *changed[2:]]
    assert repair(path, path.with_name("r.h5")).is_complete
    assert stored(path.with_name("r.h5"), "_version_data/versions/d/w") == [STORED[0], b"a\xffb", *changed[2:]]
    with hs.VersionedFile(path, "r+") as file:
        file.modify_metadata("w", chunks=(3,))
        file.modify_metadata("w", dtype="S8")
    assert stored(path, "_version_data/versions/a/w") == STORED


def test_exports_keep_it_or_refuse_it_by_name(path: Path, tmp_path: Path) -> None:
    with hs.VersionedFile(path) as file:
        file.export("a", tmp_path / "a.h5")
        assert stored(tmp_path / "a.h5", "w") == STORED
        for name in ("a.zarr", "a.json", "a.parquet"):
            with pytest.raises(Refused, match=r"\bw\b.*not valid UTF-8"):
                file.export("a", tmp_path / name)


def test_a_flipped_bit_in_text_is_damage_that_does_not_stop_work(path: Path, tmp_path: Path) -> None:
    data = bytearray(path.read_bytes())
    at = data.find(b"plain")
    data[at + 1] ^= 0x80
    path.write_bytes(data)
    found = verified(path)
    assert [(one.array, one.versions) for one in found.damages] == [("w", ("a",))]
    assert found.proved == ["b"]
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("c", "a") as version:
            version["w"][0] = "new"
        assert file["c"]["w"][0] == "new"
        assert file.diff("a", "c")["w"].elements().count == 1
        file.export("a", tmp_path / "a.h5")
        file.repack()
    assert stored(tmp_path / "a.h5", "w")[5] == b"p\xecain"
    assert [one.path for one in repair(path, tmp_path / "r.h5").lost] == ["w", "w"]


@pytest.mark.parametrize(("value", "said"), [("a\0b", "NUL"), (b"a\0b", "NUL"), ("a\ud800", "surrogates")])
def test_text_that_hdf5_cannot_store_is_refused_at_once(path: Path, value: Any, said: str) -> None:
    with hs.VersionedFile(path, "r+") as file, file.stage_version("c") as version:
        with pytest.raises(ValueError, match=said):
            version["w"][0] = value
        with pytest.raises(ValueError, match=said):
            version.create_dataset("v", data=np.array([value], object), dtype=h5py.string_dtype())
    assert verified(path).proved == ["a", "b", "c"]
