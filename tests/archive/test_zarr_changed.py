"""A Zarr folder that others write to while it is open: never old chunks beside new ones."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import FileChanged

zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[zarr]'")


@pytest.mark.parametrize(("version", "shards"), [(2, None), (3, None), (3, (50,))])
def test_chunks_that_were_replaced_are_noticed(tmp_path: Path, version: int, shards: tuple[int, ...] | None) -> None:
    """The first chunk was read before the others were replaced: its old elements stood beside new ones."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    theirs = group.create_array("x", shape=(200,), chunks=(10,), shards=shards, dtype="i4")
    theirs[:] = 1
    with hs.open(tmp_path / "a.zarr") as opened:
        ours = opened["x"]
        assert ours[:10].sum() == 10
        theirs[:] = 2
        with pytest.raises(FileChanged, match="open it again"):
            ours[:]
        with pytest.raises(FileChanged):
            ours[95:105]
    assert hs.open(tmp_path / "a.zarr")["x"][:].sum() == 400


@pytest.mark.parametrize("version", [2, 3])
def test_who_appends_disturbs_nobody(tmp_path: Path, version: int) -> None:
    """An open array stays as it was when it was opened."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    theirs = group.create_array("x", shape=(100,), chunks=(10,), dtype="i4")
    theirs[:50] = 1
    with hs.open(tmp_path / "a.zarr") as opened:
        ours = opened["x"]
        theirs.resize((200,))
        theirs[50:] = 2
        assert ours.shape == (100,)
        assert ours[:].sum() == 50
    assert hs.open(tmp_path / "a.zarr")["x"][:].sum() == 350


def test_a_copy_of_equal_size_is_noticed_too(tmp_path: Path) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("x", shape=(20,), chunks=(10,), dtype="i4", compressors=None)[:] = 1
    with hs.open(tmp_path / "a.zarr") as opened:
        chunk = tmp_path / "a.zarr" / "x" / "1"
        (tmp_path / "new").write_bytes(np.full(10, 2, "<i4").tobytes())
        shutil.copystat(chunk, tmp_path / "new")
        (tmp_path / "new").replace(chunk)
        with pytest.raises(FileChanged):
            opened["x"][:]


def test_chunks_dated_before_1970(tmp_path: Path) -> None:
    """Some archives restore such times; they are times like others."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    group.create_array("x", shape=(20,), chunks=(10,), dtype="i4", compressors=None)[:] = 1
    chunk = tmp_path / "a.zarr" / "x" / "1"
    os.utime(chunk, ns=(-1_500_000_001, -1_500_000_001))
    with hs.open(tmp_path / "a.zarr") as opened:
        assert opened["x"][:].sum() == 20
        os.utime(chunk, ns=(-1_500_000_002, -1_500_000_002))
        with pytest.raises(FileChanged):
            opened["x"][:]
