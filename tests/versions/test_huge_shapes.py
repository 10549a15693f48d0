"""Shapes and counts that a damaged file may claim: a named error, and memory that does not depend on them."""

from __future__ import annotations

import resource
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import HyperslabError
from hyperslab.versions import repair
from hyperslab.versions.commit.virtual import create_virtual
from hyperslab.versions.layout.slots import MOST_CHUNKS

HUGE = [1 << 40, 1 << 60]
STACK = "_version_data/x"


@pytest.fixture(autouse=True)
def little_memory() -> Iterator[None]:
    """Refuse to reserve more than 4 GiB beyond what is in use."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.fixture
def good(tmp_path: Path) -> Path:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        for number in range(2):
            with file.stage_version(f"v{number}") as version:
                if not number:
                    version.create_dataset("x", data=np.arange(100), chunks=(10,))
                    version.create_dataset("y", data=np.arange(50), chunks=(10,))
                version["x"][3] = number
    return path


def everything(path: Path) -> list[str]:
    """Everything that a file can be asked. Returns the errors, all of them ours."""
    reported = []

    def tried(what: Callable[[], Any]) -> Any:
        try:
            return what()
        except HyperslabError as error:
            reported.append(str(error))
            return None

    with hs.VersionedFile(path) as file:
        for name in file:
            array = tried(lambda name=name: file[name]["x"])
            tried(lambda array=array: array[:20])
        difference = tried(lambda: file.diff("v0", "v1"))
        for array in [] if difference is None else difference.arrays.values():
            tried(array.elements)
        tried(file.log)
        tried(file.stats)
        verification = tried(file.verify)
        if verification is not None:
            reported += [damage.what for damage in verification.damages]
        tried(lambda: file.export("v1", path.with_name("v1.h5")))
    found = repair(path, path.with_name("new.h5"), keep_unproved=True)
    reported += [str(loss) for loss in found.lost]
    with suppress(HyperslabError), hs.VersionedFile(path, "r+") as file:
        with suppress(HyperslabError), file.stage_version("v2") as version:
            version["x"][0] = 7
        tried(lambda: file.modify_metadata("x", compression="lzf", repack=False))
        tried(lambda: file.delete_versions("v0", repack=False))
        tried(file.repack)
    return reported


@pytest.mark.parametrize("length", HUGE)
@pytest.mark.parametrize("is_stored", [False, True])
def test_a_version_with_too_long_an_array(good: Path, length: int, is_stored: bool) -> None:
    with h5py.File(good, "r+") as file:
        version, raw = file["_version_data/versions/v1"], file[f"{STACK}/raw_data"]
        attributes = dict(version["x"].attrs.items())
        del version["x"]
        made = create_virtual(version, "x", (length,), np.empty(0, np.int64), raw, 0)
        made.attrs.update(attributes)
        if is_stored:
            del version["x"]
            layout = h5py.VirtualLayout((length,), raw.dtype)
            layout[:10] = h5py.VirtualSource(".", raw.name, raw.shape)[:10]
            version.create_virtual_dataset("x", layout).attrs.update(attributes)
    reported = everything(good)
    assert any(f"more than {MOST_CHUNKS}" in one for one in reported), reported
    with hs.VersionedFile(good) as file:
        np.testing.assert_array_equal(file["v1"]["y"][...], np.arange(50))
    with hs.VersionedFile(good, "r+") as file:
        with file.stage_version("v9") as version:  # what it does not touch is kept
            version["y"][...] = 3
        with pytest.raises(HyperslabError, match=f"more than {MOST_CHUNKS}"), file.stage_version("v10") as version:
            version["x"][0] = 3


@pytest.mark.parametrize("length", HUGE)
def test_a_stack_that_says_to_be_longer(good: Path, length: int) -> None:
    with h5py.File(good, "r+") as file:
        file[f"{STACK}/raw_data"].resize((length,))
        file[f"{STACK}/raw_data"][3] = 5  # makes it look for a chunk elsewhere
    assert any(f"more than {MOST_CHUNKS}" in one for one in everything(good))
    with hs.VersionedFile(good.with_name("new.h5")) as file:
        np.testing.assert_array_equal(file["v1"]["y"][...], np.arange(50))


@pytest.mark.parametrize("length", HUGE)
def test_more_rows_of_hashes_than_there_are(good: Path, length: int) -> None:
    with h5py.File(good, "r+") as file:
        file[f"{STACK}/hash_table"].attrs["largest_index"] = length
    assert any("the count says" in one for one in everything(good))


@pytest.mark.parametrize("length", HUGE)
def test_a_table_of_hashes_that_says_to_be_longer(good: Path, length: int) -> None:
    with h5py.File(good, "r+") as file:
        file[f"{STACK}/hash_table"].resize((length,))
        file[f"{STACK}/hash_table"].attrs["largest_index"] = length
    everything(good)


def test_what_users_ask_for(tmp_path: Path) -> None:
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file, file.stage_version("v0") as version:
        with pytest.raises(ValueError, match="larger chunks"):
            version.create_dataset("x", shape=(1 << 60,), chunks=(4096,))
        with pytest.raises(ValueError, match="larger chunks"):
            version.create_dataset("z", shape=(5,), chunks=(1,)).resize((1 << 40,))
