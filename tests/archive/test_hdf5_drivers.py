"""Files that HDF5's family, split and multi drivers wrote as several: their parts are unsupported, not damaged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab import h5
from hyperslab.errors import Unsupported

DATA = np.arange(20_000.0)


def fill(file: h5py.File) -> None:
    file.create_dataset("x", data=DATA, chunks=(1000,))
    file.attrs["title"] = "in parts"


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_member_of_a_family_is_named_as_one(tmp_path: Path, libver: Any) -> None:
    with h5py.File(tmp_path / "a-%d.h5", "w", driver="family", memb_size=64_000, libver=libver) as file:
        fill(file)
    for opened in (lambda path: hs.open(path), lambda path: hs.open(path.read_bytes())):
        with pytest.raises(Unsupported, match=r"one file of a family.*h5repart.*driver='family'.*is not supported"):
            opened(tmp_path / "a-0.h5")
    with pytest.raises(OSError, match="one file of a family"):
        h5.File(tmp_path / "a-0.h5")


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_family_that_was_joined_is_a_file(tmp_path: Path, libver: Any) -> None:
    with h5py.File(tmp_path / "a-%d.h5", "w", driver="family", memb_size=64_000, libver=libver) as file:
        fill(file)
    members = [tmp_path / f"a-{number}.h5" for number in range(len(list(tmp_path.iterdir())))]
    assert len(members) > 2
    joined = b"".join(member.read_bytes().ljust(64_000, b"\0") for member in members)
    (tmp_path / "joined.h5").write_bytes(joined)
    with hs.open(tmp_path / "joined.h5") as file:
        np.testing.assert_array_equal(file["x"][...], DATA)
    with h5py.File(tmp_path / "b-%d.h5", "w", driver="family", memb_size=10_000_000, libver=libver) as file:
        fill(file)  # a family of one
    np.testing.assert_array_equal(hs.open(tmp_path / "b-0.h5")["x"][...], DATA)


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_the_metadata_of_a_split_file_are_named_as_such(tmp_path: Path, libver: Any) -> None:
    with h5py.File(tmp_path / "a", "w", driver="split", libver=libver) as file:
        fill(file)
    with pytest.raises(Unsupported, match=r"one file of several.*split or multi driver.*driver='split'"):
        hs.open(tmp_path / "a-m.h5")


def test_other_files_that_end_early_are_still_read_as_far_as_they_go(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        fill(file)
        nbytes = file.id.get_filesize()
    (tmp_path / "a.h5").write_bytes((tmp_path / "a.h5").read_bytes()[: nbytes - 100])
    assert hs.open(tmp_path / "a.h5").lost_nbytes == 100
