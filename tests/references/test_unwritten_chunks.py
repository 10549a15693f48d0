"""Chunks that were never written, in references of every kind: zarr-python and xarray read what h5py reads."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_icechunk import repository, written
from test_kerchunk import mapped

import hyperslab as hs
from hyperslab.errors import Refused
from hyperslab.references.virtualizarr import HyperslabParser

zarr = pytest.importorskip("zarr")
xarray = pytest.importorskip("xarray")
pytestmark = pytest.mark.filterwarnings("ignore:.*(Zarr V3 spec|Zarr version 3 spec|consolidated|Pandas)")

DTYPES = (
    *("<M8[ns]", "<M8[s]", ">M8[ms]", "<m8[ns]", "<m8[D]", "?", "u1", ">i2", "<i4", "<u8", "<f2", "<f4", ">f8"),
    *("<c8", "<c16", "S5", "V7", "i4,f8", "u1,M8[s]", "i4,S3", "u1,V3", "S2"),
)  # fmt: skip


def stored(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """The dtype with which h5py writes another: HDF5 has no dates."""
    if dtype.names is not None:
        return np.dtype([(name, stored(dtype[name])) for name in dtype.names])
    return h5py.opaque_dtype(dtype) if dtype.kind in "Mm" else dtype


def half_written(path: Path) -> None:
    """An array of each dtype, of which h5py wrote one chunk of two."""
    with h5py.File(path, "w") as file:
        for number, name in enumerate(DTYPES):
            dtype = np.dtype(name)
            array = file.create_dataset(str(number), (400,), stored(dtype), chunks=(200,))
            array[:200] = np.arange(1, 1 + 200 * dtype.itemsize, dtype="u1").view(dtype).astype(stored(dtype))


def check(path: Path, group: Any, left_out: Any) -> None:
    """Check that a group has the arrays that h5py reads; the byte order may differ."""
    with h5py.File(path) as file:
        for number, name in enumerate(DTYPES):
            if str(number) not in left_out:
                expected, found = file[str(number)][...], np.asarray(group[str(number)][...])
                assert found.astype(expected.dtype).tobytes() == expected.tobytes(), name


@pytest.mark.parametrize("suffix", ["json", "parquet"])
def test_kerchunks_references_of_every_dtype(tmp_path: Path, suffix: str) -> None:
    half_written(tmp_path / "a.h5")
    saved = hs.index(tmp_path / "a.h5").save(tmp_path / f"refs.{suffix}", skip_unsupported=True)
    records = {str(DTYPES.index(name)) for name in ("i4,S3", "u1,V3")}
    assert set(saved.left_out) == records  # zarr-python fills their texts with '0', xarray refuses their fill value
    assert all("would be read wrongly" in reason for reason in saved.left_out.values())
    group = zarr.open_group(mapped(tmp_path / f"refs.{suffix}"), mode="r", zarr_format=2)
    check(tmp_path / "a.h5", group, records)
    with xarray.open_dataset(
        mapped(tmp_path / f"refs.{suffix}"), engine="zarr", consolidated=False, zarr_format=2
    ) as dataset:
        check(tmp_path / "a.h5", {name: dataset[name].values for name in dataset}, records)


def test_icechunks_and_virtualizarrs_references_of_every_dtype(tmp_path: Path) -> None:
    half_written(tmp_path / "a.h5")
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    referenced, group = written(hs.index(tmp_path / "a.h5"), repository(tmp_path))
    assert not referenced.left_out
    check(tmp_path / "a.h5", group, ())
    registry = ObjectStoreRegistry({"file://": LocalStore()})
    store = HyperslabParser()((tmp_path / "a.h5").as_uri(), registry)
    check(tmp_path / "a.h5", zarr.open_group(store, mode="r"), ())


@pytest.mark.parametrize("fill", ["NaT", "2020-01-02", "1970-01-01"])
def test_the_fill_value_of_dates_is_kept(tmp_path: Path, fill: str) -> None:
    value = np.datetime64(fill, "s")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    x = group.create_array("x", shape=(400,), chunks=(200,), dtype="M8[s]", fill_value=value)
    x[:200] = np.arange(200).astype("M8[s]")
    hs.index(tmp_path / "a.zarr").save(tmp_path / "refs.json")
    document = json.loads(json.loads((tmp_path / "refs.json").read_text())["refs"]["x/.zarray"])
    assert document["fill_value"] == ("NaT" if fill == "NaT" else int(value.astype("i8")))
    again = zarr.open_group(mapped(tmp_path / "refs.json"), mode="r", zarr_format=2)
    np.testing.assert_array_equal(again["x"][...], x[...])
    np.testing.assert_array_equal(hs.open(tmp_path / "refs.json")["x"][...], x[...])


def test_records_with_text_are_referenced_if_all_chunks_were_written(tmp_path: Path) -> None:
    rows = np.array([(number, b"abc") for number in range(400)], "i4,S3")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=rows, chunks=(200,))
        file.create_dataset("y", (400,), rows.dtype, chunks=(200,))[:200] = rows[:200]
    with pytest.raises(Refused, match=r"array /y of .*would be read wrongly"):
        hs.index(tmp_path / "a.h5").save(tmp_path / "refs.json")
    saved = hs.index(tmp_path / "a.h5").save(tmp_path / "refs.json", skip_unsupported=True)
    assert set(saved.left_out) == {"y"}
    group = zarr.open_group(mapped(tmp_path / "refs.json"), mode="r", zarr_format=2)
    np.testing.assert_array_equal(group["x"][...], rows)
