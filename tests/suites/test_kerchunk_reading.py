"""hyperslab reads kerchunk's references with the same result as zarr-python over fsspec's `reference://`.

kerchunk's source distribution has no tests. These tests make the same references as the tests in its repository: of
HDF5 with all ways to treat text, of NetCDF-3, of HDF4 and of Zarr; combined, concatenated, cut into smaller chunks, and
with inline values; as a dict, JSON and Parquet. Both libraries read each of them, and all elements are compared.
"""

from __future__ import annotations

import copy
import gc
import json
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import peer_suites
import pytest

import hyperslab as hs

fsspec = pytest.importorskip("fsspec", reason="not installed: pip install 'hyperslab[benchmarks]'")
kerchunk_hdf = pytest.importorskip("kerchunk.hdf", reason="not installed: pip install 'hyperslab[benchmarks]'")
xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")

FOREIGN = peer_suites.HERE.parents[2] / "shared" / "corpus" / "fsspec+kerchunk" / "tests"
HDF5 = [*sorted(path.name for path in FOREIGN.glob("*.h5")), "air.nc", "air_linked.nc"]
TEXT = ("null", "embed", "leave", "encode")
References = dict[str, Any]


@pytest.fixture(autouse=True)
def _at_the_locked_version() -> None:
    peer_suites.require_version("kerchunk")


def translated(translator: Any) -> References:
    """The references, made while no garbage is collected.

    kerchunk holds h5py's lock while zarr-python works in another thread: if that thread happens to collect an object
    of h5py's, both wait for ever.
    """
    gc.collect()
    gc.disable()
    try:
        found: References = translator.translate()
    finally:
        gc.enable()
    return found


@pytest.fixture
def memory() -> Iterator[Any]:
    fs = fsspec.filesystem("memory")
    fs.store.clear()
    yield fs
    fs.store.clear()


def read_by_kerchunk(references: References, **options: Any) -> dict[str, np.ndarray]:
    """Every array by zarr-python."""
    from kerchunk.utils import refs_as_store

    if not options:
        options = {"fs": fsspec.implementations.asyn_wrapper.AsyncFileSystemWrapper(fsspec.filesystem("file"))}
    group = zarr.open_group(refs_as_store(copy.deepcopy(references), **options), mode="r", zarr_format=2)
    return {name: np.asarray(node[...]) for name, node in group.members(max_depth=None) if isinstance(node, zarr.Array)}


def read_by_us(root: Any) -> dict[str, np.ndarray]:
    """Every array by hyperslab."""
    found = {}
    waiting = [root]
    while waiting:
        for node in waiting.pop().values():
            if isinstance(node, hs.Group):
                waiting.append(node)
            else:
                found[node.name.strip("/")] = np.asarray(node[...])
    return found


def same(references: References, folder: Path, options: dict[str, Any] | None = None) -> int:
    """Compare the arrays of references in each of their three forms."""
    options = options or {}
    expected = read_by_kerchunk(references, **options)
    forms: list[tuple[str, Callable[[], Any]]] = [
        ("dict", lambda: hs.open(references, storage_options=options)),
        ("file system", lambda: hs.open(fsspec.filesystem("reference", fo=copy.deepcopy(references), **options))),
    ]
    if not any(isinstance(value, bytes) for value in references.get("refs", references).values()):
        (folder / "refs.json").write_text(json.dumps(references))
        forms.append(("json", lambda: hs.open(folder / "refs.json", storage_options=options)))
    for form, opened in forms:
        found = read_by_us(opened())
        assert set(found) == set(expected), form
        for name, values in expected.items():
            assert_same(found[name], values, f"{name}, {form}")
    return len(expected)


def assert_same(found: np.ndarray, expected: np.ndarray, what: str) -> None:
    assert found.shape == expected.shape, what
    if expected.dtype.kind in "OT" or found.dtype.kind in "OT":
        assert [one or "" for one in found.tolist()] == [one or "" for one in expected.tolist()], what
        return
    assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("="), what
    np.testing.assert_array_equal(found, expected, err_msg=what)


@pytest.mark.skipif(not FOREIGN.is_dir(), reason="the foreign files are not here (../shared/corpus)")
@pytest.mark.parametrize("name", HDF5)
def test_hdf5_with_each_treatment_of_text(tmp_path: Path, name: str) -> None:
    for text in TEXT if name.startswith("vlen") else TEXT[:1]:
        for inline in (0, 10**6):
            made = kerchunk_hdf.SingleHdf5ToZarr(
                str(FOREIGN / name), inline_threshold=inline, vlen_encode=text, unsupported_inline_threshold=10**6
            )
            same(translated(made), tmp_path)


@pytest.mark.skipif(not FOREIGN.is_dir(), reason="the foreign files are not here (../shared/corpus)")
def test_hdf5_with_links_kept(tmp_path: Path) -> None:
    made = kerchunk_hdf.SingleHdf5ToZarr(str(FOREIGN / "air_linked.nc"), inline_threshold=50)
    gc.collect()
    gc.disable()
    try:
        references = made.translate(preserve_linked_dsets=True)
    finally:
        gc.enable()
    assert same(references, tmp_path) >= 6


REFUSED = "kerchunk 0.2.10 makes chunks of length 0 for arrays without elements, which zarr 3.4 refuses"


@pytest.mark.skipif(not FOREIGN.is_dir(), reason="the foreign files are not here (../shared/corpus)")
@pytest.mark.xfail(tuple(map(int, zarr.__version__.split(".")[:2])) >= (3, 4), reason=REFUSED, raises=ValueError)
def test_hdf4(tmp_path: Path) -> None:
    hdf4 = pytest.importorskip("kerchunk.hdf4")
    assert same(hdf4.HDF4ToZarr(str(FOREIGN / "MOD14.hdf4")).translate(), tmp_path) > 10


def table(first: int = 0) -> Any:
    """What a data set may have: times, numbers that are packed, gaps, text."""
    values = np.arange(24.0).reshape(4, 3, 2) + 100 * first
    return xarray.Dataset(
        {
            "data": (("time", "x", "y"), values, {"attr0": first}),
            "packed": (("x", "y"), np.where(values[0] > 2, values[0], np.nan)),
            "static": (("x",), np.arange(3, dtype="int16")),
        },
        coords={"time": np.arange(4 * first, 4 * first + 4)},
        attrs={"attr1": first},
    )


@pytest.mark.parametrize("unlimited", [[], ["time"]])
@pytest.mark.parametrize("is_in_memory", [False, True])
def test_netcdf3(tmp_path: Path, memory: Any, unlimited: list[str], is_in_memory: bool) -> None:
    netcdf3 = pytest.importorskip("kerchunk.netCDF3")
    path = tmp_path / "a.nc"
    encoding = {"packed": {"dtype": "int16", "scale_factor": 0.5, "_FillValue": -9}}
    table().to_netcdf(path, format="NETCDF3_CLASSIC", unlimited_dims=unlimited, encoding=encoding)
    url, options = str(path), {}
    if is_in_memory:
        memory.pipe("a.nc", path.read_bytes())
        url, options = "memory://a.nc", {"remote_protocol": "memory"}
    for inline in (0, 10**6):
        references = netcdf3.NetCDF3ToZarr(url, inline_threshold=inline).translate()
        assert same(references, tmp_path, options) == 4
        with (
            xarray.open_dataset(copy.deepcopy(references), engine="kerchunk", storage_options=options) as theirs,
            xarray.open_dataset(references, engine="hyperslab", storage_options=options) as ours,
            xarray.open_dataset(
                "reference://", engine="hyperslab", storage_options={"fo": references, **options}
            ) as by_url,
        ):
            xarray.testing.assert_identical(theirs.load(), ours.load())
            xarray.testing.assert_identical(ours, by_url.load())


def test_zarr_in_zip(tmp_path: Path) -> None:
    from kerchunk.zarr import ZarrToZarr

    table().to_zarr(tmp_path / "a.zarr", zarr_format=2, consolidated=False)
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as packed:
        for path in sorted((tmp_path / "a.zarr").rglob("*")):
            packed.write(path, path.relative_to(tmp_path / "a.zarr"))
    fo = {"fo": str(tmp_path / "a.zip")}
    references = ZarrToZarr("zip://", storage_options=fo).translate()
    options = {"remote_protocol": "zip", "remote_options": fo}
    assert same(references, tmp_path, options) == 4


@pytest.fixture
def parts(memory: Any) -> list[References]:
    """Four hierarchies of the same arrays, in memory."""
    from kerchunk.zarr import single_zarr

    for number in range(4):
        encoding = {"data": {"chunks": (2, 3, 2)}}
        table(number).to_zarr(f"memory://{number}.zarr", zarr_format=2, encoding=encoding, consolidated=False)
    return [single_zarr(f"memory://{number}.zarr", inline_threshold=0) for number in range(4)]


MEMORY = {"remote_protocol": "memory"}
SELECTORS: list[dict[str, Any]] = [
    {"concat_dims": ["time"]},
    {"concat_dims": ["time"], "coo_dtypes": {"time": "int16"}},
    {"concat_dims": ["time"], "coo_dtypes": {"time": "M8[s]"}},
    {"concat_dims": ["run", "time"], "coo_map": {"run": "attr:attr1"}},
    {"concat_dims": ["run"], "coo_map": {"run": "vattr:data:attr0"}, "identical_dims": ["time"]},
    {"concat_dims": ["run"], "coo_map": {"run": [5, 6, 7, 8]}, "identical_dims": ["time"]},
    {"concat_dims": ["run"], "coo_map": {"run": "INDEX"}, "identical_dims": ["time"]},
]


@pytest.mark.parametrize("options", SELECTORS, ids=repr)
def test_combined(tmp_path: Path, parts: list[References], options: dict[str, Any]) -> None:
    from kerchunk.combine import MultiZarrToZarr

    options = {"identical_dims": ["static", "packed"], **options}
    combined = MultiZarrToZarr(copy.deepcopy(parts[:2]), remote_protocol="memory", **options).translate()
    assert same(combined, tmp_path, MEMORY) >= 4
    if options["concat_dims"] == ["time"]:
        longer = MultiZarrToZarr.append(copy.deepcopy(parts[2:]), combined, remote_protocol="memory", **options)
        assert same(longer.translate(), tmp_path, MEMORY) == 4


def test_combined_in_parquet(tmp_path: Path, parts: list[References]) -> None:
    from fsspec.implementations.reference import LazyReferenceMapper
    from kerchunk.combine import MultiZarrToZarr

    target = tmp_path / "out.parquet"
    out = LazyReferenceMapper.create(str(target), record_size=3, fs=fsspec.filesystem("file"))
    MultiZarrToZarr(
        copy.deepcopy(parts), remote_protocol="memory", concat_dims=["time"], identical_dims=["static"], out=out
    ).translate()
    expected = np.concatenate([table(number)["data"].values for number in range(4)])
    for opened in (
        lambda: hs.open(LazyReferenceMapper(str(target), fs=fsspec.filesystem("file")), storage_options=MEMORY),
        lambda: hs.open(str(target), storage_options=MEMORY),
        lambda: hs.open(fsspec.filesystem("reference", fo=str(target), **MEMORY)),
    ):
        np.testing.assert_array_equal(opened()["data"][...], expected)


@pytest.mark.parametrize("axis", [0, 1])
def test_concatenated(tmp_path: Path, axis: int) -> None:
    from kerchunk.combine import concatenate_arrays
    from kerchunk.zarr import single_zarr

    made = []
    for number in range(3):
        shape, chunks = [6, 4], [3, 4]
        shape[axis], chunks[axis] = (4, 2) if number < 2 else (3, 2)  # the last chunk need not be whole
        group = zarr.open_group(tmp_path / f"{number}.zarr", mode="w", zarr_format=2)
        group.create_array("x", data=np.arange(np.prod(shape)).reshape(shape) + 100 * number, chunks=tuple(chunks))
        made.append(single_zarr(str(tmp_path / f"{number}.zarr"), inline_threshold=0))
    assert same(concatenate_arrays(made, axis=axis, path="x", check_arrays=True), tmp_path) == 1


def test_smaller_chunks_and_values_in_references(tmp_path: Path, memory: Any) -> None:
    from kerchunk.utils import inline_array, subchunk
    from kerchunk.zarr import single_zarr

    for chunks in ((10, 10), (5, 10)):
        memory.store.clear()
        group = zarr.open_group("memory://whole.zarr", mode="w", zarr_format=2)
        group.create_array("data", data=np.arange(100).reshape(10, 10), chunks=chunks, compressors=None)
        references = single_zarr("memory://whole.zarr")
        assert same(subchunk(references["refs"], "data", 5), tmp_path, MEMORY) == 1
        assert same(inline_array(references["refs"], threshold=1000, remote_options=MEMORY), tmp_path, MEMORY) == 1
