"""Reads of unmodified programs are served, and bring the same bytes as without us."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from run_programs import python, without

DIGEST = """
    import hashlib, sys
    import numpy as np
    def show(values):
        print(hashlib.sha256(np.ascontiguousarray(values)).hexdigest(), np.shape(values), np.asarray(values).dtype)
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reads") / "a.h5"
    values = np.random.default_rng(1).integers(0, 1000, (400, 300, 10), dtype="i4")
    with h5py.File(path, "w", userblock_size=512) as made:
        made.create_dataset("deep/er/packed", data=values, chunks=(50, 60, 10), compression="gzip", shuffle=True)
        made.create_dataset("plain", data=values)
        made.create_dataset("big", data=values.astype(">f8"), chunks=(100, 300, 10), compression="lzf")
        made.create_dataset("checked", data=values, chunks=(64, 64, 10), fletcher32=True, compression="gzip")
        holes = made.create_dataset("holes", (400, 300, 10), "i4", chunks=(50, 60, 10), fillvalue=7, compression="gzip")
        holes[100:200] = values[100:200]
    return path


READS = [
    'file["deep/er/packed"][:]',
    'file["deep/er/packed"][...].T',
    'file["deep/er/packed"][13:377, 5:299, ::3]',
    'file["deep/er/packed"][3::7, 1::2]',
    'file["deep/er/packed"][[1, 5, 6, 100, 399]]',
    'file["deep/er/packed"][:, [*range(0, 200, 3), 299], 2:5]',
    'file["deep/er/packed"][np.arange(400) % 3 == 0]',
    'file["deep/er/packed"][np.arange(1_200_000).reshape(400, 300, 10) % 7 == 0]',
    'file["plain"][:]',
    'file["plain"][:, 10:200]',
    'file["big"][:]',
    'file["big"][1:399, ::2]',
    'file["checked"][:]',
    'file["holes"][:]',
    'file["holes"][40:320]',
]


def test_h5py_gets_the_same(file: Path) -> None:
    """All in one program, because one takes half a second to start: each read is served by one of ours."""
    shown = "".join(f"\n        show({read})" for read in READS)
    code = f"{DIGEST}\n    import h5py\n    with h5py.File(sys.argv[1]) as file:{shown}\n"
    ran = python(code, file)
    assert ran.status == 0, ran.errors
    assert ran.out.splitlines() == without(code, file).stdout.splitlines()
    assert len(ran.out.splitlines()) == len(READS)
    assert ran.served == len(READS), ran.counts
    assert ran.passed("failed") == 0


def test_reads_into_a_part_of_an_array(file: Path) -> None:
    code = f"""{DIGEST}
    import h5py
    with h5py.File(sys.argv[1]) as file:
        out = np.full((500, 310, 12), -1, "i4")
        file["deep/er/packed"].read_direct(out, np.s_[10:300], np.s_[50:340, 7:307, 1:11])
        show(out)
        out = np.full((400, 300, 10), -1, "i4")
        file["deep/er/packed"].read_direct(out, np.s_[::2, ::3], np.s_[100:300, 50:150])
        show(out)
        out = np.full((800, 600, 10), -1, "i4")
        file["deep/er/packed"].read_direct(out, None, np.s_[::2, ::2])
        show(out)
    """
    ran = python(code, file)
    assert ran.out == without(code, file).stdout
    assert ran.served == 3, ran.counts


def test_small_reads_stay_with_libhdf5(file: Path) -> None:
    code = """
    import sys, h5py
    with h5py.File(sys.argv[1]) as file:
        array = file["deep/er/packed"]
        print(sum(int(array[k, k, 0]) for k in range(100)))
    """
    ran = python(code, file)
    assert ran.out == without(code, file).stdout
    assert (ran.served, ran.passed("small")) == (0, 100)


def test_netcdf4_and_h5py_in_one_process(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "a.nc"
    values = np.random.default_rng(2).random((40, 200, 300)).astype("f4")
    with netcdf.Dataset(path, "w") as made:
        for name, length in zip("tyx", values.shape, strict=True):
            made.createDimension(name, length)
        made.createVariable("v", "f4", tuple("tyx"), zlib=True, chunksizes=(10, 100, 100))[:] = values
    code = f"""{DIGEST}
    import h5py, netCDF4
    with netCDF4.Dataset(sys.argv[1]) as one, h5py.File(sys.argv[1]) as other:
        show(np.asarray(one["v"][:]))
        show(other["v"][:])
        show(np.asarray(one["v"][3:33, 10:190, ::2]))
        show(other["v"][:, 5:100])
    """
    ran = python(code, path)
    assert ran.out == without(code, path).stdout
    assert ran.served == 4, ran.counts


def test_xarray_with_its_engines(tmp_path: Path) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    path = tmp_path / "a.nc"
    values = np.arange(40 * 200 * 300, dtype="f8").reshape(40, 200, 300)
    encoding = {"v": {"zlib": True, "chunksizes": (10, 100, 100)}}
    xarray.Dataset({"v": (("t", "y", "x"), values)}).to_netcdf(path, engine="netcdf4", encoding=encoding)
    code = f"""{DIGEST}
    import xarray
    with xarray.open_dataset(sys.argv[1], engine="netcdf4", cache=False) as opened:
        show(opened["v"].values)
        show(opened["v"][:, 3:, ::2].values)
    """
    ran = python(code, path)
    assert ran.out == without(code, path).stdout
    assert ran.served == 2, ran.counts
