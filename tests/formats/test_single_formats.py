"""What the conformance suite cannot know: rules and pitfalls of single formats."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from storing import NO_NEED, round_trip, store

from hyperslab import Hyperslab
from hyperslab.errors import MissingLibrary, TrialFailed, UsageError
from hyperslab.formats import availability, make_format
from hyperslab.formats.contract import ArrayFile, ArraySpec
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout

INTEGERS = ArraySpec((12, 10), np.dtype("i4"))
CHUNKED = StoredLayout((64, 64), codecs=CodecChain([Codec("blosc-lz4", 5)]))


@pytest.fixture(autouse=True)
def _libraries() -> None:
    for name in ("hdf5", "netcdf4", "csv"):
        found = availability(name)
        if isinstance(found, MissingLibrary):
            pytest.skip(f"not installed: {found}")


def test_hdf5_reads_blocks_of_a_hyperslab(tmp_path: Path) -> None:
    data = np.arange(120, dtype="i4").reshape(12, 10)
    store(make_format("hdf5"), tmp_path / "a.h5", INTEGERS, data)
    blocks = Hyperslab((1, 0), (5, 4), (2, 2), (2, 3))
    with closing(make_format("hdf5").open(tmp_path / "a.h5", "r+")) as file:
        handle = file.open_array("a")
        expected = data[np.ix_([1, 2, 6, 7], [0, 1, 2, 4, 5, 6])]
        assert np.array_equal(handle.read(blocks), expected)
        handle.write(-expected, blocks)
        assert np.array_equal(handle.read(blocks), -expected)
        assert handle.read().sum() == data.sum() - 2 * expected.sum()


def test_hdf5_keeps_codecs_in_the_order_asked(tmp_path: Path) -> None:
    spec = ArraySpec(
        (128, 64), np.dtype("i4"), StoredLayout((64, 64), codecs=CodecChain([Codec("deflate", 2), Codec("shuffle")]))
    )
    round_trip(make_format("hdf5"), tmp_path / "a.h5", spec)
    with closing(make_format("hdf5").open(tmp_path / "a.h5")) as file:
        assert file.describe("a") == spec


def test_hdf5_codecs_work_after_netcdf4_was_imported(tmp_path: Path) -> None:
    """netCDF4 adds plug-ins to HDF5's path that h5py's HDF5 cannot use."""
    program = f"""
import netCDF4, numpy, pathlib
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArraySpec
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout
data = numpy.arange(128 * 128, dtype="i4").reshape(128, 128)
file = make_format("hdf5").create(pathlib.Path({str(tmp_path / "a.h5")!r}))
layout = StoredLayout((64, 64), codecs=CodecChain([Codec("blosc-lz4", 5)]))
handle = file.create_array("a", ArraySpec(data.shape, data.dtype, layout))
handle.write(data)
assert (handle.read() == data).all()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_hdf5_compound_refuses_what_does_not_fit() -> None:
    def spec(field_count: int) -> ArraySpec:
        return ArraySpec((4,), np.dtype([(f"f{index:04d}", "f8") for index in range(field_count)]))

    latest, default = make_format("hdf5-compound"), make_format("hdf5-compound", {"libver": None})
    assert [latest.refusal(spec(count), NO_NEED) is None for count in (1092, 2340, 2341)] == [True, True, False]
    assert [default.refusal(spec(count), NO_NEED) is None for count in (1092, 1093)] == [True, False]


def test_netcdf_blosc_on_noise_fails_with_a_remedy(tmp_path: Path) -> None:
    spec = ArraySpec((64, 64), np.dtype("i4"), CHUNKED)
    noise = np.random.default_rng(1).integers(-(2**31), 2**31, spec.shape, "i4")
    file = make_format("netcdf4").create(tmp_path / "a.nc4")
    with pytest.raises(TrialFailed, match="use zstd or deflate"):
        _write_and_close(file, spec, noise)


def _write_and_close(file: ArrayFile, spec: ArraySpec, data: np.ndarray) -> None:
    """Either step may compress: this depends on netCDF's chunk cache."""
    file.create_array("a", spec).write(data)
    file.close()


@pytest.mark.parametrize(("variant", "limit_nbytes"), [("classic", 2**31 - 4), ("64bit-offset", 2**32 - 4)])
def test_netcdf3_refuses_what_is_too_large(variant: str, limit_nbytes: int) -> None:
    netcdf3 = make_format("netcdf3", {"variant": variant})
    assert netcdf3.refusal(ArraySpec((limit_nbytes,), np.dtype("i1")), NO_NEED) is None
    assert "at most" in str(netcdf3.refusal(ArraySpec((limit_nbytes + 1,), np.dtype("i1")), NO_NEED))
    growing = ArraySpec((limit_nbytes + 1, 2), np.dtype("i1"), growable=True)
    assert netcdf3.refusal(growing, NO_NEED) is None
    with pytest.raises(UsageError, match="CDF-9"):
        make_format("netcdf3", {"variant": "CDF-9"})


def test_npy_opens_a_file_that_somebody_saved(tmp_path: Path) -> None:
    data = np.asfortranarray(np.arange(12.0).reshape(3, 4))
    np.save(tmp_path / "mine.npy", data)
    with closing(make_format("npy").open(tmp_path / "mine.npy")) as file:
        assert file.array_names() == ["mine"]
        assert file.describe("mine").shape == (3, 4)
        assert np.array_equal(file.open_array("mine").read(), data)
        part = file.open_array("mine").read(Hyperslab.from_slices(np.s_[1:3, ::2], (3, 4)))
        assert np.array_equal(part, data[1:3, ::2])


def test_npy_refuses_pickles(tmp_path: Path) -> None:
    np.save(tmp_path / "mine.npy", np.array([{}, []], object), allow_pickle=True)
    with closing(make_format("npy").open(tmp_path / "mine.npy")) as file, pytest.raises(UsageError, match="pickle"):
        file.open_array("mine")


def test_npy_writes_what_numpy_loads(tmp_path: Path) -> None:
    data = np.arange(120, dtype="i4").reshape(12, 10)
    store(make_format("npy"), tmp_path / "a", INTEGERS, data)
    assert np.array_equal(np.load(tmp_path / "a" / "a.npy"), data)


def test_raw_refuses_a_selection_outside_the_array(tmp_path: Path) -> None:
    store(make_format("raw"), tmp_path / "a", INTEGERS, np.zeros((12, 10), "i4"))
    with closing(make_format("raw").open(tmp_path / "a")) as file, pytest.raises(IndexError):
        file.open_array("a", INTEGERS).read(Hyperslab((0, 8), count=(2, 4)))


def test_one_file_per_array_needs_many_descriptors(tmp_path: Path) -> None:
    """200 open arrays in a process that may open 64 files, until the format raises its soft limit."""
    program = f"""
import pathlib, resource, numpy
_, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (64, hard))
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArraySpec
file = make_format("raw").create(pathlib.Path({str(tmp_path / "a")!r}))
handles = [file.create_array(str(index), ArraySpec((4,), numpy.dtype("i4"))) for index in range(200)]
for handle in handles:
    handle.write(numpy.arange(4, dtype="i4"))
file.close()
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert len(list((tmp_path / "a").iterdir())) == 200


def test_csv_is_plain_text(tmp_path: Path) -> None:
    data = np.array([[1.5, np.nan], [0.1, -np.inf]])
    store(make_format("csv"), tmp_path / "a", ArraySpec(data.shape, data.dtype), data)
    assert (tmp_path / "a" / "a.csv").read_text() == "1.5,nan\n0.1,-inf\n"
