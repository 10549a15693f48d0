"""What is no file of versions, or holds none, and names that cannot be: one clear error, and nothing changes."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import HyperslabError, ReadError, Unsupported, UsageError
from hyperslab.versions import compat, repair


def text(path: Path) -> None:
    path.write_text("no HDF5\n" * 300)


def folder(path: Path) -> None:
    path.mkdir()
    (path / "inside").touch()


def pipe(path: Path) -> None:
    os.mkfifo(path)


def truncated(path: Path) -> None:
    path.write_bytes(b"\x89HDF\r\n\x1a\n")


@pytest.mark.timeout(60)
@pytest.mark.parametrize("mode", ["r", "r+", "a"])
@pytest.mark.parametrize("make", [text, folder, pipe, truncated])
def test_what_is_no_hdf5_file_is_named_and_stays(tmp_path: Path, make: Callable[[Path], None], mode: Any) -> None:
    path = tmp_path / "odd.h5"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    said = {text: "no known format|not an HDF5 file", folder: "is a folder", pipe: "is a pipe", truncated: r"odd\.h5"}
    with pytest.raises((HyperslabError, OSError), match=said[make]) as caught:
        hs.VersionedFile(path, mode)
    assert isinstance(caught.value, HyperslabError) or make is truncated
    with pytest.raises(HyperslabError, match=r"odd\.h5"):
        repair(path, tmp_path / "repaired.h5")
    with pytest.raises(HyperslabError, match=r"odd\.h5"):
        hs.open(path, version="a")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["odd.h5"]
    assert before is None or path.read_bytes() == before


def test_a_folder_or_pipe_is_not_emptied(tmp_path: Path) -> None:
    for make in (folder, pipe):
        make(tmp_path / make.__name__)
        with pytest.raises(UsageError, match=f"{make.__name__} is a"):
            hs.VersionedFile(tmp_path / make.__name__, "w")
    assert list(tmp_path.glob("*/*")) == [tmp_path / "folder" / "inside"]


def test_a_file_without_versions_yet(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    hs.VersionedFile(path, "w").close()
    with hs.VersionedFile(path, "r+") as file:
        assert (file.versions, file.current_version, file.log(), file.verify().is_whole) == ([], None, [], True)
        for ask in (lambda: file[0], lambda: file["a"], lambda: file.diff(0), lambda: file.export(None, "x.h5")):
            with pytest.raises(KeyError, match="holds no versions yet"):
                ask()
        with pytest.raises(KeyError, match="holds no versions yet"):
            file.current_version = "a"
        for names in ([], (), {}):
            with pytest.raises(ValueError, match="no versions to delete"):
                file.delete_versions(names)
        for one in (5, None, b"a", [5], [None]):
            with pytest.raises(TypeError, match="is not the name of a version"):
                file.delete_versions(one)  # type: ignore[arg-type]
        for other in (5, None):
            with pytest.raises(TypeError, match="is not the name of a version"):
                file.current_version = other  # type: ignore[assignment]
    with pytest.raises(KeyError, match="holds no versions yet"):
        hs.open(path, version=0)


def test_a_plain_hdf5_file_holds_no_versions(tmp_path: Path) -> None:
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as file:
        file["x"] = [1]
    before = path.read_bytes()
    with pytest.raises(Unsupported, match="holds no versions"):
        hs.VersionedFile(path)
    with pytest.raises(UsageError, match="holds no versions"):
        hs.VersionedFile(path, "r+")
    with pytest.raises(ReadError, match="holds no versions"):
        repair(path, tmp_path / "repaired.h5")
    assert [one.name for one in tmp_path.iterdir()] == ["plain.h5"]
    assert path.read_bytes() == before


PERCENT = ["a%b", "100%", "a%%b", "50%/x", "g/%d"]


@pytest.mark.parametrize("name", PERCENT)
def test_a_percent_sign_in_the_path_of_an_array_is_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("a") as version:
            with pytest.raises(ValueError, match=r"'%' in it.*use another name"):
                version.create_dataset(name, data=np.arange(5))
            with pytest.raises(ValueError, match="'%' in it"):
                version[name] = np.arange(5)
            assert list(version) == []
            version.create_group("50% of all").attrs["100%"] = 1
            version["x"] = np.arange(5)
        assert list(file["a"]) == ["50% of all", "x"]
        assert file.verify().proved == ["a"]
    with h5py.File(path, "r+") as h5:
        with compat.VersionedHDF5File(h5).stage_version("b") as group, pytest.raises(ValueError, match="'%' in it"):
            group.create_dataset(name, data=np.arange(5))
        assert VersionedHDF5File(h5)["b"]["x"][2] == 2


def test_an_array_with_a_percent_sign_of_an_earlier_release_can_still_be_read_changed_and_deleted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "v.h5"
    with monkeypatch.context() as patch:
        patch.setattr("hyperslab.versions.stage.staged_group.check_array_path", lambda path: None)
        with hs.VersionedFile(path, "w") as file, file.stage_version("a") as version:
            version.create_dataset("a%b", data=np.arange(9), chunks=(4,))
            version.create_dataset("x", data=np.arange(9), chunks=(4,))
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("b") as version:
            version["a%b"][0] = 7
        np.testing.assert_array_equal(file["b"]["a%b"][...], [7, *range(1, 9)])
        file.export("b", tmp_path / "b.h5")
        assert any("a%b" in (one.array or "") for one in file.verify().damages)
        with file.stage_version("c", "b") as version:
            version["fine"] = version["a%b"][...]
            del version["a%b"]
        file.delete_versions(["a", "b"])
        assert file.verify().is_whole
        np.testing.assert_array_equal(file["c"]["fine"][...], [7, *range(1, 9)])
    np.testing.assert_array_equal(hs.open(tmp_path / "b.h5")["a%b"][...], [7, *range(1, 9)])
