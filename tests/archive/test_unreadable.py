"""Damage is distinguished from missing support, for arrays, links and attributes; some reads are never tried."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

import hyperslab
from hyperslab.archive import Array
from hyperslab.errors import DamagedFile, Unsupported


@pytest.fixture
def never_h5py(monkeypatch) -> None:
    """h5py is installed, but reading through it fails the test."""
    monkeypatch.setattr("hyperslab.archive.tree.fallback.is_possible", lambda: True)
    monkeypatch.setattr("hyperslab.archive.tree.fallback.read", lambda *_: pytest.fail("read through h5py"))
    monkeypatch.setattr("hyperslab.archive.tree.fallback.dtype_of", lambda *_: pytest.fail("read through h5py"))


def overwrite(path: Path, offset: int, new: bytes) -> None:
    with path.open("r+b") as file:
        file.seek(offset)
        file.write(new)


def test_an_array_past_the_end_is_damaged_and_not_read_through_h5py(tmp_path, never_h5py) -> None:
    path = tmp_path / "short.h5"
    with h5py.File(path, "w") as file:
        file["first"] = np.arange(10)
        file["second"] = np.zeros(100_000)
    path.write_bytes(path.read_bytes()[:-1000])
    with hyperslab.open(path) as file:
        second = file["second"]
        assert isinstance(second, Array)
        assert (second.via, second.unsupported, second.dtype) == ("hyperslab", None, np.float64)
        assert "past the end of the file" in str(second.damaged)
        assert "damaged: " in repr(second)
        assert second.fill_value is None
        for read in (lambda: second[0], lambda: second.plan()):
            with pytest.raises(DamagedFile, match=r"/second of .*short\.h5.*past the end of the file"):
                read()
        assert file["first"][3] == 3
        assert file["first"].damaged is None


def test_a_damaged_chunk_table_is_damage(tmp_path, never_h5py) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver="latest") as file:
        file.create_dataset("a", data=np.zeros(1000), chunks=(10,), maxshape=(None,))
    place = path.read_bytes().index(b"EAHD")
    overwrite(path, place + 8, b"\xff")
    with hyperslab.open(path) as file:
        assert file["a"].damaged
        with pytest.raises(DamagedFile, match=f"offset {place}"):
            file["a"][0]


@pytest.mark.parametrize("libver", ["earliest", "latest"])
def test_a_link_to_a_damaged_object_is_damage(tmp_path, libver) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        file["good"] = 1
        file["bad"] = 2
        address = h5py.h5o.get_info(file["bad"].id).addr
    overwrite(path, address, b"\xee\xee\xee\xee")
    with hyperslab.open(path) as file:
        with pytest.raises(DamagedFile, match=r"'/bad' in .*a\.h5"):
            file["bad"]
        assert "bad" in file
        assert list(file.arrays) == ["good"]
        assert file["good"][()] == 1


def test_a_committed_type_is_unsupported(tmp_path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file["type"] = np.dtype("f8")
    with hyperslab.open(path) as file, pytest.raises(Unsupported, match="a committed datatype"):
        file["type"]


def test_an_attribute_tells_which_it_is(tmp_path) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        file.attrs["text"] = ["some text", "elsewhere"]
        file.attrs["number"] = 1
    place = path.read_bytes().index(b"GCOL")
    overwrite(path, place, b"NONE")
    with hyperslab.open(path) as file:
        assert file.attrs["number"] == 1
        with pytest.raises(DamagedFile, match=r'attribute "text".*global heap'):
            file.attrs["text"]
