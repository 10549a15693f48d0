"""What codecs cost is measured by the library that the program reads with: each brings its own libhdf5 and zlib."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.codecs import measure_codecs
from hyperslab.advise.demand import Demand
from hyperslab.advise.formats import codecs_of
from hyperslab.advise.pricing import Pricer
from hyperslab.advise.stored import stored_arrays
from hyperslab.model import Layout
from hyperslab.model.caller_sample import CALLERS, measured_by
from hyperslab.model.codec_sample import MeasuredCodec
from hyperslab.model.costs import CodecRate
from hyperslab.model.store_profile import StoreProfile
from hyperslab.storage.chain import CodecChain

CHAIN = CodecChain.parse("shuffle+deflate:4")


@pytest.mark.parametrize("dtype", ["<f8", [("x", "u1", (24,))]])
@pytest.mark.parametrize("caller", list(CALLERS))
def test_each_library_that_calls_hdf5_reads_the_sample(caller: str, dtype: object) -> None:
    pytest.importorskip({"PyTables": "tables"}.get(caller, caller))
    sample = np.zeros((4096,), dtype)
    (found,) = measured_by(caller, sample, (512,), [CHAIN]).values()
    assert found.ratio > 10
    assert found.rate.decode > 0


@pytest.mark.parametrize(("traced", "caller"), [("PyTables", "PyTables"), ("netCDF", "netCDF4"), ("h5py", None)])
def test_codecs_are_measured_by_the_library_that_the_trace_names(
    traced: str, caller: str | None, profile: StoreProfile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """PyTables' own zlib takes 2.7 times as long as h5py's, so its programs were priced at 0.3 to 0.5 of their time."""
    pytest.importorskip("tables")
    pytest.importorskip("netCDF4")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.zeros(4096), chunks=(512,), shuffle=True, compression=4)
    (array,) = stored_arrays(str(tmp_path / "a.h5"), ["x"], {}, [])
    demand = Demand("reads", (4096,), "f8", [], library="hdf5", caller=traced)
    first = codecs_of(array, {"hdf5": [CHAIN]}, profile, [demand])
    assert {name for name, _ in first} - {"hdf5", "hyperslab"} == ({caller} if caller else set())
    assert codecs_of(array, {"hdf5": [CHAIN]}, profile, [demand]) == first  # it is remembered by the caller's name


def test_a_candidate_has_the_rate_of_its_caller() -> None:
    measured = {
        (name, CHAIN): MeasuredCodec(CodecRate(one, 1.0), 2.0) for name, one in (("hdf5", 1.0), ("PyTables", 3.0))
    }
    pricer = Pricer(None, [], measured)
    layout = Layout((512,), None, 2.0, CHAIN.without_shuffle)
    rates = [
        pricer.rate_of(Candidate("hdf5", "hdf5", layout, CHAIN, caller=name)) for name in ("PyTables", "h5py", "HDF5")
    ]
    assert [one.decode for one in rates if one is not None] == [3.0, 1.0, 1.0]


def test_elements_of_a_table_are_shuffled_by_their_whole_width(tmp_path: Path) -> None:
    """They were sampled as numbers of 8 bytes: the ratio was not the one that HDF5 reaches with the table."""
    rows = np.zeros(512, [("index", "<i8"), ("values", "<f8", (31,))])
    rows["values"] = np.random.default_rng(3).normal(size=31)
    rows["index"] = np.arange(512)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = file.create_dataset("x", data=rows, chunks=(128,), shuffle=True, compression=4)
        reached = rows.nbytes / made.id.get_storage_size()
    found = measure_codecs((128,), rows, {"hdf5": [CHAIN]})["hdf5", CHAIN]
    assert found.ratio == pytest.approx(reached)
