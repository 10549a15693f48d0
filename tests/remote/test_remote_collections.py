"""Collections on a real web server: opened in parallel, read by ranges, mixed with local files."""

from __future__ import annotations

import io
import pickle
from pathlib import Path

import h5py
import leading
import numpy as np
import pytest
import servers

import hyperslab as hs
from hyperslab.errors import Refused


def made(folder: Path, count: int) -> tuple[list[str], np.ndarray]:
    """Files along time, each chunked and packed differently, and their concatenated content."""
    whole = []
    for n in range(count):
        numbers = np.random.default_rng(n).integers(0, 100, (6 + n, 40, 50)).astype("i2")
        with h5py.File(folder / f"part-{n}.h5", "w") as file:
            chunks = (1 + n % 3, 20, 50)
            x = file.create_dataset("x", data=numbers, chunks=chunks, compression="gzip", maxshape=(None, 40, 50))
            x.attrs["scale_factor"] = 0.5 / (1 + n % 2)
            file["names"] = ["a", "b"]
        whole.append(numbers * (0.5 / (1 + n % 2)))
    return [f"part-{n}.h5" for n in range(count)], np.concatenate(whole)


def test_files_far_away(server: servers.Nginx, root: Path) -> None:
    names, whole = made(root, 12)
    paths = [f"{server.url}/{name}" for name in names]
    paths[3] = str(root / names[3])
    group = hs.open(paths, concat=0, leave_out="names")
    np.testing.assert_array_equal(group["x"][...], whole)
    before = hs.stats()["request_count"]
    np.testing.assert_array_equal(group["x"][40:43, 3], whole[40:43, 3])
    assert hs.stats()["request_count"] - before <= 4
    again = pickle.loads(pickle.dumps(group["x"]))
    np.testing.assert_array_equal(again[5:70:9], whole[5:70:9])


def numbered(number: int) -> bytes:
    """A file with one array; all such files have the same length."""
    stored = io.BytesIO()
    with h5py.File(stored, "w") as file:
        file["x"] = np.full(9000, number)
    return stored.getvalue()


def test_urls_that_differ_in_their_queries_only(tmp_path: Path) -> None:
    """Their shown names are equal, because queries are hidden; still each file is read for itself."""
    with leading.each() as make:
        server = make(numbered(9))
        server.bodies = {f"/get?file={number}": numbered(number) for number in range(4)}
        paths = [f"{server.url}/get?file={number}" for number in range(4)]
        expected = np.repeat(np.arange(4), 9000)
        np.testing.assert_array_equal(hs.open(paths, concat=0)["x"][...], expected)
        nested = [hs.open(paths[:2], concat=0), hs.open(paths[2:], concat=0)]
        np.testing.assert_array_equal(hs.open(nested, concat=0)["x"][...], expected)
        np.testing.assert_array_equal(hs.open([paths[1], f"{server.url}/get"], concat=0)["x"][8998:9002], [1, 1, 9, 9])
        for name in ("refs.hs", "refs.json"):
            with pytest.raises(Refused, match="query"):
                hs.index(hs.open(paths, concat=0)).save(tmp_path / name)


def test_text_of_one_of_them(server: servers.Nginx, root: Path, tmp_path: Path) -> None:
    names, whole = made(root, 3)
    with h5py.File(tmp_path / "other.h5", "w") as file:
        file["y"] = np.arange(5)
    merged = hs.open([f"{server.url}/{names[0]}", tmp_path / "other.h5"])
    assert list(merged["names"][...]) == [b"a", b"b"] or list(merged["names"][...]) == ["a", "b"]
    np.testing.assert_array_equal(merged["y"][...], np.arange(5))
    hs.index(merged).save(tmp_path / "saved.hs")
    saved = hs.open(tmp_path / "saved.hs")
    np.testing.assert_array_equal(saved["x"][...], merged["x"][...])
    assert whole.shape[1:] == saved["x"].shape[1:]
