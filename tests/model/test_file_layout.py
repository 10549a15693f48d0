"""`--file` keeps what an existing file has: shards, its chunk index, its codec, and a layout without chunks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyperslab.errors import UsageError
from hyperslab.model import Hdf5, Workload, Zarr, count
from hyperslab.model.file_layout import layout_of_file
from hyperslab.model.hdf5_settings import Hdf5Settings, installed_version
from hyperslab.model.installed import GAP_KEY, JOINED_KEY, installed_zarr
from hyperslab.model.libraries import Layout, options_of

SHAPE = (400, 90)
READ = Workload.model_validate({"array": {"shape": SHAPE, "dtype": "int32"}, "accesses": [{"select": "all"}]})


def values() -> np.ndarray:
    return np.arange(np.prod(SHAPE), dtype=np.int32).reshape(SHAPE)


def hdf5_file(path: Path, libver: str | None, **options: Any) -> str:
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w", libver=libver) as file:
        file.create_dataset("x", data=values(), **options)
    return f"{path}:x"


INDEXES = {
    "btree_v1": (None, {"chunks": (20, 30)}),
    "fixed_array": ("latest", {"chunks": (20, 30)}),
    "extensible_array": ("v110", {"chunks": (20, 30), "maxshape": (None, 90)}),
    "btree_v2": ("v110", {"chunks": (20, 30), "maxshape": (None, None)}),
    "none": ("v110", {"chunks": SHAPE}),
}


@pytest.mark.parametrize("index", INDEXES)
def test_the_chunk_index_is_that_of_the_file(index: str, tmp_path: Path) -> None:
    libver, options = INDEXES[index]
    layout = layout_of_file(hdf5_file(tmp_path / "a.h5", libver, **options), READ)
    assert layout.index == index
    assert layout.max_shape == options.get("maxshape", SHAPE)
    assert options_of(Hdf5(), layout)["index"] == index
    asked = Hdf5().with_file(libver, SHAPE, Layout(layout.chunk_shape, max_shape=layout.max_shape))
    assert asked.index == index, "HDF5 would make the same one"
    assert count(READ, layout, Hdf5()).s_rindex == count(READ, Layout(layout.chunk_shape), asked).s_rindex


def test_an_index_has_the_size_of_the_largest_shape(tmp_path: Path) -> None:
    layouts = [
        layout_of_file(hdf5_file(tmp_path / f"{k}.h5", "latest", chunks=(1, 90), maxshape=most), READ)
        for k, most in enumerate((SHAPE, (800, 90)))
    ]
    small, large = (count(READ, layout, Hdf5()).s_rindex for layout in layouts)
    assert (small, large) == (28 + 18 + 8 * 400, 28 + 18 + 8 * 800)


def test_an_array_in_its_header(tmp_path: Path) -> None:
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        properties = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        properties.set_layout(h5py.h5d.COMPACT)
        file.create_dataset("x", (10,), "i4", dcpl=properties)[:] = 1
    small = Workload.model_validate({"array": {"shape": [10], "dtype": "int32"}, "accesses": [{"select": "all"}]})
    layout = layout_of_file(f"{tmp_path}/a.h5:x", small)
    assert str(layout) == "compact"
    found = count(small, layout, Hdf5())
    assert (found.n_rdisk, found.n_cache, found.n_memcpy, found.s_memcpy) == (0, 0, 1, 40)


def test_codecs_keep_their_names_and_ratios(tmp_path: Path) -> None:
    pytest.importorskip("hdf5plugin")
    import hdf5plugin

    where = hdf5_file(tmp_path / "a.h5", None, chunks=(20, 30), compression=hdf5plugin.Blosc("zstd"))
    layout = layout_of_file(where, READ)
    assert layout.codec == "blosc-zstd"
    assert (layout.ratio or 0) > 1
    summed = hdf5_file(tmp_path / "b.h5", None, chunks=(20, 30), compression="gzip", fletcher32=True)
    assert layout_of_file(summed, READ).codec == "deflate"
    only_sums = layout_of_file(hdf5_file(tmp_path / "c.h5", None, chunks=(20, 30), fletcher32=True), READ)
    assert only_sums.codec == "fletcher32"
    assert options_of(Hdf5(), only_sums)["lengths_vary"] is False


@pytest.mark.parametrize(
    ("compressors", "codec"), [(None, None), ({"name": "blosc", "configuration": {"cname": "lz4"}}, "blosc-lz4")]
)
def test_shards_are_kept(compressors: Any, codec: str | None, tmp_path: Path) -> None:
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(tmp_path / "a.zarr", mode="w")
    made = group.create_array("x", shape=SHAPE, chunks=(10, 30), shards=(100, 90), dtype="i4", compressors=compressors)
    made[...] = values() + 1
    layout = layout_of_file(f"{tmp_path}/a.zarr:x", READ)
    assert (layout.chunk_shape, layout.shard_shape, layout.codec) == ((10, 30), (100, 90), codec)
    assert count(READ, layout, Zarr()).n_open == 4, "one file for each shard"


def test_settings_of_hdf5() -> None:
    old, new = Hdf5Settings(version="1.14").library(), Hdf5Settings(version="2.0").library()
    assert (old.chunk_cache_nbytes, old.chunk_cache_slots) == (1 << 20, 521)
    assert (new.chunk_cache_nbytes, new.chunk_cache_slots) == (8 << 20, 8191)
    installed = Hdf5Settings().library()
    assert installed == Hdf5.of_version(installed_version() or "2.0")
    given = Hdf5Settings(rdcc_nbytes=5, rdcc_w0=0.0).updated(Hdf5Settings(rdcc_nslots=7, rdcc_w0=1.0)).library()
    assert (given.chunk_cache_nbytes, given.chunk_cache_slots, given.w0) == (5, 7, 1.0)
    with pytest.raises(ValueError, match="not a version"):
        Hdf5Settings(version="new")


def test_another_element_width_is_refused(tmp_path: Path) -> None:
    wide = READ.model_copy(update={"array": READ.array.model_copy(update={"dtype": "float64"})})
    with pytest.raises(UsageError, match="elements of 4 bytes"):
        layout_of_file(hdf5_file(tmp_path / "a.h5", None, chunks=(20, 30)), wide)


def test_versions_of_zarr_python_differ_in_shards() -> None:
    newest, joins_nothing, oldest = (Zarr.of_version(one) for one in ("3.4.2", "3.2.1", "3.1"))
    assert [newest, *map(Zarr.of_version, ("0+unknown", "", "3.5rc1", "4"))] == [Zarr()] * 5
    assert (joins_nothing.joined_gap_nbytes, joins_nothing.reads_overwritten) == (None, False)
    assert (oldest.joined_gap_nbytes, oldest.reads_overwritten) == (None, True)
    layout = Layout((10, 10), shard_shape=(40, 40))
    array = {"shape": [40, 40], "dtype": "float32"}
    box = {"select": "list", "boxes": [{"start": [0, 0], "shape": [20, 20]}]}
    part = Workload.model_validate({"array": array, "accesses": [box]})
    assert [count(part, layout, one).n_open for one in (newest, joins_nothing, oldest)] == [2, 5, 5]
    whole = Workload.model_validate({"array": array, "accesses": [{"select": "all", "operation": "write"}]})
    assert [count(whole, layout, one).n_open for one in (newest, joins_nothing, oldest)] == [0, 0, 1]


def test_the_configuration_of_zarr_python_is_taken() -> None:
    with pytest.importorskip("zarr").config.set({GAP_KEY: 77, JOINED_KEY: 99}):
        found = installed_zarr()
    if found.joined_gap_nbytes is not None:  # zarr-python 3.3 or newer
        assert (found.joined_gap_nbytes, found.joined_nbytes) == (77, 99)
