"""hyperslab opens kerchunk's Parquet, written by us, by fsspec's LazyReferenceMapper, and by VirtualiZarr."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import reference_files as made

import hyperslab as hs
from hyperslab.errors import DamagedFile, ReadError

pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")


def sparse(path: Path) -> np.ndarray[Any, Any]:
    with h5py.File(path, "w") as file:
        array = file.create_dataset("g/x", (40, 50), "i4", chunks=(3, 7), compression="gzip")
        array[10:20] = np.arange(500).reshape(10, 50)
        file["g/edge"] = np.arange(30).reshape(5, 6)
        return array[...]


@pytest.mark.parametrize("record_size", [1, 11, 100_000])
@pytest.mark.parametrize("inline_threshold", [24, 500])
def test_ours(tmp_path: Path, record_size: int, inline_threshold: int) -> None:
    made.expressible(tmp_path / "a.h5")
    refs = tmp_path / "refs.parquet"
    hs.index(tmp_path / "a.h5").save(refs, inline_threshold=inline_threshold, record_size=record_size)
    found = hs.open(refs)
    assert found.format == "references"
    with h5py.File(tmp_path / "a.h5") as file:
        for name, array in made.arrays(file):
            if name in ("small_words", "text", "complex", "truth"):
                continue
            np.testing.assert_array_equal(found[name][...], array[...], err_msg=name)
            assert found[name].shape == array.shape
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(found["contiguous"]))[3], found["contiguous"][3])
    hs.index(found).save(tmp_path / "again.hs")
    np.testing.assert_array_equal(hs.open(tmp_path / "again.hs")["contiguous"][...], found["contiguous"][...])
    hs.index(found).save(tmp_path / "again.json", inline_threshold=0, skip_unsupported=True)
    np.testing.assert_array_equal(hs.open(tmp_path / "again.json")["contiguous"][...], found["contiguous"][...])


def test_chunks_that_were_never_written(tmp_path: Path) -> None:
    expected = sparse(tmp_path / "a.h5")
    hs.index(tmp_path / "a.h5").save(tmp_path / "refs.parquet", record_size=8)
    np.testing.assert_array_equal(hs.open(tmp_path / "refs.parquet")["g/x"][...], expected)
    (tmp_path / "refs.parquet/g/x/refs.13.parq").unlink()  # fsspec writes no table if it would have no chunk
    (tmp_path / "refs.parquet/g/x/refs.0.parq").unlink()
    np.testing.assert_array_equal(hs.open(tmp_path / "refs.parquet")["g/x"][...], expected)


def test_written_by_kerchunk(tmp_path: Path) -> None:
    kerchunk = pytest.importorskip("kerchunk.hdf")
    df = pytest.importorskip("kerchunk.df")
    expected = sparse(tmp_path / "a.h5")
    refs = kerchunk.SingleHdf5ToZarr(str(tmp_path / "a.h5"), inline_threshold=100).translate()
    (tmp_path / "refs.json").write_text(json.dumps(refs))
    df.refs_to_dataframe(refs, str(tmp_path / "refs.parquet"), record_size=9)
    for name in ("refs.json", "refs.parquet"):
        found = hs.open(tmp_path / name)
        np.testing.assert_array_equal(found["g/x"][...], expected)
        np.testing.assert_array_equal(found["g/edge"][1:, ::2], np.arange(30).reshape(5, 6)[1:, ::2])


def test_written_by_virtualizarr(tmp_path: Path) -> None:
    pytest.importorskip("virtualizarr")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore
    from virtualizarr import open_virtual_dataset
    from virtualizarr.parsers import HDFParser

    values = np.arange(600.0).reshape(20, 30)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=values, chunks=(7, 9), compression="gzip", shuffle=True)
    registry = ObjectStoreRegistry({"file://": LocalStore()})
    virtual = open_virtual_dataset(f"file://{tmp_path}/a.h5", registry=registry, parser=HDFParser())
    virtual.vz.to_kerchunk(str(tmp_path / "refs.json"), format="json")
    virtual.vz.to_kerchunk(str(tmp_path / "refs.parquet"), format="parquet", record_size=7)
    for name in ("refs.json", "refs.parquet"):
        np.testing.assert_array_equal(hs.open(tmp_path / name)["x"][...], values)


def test_tables_are_read_when_their_array_is_used(tmp_path: Path) -> None:
    sparse(tmp_path / "a.h5")
    refs = tmp_path / "refs.parquet"
    hs.index(tmp_path / "a.h5").save(refs, inline_threshold=0)
    (refs / "g/x/refs.0.parq").write_bytes(b"nothing")
    found = hs.open(refs)
    assert found["g/x"].shape == (40, 50)
    assert found["g/edge"][1, 1] == 7
    with pytest.raises(DamagedFile, match=r"refs\.0\.parq"):
        found["g/x"][...]
    (tmp_path / "a.h5").unlink()
    with pytest.raises(ReadError, match=r"a\.h5"):
        hs.open(refs)["g/edge"][...]


def rewritten(refs: Path, **changes: Any) -> None:
    document = json.loads((refs / ".zmetadata").read_text())
    (refs / ".zmetadata").write_text(json.dumps({**document, **changes}))


def test_documents_that_contradict_their_tables(tmp_path: Path) -> None:
    sparse(tmp_path / "a.h5")
    refs = tmp_path / "refs.parquet"
    hs.index(tmp_path / "a.h5").save(refs, inline_threshold=0, record_size=8)
    for record_size in (7, 0, -1, "a", 1 << 60):
        rewritten(refs, record_size=record_size)
        with pytest.raises(DamagedFile):
            hs.open(refs)["g/x"][...]
    rewritten(refs, record_size=8, metadata=[])
    with pytest.raises(DamagedFile):
        hs.open(refs)
    (refs / ".zmetadata").write_text('{"record_size": ')
    with pytest.raises(DamagedFile):
        hs.open(refs)
