"""What references cannot express, and attributes that JSON can only express nearly: no export fails for them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from test_icechunk import repository, written
from test_kerchunk import mapped

import hyperslab as hs
from hyperslab.archive.zarr_store import ZarrStore
from hyperslab.errors import Refused
from hyperslab.references.virtualizarr import HyperslabParser

zarr = pytest.importorskip("zarr")
pytestmark = pytest.mark.filterwarnings("ignore:.*(Zarr V3 spec|Zarr version 3 spec|consolidated|Pandas)")


def virtualizarrs(path: Path, skip_unsupported: bool) -> Any:
    from obspec_utils.registry import ObjectStoreRegistry
    from obstore.store import LocalStore

    registry = ObjectStoreRegistry({"file://": LocalStore()})
    store = HyperslabParser(skip_unsupported=skip_unsupported)(path.as_uri(), registry)
    return zarr.open_group(store, mode="r")


def exports(path: Path) -> dict[str, Callable[[bool], Any]]:
    """For each kind of references, what exports a file and gives the group that zarr-python reads."""

    def kerchunks(suffix: str) -> Callable[[bool], Any]:
        def export(skip_unsupported: bool) -> Any:
            hs.index(path).save(path.parent / f"refs.{suffix}", skip_unsupported=skip_unsupported)
            return zarr.open_group(mapped(path.parent / f"refs.{suffix}"), mode="r", zarr_format=2)

        return export

    def icechunks(skip_unsupported: bool) -> Any:
        return written(hs.index(path), repository(path.parent), skip_unsupported=skip_unsupported)[1]

    def virtual(skip_unsupported: bool) -> Any:
        return virtualizarrs(path, skip_unsupported)

    return {
        "json": kerchunks("json"),
        "parquet": kerchunks("parquet"),
        "icechunk": icechunks,
        "virtualizarr": virtual,
    }


def arrays_of_arrays(file: h5py.File) -> None:
    for name, length in (("small", 4), ("large", 4000)):
        file.create_dataset(name, (length,), np.dtype(("f4", (3,))))


def missing_external_files(file: h5py.File) -> None:
    for name, length in (("small", 10), ("large", 1000)):
        file.create_dataset(name, (length,), "f4", external=[(f"{name}.raw", 0, 4 * length)])


@pytest.mark.parametrize("kind", ["json", "parquet", "icechunk", "virtualizarr"])
@pytest.mark.parametrize(
    ("make", "reason"),
    [(arrays_of_arrays, "its elements are arrays"), (missing_external_files, r"\.raw, which cannot be read: No such")],
)
def test_what_nobody_could_read_is_refused_by_name_or_left_out(
    tmp_path: Path, make: Callable[[h5py.File], None], reason: str, kind: str
) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["good"] = np.arange(10.0)
        make(file)
    export = exports(tmp_path / "a.h5")[kind]
    with pytest.raises(Refused, match=f"array /large of .*{reason}"):
        export(False)
    group = export(True)
    assert list(group) == ["good"]
    np.testing.assert_array_equal(group["good"][...], np.arange(10.0))


@pytest.mark.parametrize("kind", ["json", "parquet", "icechunk", "virtualizarr"])
def test_empty_arrays_in_the_metadata(tmp_path: Path, kind: str) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["good"] = np.arange(10.0)
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        for name, shape in ((b"row", (0,)), (b"plane", (0, 3))):
            h5py.h5d.create(file.id, name, h5py.h5t.STD_I32LE, h5py.h5s.create_simple(shape), compact)
    group = exports(tmp_path / "a.h5")[kind](False)
    assert {name: group[name][...].shape for name in group} == {"good": (10,), "row": (0,), "plane": (0, 3)}


def with_long_doubles(path: Path) -> None:
    with h5py.File(path, "w") as file:
        x = file["x"] = np.arange(100.0)
        x = file["x"]
        x.attrs["one"] = np.longdouble("0.1")
        x.attrs["pair"] = np.clongdouble(1.5 - 2j)
        x.attrs["several"] = np.array([0.5, 3], "longdouble")
        x.attrs["record"] = np.array((np.longdouble(2), 1), [("a", "longdouble"), ("b", "i4")])
        x.attrs["huge"] = np.longdouble("1e4000")  # no double is near it


NEAREST = {"one": 0.1, "pair": [1.5, -2.0], "several": [0.5, 3.0], "record": [2.0, 1]}


@pytest.mark.parametrize("kind", ["json", "parquet", "icechunk", "virtualizarr"])
def test_long_doubles_among_the_attributes_become_doubles(tmp_path: Path, kind: str) -> None:
    with_long_doubles(tmp_path / "a.h5")
    attributes = dict(exports(tmp_path / "a.h5")[kind](False)["x"].attrs)
    attributes.pop("_ARRAY_DIMENSIONS", None)
    assert attributes == NEAREST


def test_long_doubles_through_the_zarr_store_and_the_command(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from hyperslab.__main__ import main

    with_long_doubles(tmp_path / "a.h5")
    store = ZarrStore(hs.open(tmp_path / "a.h5"))
    assert dict(zarr.open_group(store, mode="r")["x"].attrs) == NEAREST
    monkeypatch.setattr("sys.argv", ["hyperslab", "info", str(tmp_path / "a.h5"), "--json"])
    main()
    shown = json.loads(capsys.readouterr().out)
    assert '"one": 0.1' in json.dumps(shown)


def test_a_text_without_axes_through_the_zarr_store(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["s"] = "q"
        file["many"] = ["a", "é"]
    group = zarr.open_group(ZarrStore(hs.open(tmp_path / "a.h5")), mode="r")
    assert (group["s"][()], group["many"][...].tolist()) == ("q", ["a", "é"])
