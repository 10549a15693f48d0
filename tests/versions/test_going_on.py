"""After a change that a failing disk cut short, the same object goes on: nothing waits, and the error tells what is
committed.
"""

from __future__ import annotations

import errno
import re
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from disks import Failing, sample

import hyperslab as hs
from hyperslab.journal import locks, settling
from hyperslab.versions.commit import writing


@pytest.fixture
def stored(tmp_path: Path) -> bytes:
    path = tmp_path / "first.h5"
    with hs.VersionedFile(path, "w") as file:
        for number in range(3):
            with file.stage_version(f"v{number}") as version:
                if not number:
                    version.create_dataset("x", data=np.arange(100.0), chunks=(10,))
                version["x"][number] = -1
    return path.read_bytes()


def stage(file: hs.VersionedFile) -> None:
    with file.stage_version("next") as version:
        version["x"][50] = 7


def set_current(file: hs.VersionedFile) -> None:
    file.current_version = "v1"


def delete(file: hs.VersionedFile) -> None:
    file.delete_versions("v1")


def delete_in_place(file: hs.VersionedFile) -> None:
    file.delete_versions("v1", repack=False)


def state(file: hs.VersionedFile) -> tuple[Any, ...]:
    return file.current_version, tuple(file.versions), tuple(float(file[name]["x"][...].sum()) for name in file)


def changed(path: Path, change: Callable[[hs.VersionedFile], None], disk: Any = None) -> tuple[Any, ...]:
    """The state after a change on a disk that works."""
    with hs.VersionedFile(path, "r+") as file:
        if disk is not None:
            disk.count = 0
        change(file)
        count = 0 if disk is None else disk.count
        return count, state(file)


def no_wait(seconds: float) -> None:
    raise AssertionError(f"it waits for {seconds} s")


def check_reading_ends_at_once(file: hs.VersionedFile, array: hs.Array, path: Path) -> None:
    """While the disk fails, the object and others in its process either read, or say why not."""
    for read in (lambda: state(file), lambda: array[...], lambda: hs.open(path, version="v0")["x"][...]):
        with pytest.raises(OSError, match=r"EIO|disk") if raises(read) else nullcontext():
            read()


def raises(read: Callable[[], Any]) -> bool:
    try:
        read()
    except OSError:
        return True
    return False


@pytest.mark.parametrize("stays", [False, True], ids=["once", "stays"])
@pytest.mark.parametrize("change", [stage, set_current, delete, delete_in_place], ids=lambda one: one.__name__)
def test_an_object_goes_on_after_a_failure_at_any_call(
    stored: bytes,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[hs.VersionedFile], None],
    stays: bool,
) -> None:
    for module in (settling, locks):
        monkeypatch.setattr(module.time, "sleep", no_wait)
    path = tmp_path / "v.h5"
    path.write_bytes(stored)
    disk = Failing(0, errno.EIO, stays=False)
    monkeypatch.setattr(writing, "SYSTEM", disk)
    with hs.VersionedFile(path) as file:
        before = state(file)
    count, after = changed(path, change, disk)
    heard = set()
    for call in sorted({1, *sample(count, 4), count - 1, count}):
        path.write_bytes(stored)
        disk = Failing(-1, errno.EIO, stays=stays)
        monkeypatch.setattr(writing, "SYSTEM", disk)
        with hs.VersionedFile(path, "r+") as file:
            untouched = hs.open(path, version="v0")["x"]
            disk.count, disk.last = 0, call
            with pytest.raises(OSError, match="EIO; ") as caught:
                change(file)
            [said] = re.findall(
                "is committed all|is not committed|is committed in the journal|may be", str(caught.value)
            )
            heard.add(said)
            if stays:
                check_reading_ends_at_once(file, untouched, path)
            disk.last = disk.count + 1_000_000
            found = state(file)
            allowed = {"is committed": after, "is not": before}
            assert found in [one for words, one in allowed.items() if said.startswith(words)] or [before, after]
            if said.startswith("is "):
                assert found == (before if said.startswith("is not") else after), (call, said)
            with file.stage_version("last") as version:
                version["x"][60] = 9
            assert file["last"]["x"][60] == 9
            assert untouched[60] == 60
        with hs.VersionedFile(path, "r+") as file:  # the next writer removes what stays
            assert file.versions == [*found[1], "last"]
        assert [one.name for one in tmp_path.iterdir() if one.name.startswith("v.h5")] == ["v.h5"]
    assert "is not committed" in heard
    assert heard - {"is not committed"}
