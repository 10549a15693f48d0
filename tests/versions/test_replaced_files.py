"""A file that is replaced, moved or deleted while it is open for writing: every change is refused, and nothing of the
file that has the name now is touched.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import Counting, sample

import hyperslab as hs
from hyperslab.errors import FileReplaced
from hyperslab.versions import compat
from hyperslab.versions.commit import writing


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Three versions, and beside them the file that will replace them."""
    folder = tmp_path / "folder"
    folder.mkdir()
    path = folder / "survey.h5"
    for one, factor in ((path, 1), (folder / "new.h5", -1)):
        one.write_bytes(made(factor))
    os.link(path, folder / "kept.h5")
    return path


@cache
def made(factor: int) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "made.h5")
        with hs.VersionedFile(path, "w") as file:
            for number in range(3):
                with file.stage_version(f"v{number}") as version:
                    if not number:
                        version.create_dataset("x", data=factor * np.arange(1000), chunks=(10,))
                        version.create_dataset("y", data=factor * np.arange(9.0), chunks=(4,))
                    version["x"][number] = factor * 100
        return path.read_bytes()


def as_rsync(path: Path) -> None:
    """Copy to a temporary name in the folder, and rename."""
    shutil.copy(path.with_name("new.h5"), path.with_name(".survey.h5.x7"))
    path.with_name(".survey.h5.x7").rename(path)


def moved_over(path: Path) -> None:
    path.with_name("new.h5").rename(path)


def by_another_kind(path: Path) -> None:
    path.with_name("text").write_text("no HDF5")
    path.with_name("text").rename(path)


def deleted(path: Path) -> None:
    path.unlink()


def moved_away(path: Path) -> None:
    path.rename(path.with_name("elsewhere.h5"))


def folder_moved(path: Path) -> None:
    path.parent.rename(path.parent.with_name("other"))


REPLACEMENTS = (as_rsync, moved_over, by_another_kind, deleted, moved_away, folder_moved)


def stage(file: hs.VersionedFile) -> None:
    with file.stage_version("next") as version:
        version["x"][5] = 7


def set_current(file: hs.VersionedFile) -> None:
    file.current_version = "v1"


def set_the_same(file: hs.VersionedFile) -> None:
    file.current_version = "v2"


def delete(file: hs.VersionedFile) -> None:
    file.delete_versions("v1")


def delete_in_place(file: hs.VersionedFile) -> None:
    file.delete_versions("v1", repack=False)


def recode(file: hs.VersionedFile) -> None:
    file.modify_metadata("y", chunks=(3,))


def repack(file: hs.VersionedFile) -> None:
    file.repack()


CHANGES = (stage, set_current, set_the_same, delete, delete_in_place, recode, repack)


def content(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir() if one.is_file()}


def versions_of(path: Path) -> tuple[list[str], str | None]:
    with hs.VersionedFile(path) as file:
        for name in file:
            assert (file[name]["x"][...] >= 0).all(), "the elements of the file that replaced this one"
        return file.versions, file.current_version


@pytest.mark.parametrize("replace", REPLACEMENTS, ids=lambda one: one.__name__)
def test_no_change_is_made_after_a_replacement(path: Path, replace: Callable[[Path], None]) -> None:
    folder = path.parent
    with hs.VersionedFile(path, "r+") as file:
        stage(file)
        replace(path)
        folder = folder if folder.exists() else folder.with_name("other")
        before = content(folder)
        for change in CHANGES:
            with pytest.raises(FileReplaced, match=r"survey\.h5.*Nothing was written.*open the path again"):
                change(file)
            assert content(folder) == before, change
    assert content(folder) == before
    assert versions_of(folder / "kept.h5") == (["v0", "v1", "v2", "next"], "next")


@pytest.mark.parametrize("replace", REPLACEMENTS, ids=lambda one: one.__name__)
def test_what_was_staged_before_a_replacement_is_kept_in_memory(path: Path, replace: Callable[[Path], None]) -> None:
    file, folder, before = hs.VersionedFile(path, "r+"), path.parent, {}

    def staged() -> Any:
        with file.stage_version("next") as version:
            version["x"][15:25] = 7
            version["y"][...] = 5
            version.create_dataset("z", data=np.arange(3))
            yield version
            replace(path)
            before.update(content(folder if folder.exists() else folder.with_name("other")))

    steps = staged()
    version = next(steps)
    with pytest.raises(FileReplaced, match="What you staged is still in memory"):
        next(steps)
    np.testing.assert_array_equal(version["x"][10:30], [*range(10, 15), *[7] * 10, *range(25, 30)])
    np.testing.assert_array_equal(version["y"][...], np.full(9, 5.0))
    np.testing.assert_array_equal(version["z"][...], [0, 1, 2])
    try:
        rest = version["x"][...]
    except OSError:
        pass
    else:
        assert (rest >= 0).all(), "elements of the other file"
    file.close()
    folder = folder if folder.exists() else folder.with_name("other")
    assert content(folder) == before
    assert versions_of(folder / "kept.h5") == (["v0", "v1", "v2"], "v2")


class Replacing(Counting):
    """Replaces the file before one of its calls."""

    def __init__(self, path: Path, last: int) -> None:
        super().__init__()
        self.path, self.last = path, last
        self.names: list[str] = []

    def meets(self) -> bool:
        if super().meets() and self.count == self.last:
            as_rsync(self.path)
        return True

    def rename(self, path: str, to: str) -> None:
        self.last += self.count + 1 == self.last  # the check and the rename are two calls: nothing comes between
        super().rename(path, to)


@pytest.mark.parametrize("change", [stage, set_current, delete_in_place, repack], ids=lambda one: one.__name__)
def test_a_replacement_at_any_call_is_noticed(
    path: Path, change: Callable[[hs.VersionedFile], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    stored, new = path.read_bytes(), path.with_name("new.h5").read_bytes()
    states = {(("v0", "v1", "v2"), "v2")}
    calls = [0]
    for call in calls:  # the first, undisturbed, says which others there are
        path.unlink()
        path.write_bytes(stored)
        path.with_name("kept.h5").unlink()
        os.link(path, path.with_name("kept.h5"))
        disk = Replacing(path, 0)
        monkeypatch.setattr(writing, "SYSTEM", disk)
        with hs.VersionedFile(path, "r+") as file:
            disk.count, disk.last = 0, call
            if not call:
                change(file)
                calls += sample(disk.count, 6)
            else:
                with pytest.raises(FileReplaced):
                    change(file)
        names, current = versions_of(path if not call else path.with_name("kept.h5"))
        if not call:
            states.add((tuple(names), current))
        else:
            assert path.read_bytes() == new, call
        assert (tuple(names), current) in states, call
        assert {one.name for one in path.parent.iterdir()} == {"survey.h5", "new.h5", "kept.h5"}, call
    assert len(calls) > 4


def test_a_link_that_leads_elsewhere_now(path: Path) -> None:
    link = path.with_name("link.h5")
    link.symlink_to(path)
    with hs.VersionedFile(link, "r+") as file:
        stage(file)
        link.unlink()
        link.symlink_to(path.with_name("new.h5"))
        before = content(path.parent)
        with pytest.raises(FileReplaced, match=r"link\.h5"):
            set_current(file)
        with pytest.raises(FileReplaced, match=r"link\.h5"):
            file["v1"]
        assert content(path.parent) == before
    with hs.VersionedFile(path, "r+") as file:
        stale = file["next"]
        path.rename(path.with_name("moved.h5"))
        path.symlink_to("moved.h5")  # the same file, but its journal would lie where nobody looks for it
        set_current(file)
        assert stale["x"][5] == 7


def test_a_file_that_gets_its_name_back_goes_on(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        path.rename(path.with_name("away.h5"))
        with pytest.raises(FileReplaced, match="there is no file"):
            stage(file)
        path.with_name("away.h5").rename(path)
        stage(file)
    assert versions_of(path) == (["v0", "v1", "v2", "next"], "next")


@pytest.mark.parametrize("driver", [None, "stdio"])
def test_a_file_of_h5py_is_compared_too(path: Path, driver: str | None) -> None:
    with h5py.File(path, "r+", driver=driver) as h5:
        file = hs.VersionedFile(h5)
        theirs = compat.VersionedHDF5File(h5)
        stage(file)
        as_rsync(path)
        before = path.read_bytes()
        for change in (stage, set_current, delete):
            with pytest.raises(FileReplaced):
                change(file)
        with pytest.raises(FileReplaced):
            theirs.current_version = "v1"
    assert path.read_bytes() == before
    assert versions_of(path.with_name("kept.h5")) == (["v0", "v1", "v2", "next"], "next")
