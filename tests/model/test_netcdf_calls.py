"""netCDF4 has a calibration of its own: what it takes beyond h5py for each opening, call and byte."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from made_up import made_up_store_profile, with_codecs
from typer.testing import CliRunner

import hyperslab as hs
from hyperslab._core import Hyperslab
from hyperslab.advise.candidate import NETCDF_UNKNOWN
from hyperslab.advise.counsel import counsel_on, counsels_on
from hyperslab.advise.demand import Demand
from hyperslab.advise.formats import codecs_of
from hyperslab.advise.results import Counsel
from hyperslab.advise.traced_demands import SummarizedTrace
from hyperslab.advise.usual_reads import compare_layouts, find_array
from hyperslab.cli import app
from hyperslab.errors import NotAStoreProfile
from hyperslab.model.costs import CallsBeyond
from hyperslab.model.netcdf_calls import _beyond, calls_beyond
from hyperslab.model.store_profile import StoreProfile, load_store_profile
from hyperslab.model.workload import Step
from hyperslab.trace.summaries import summaries_of

sys.path.append(str(Path(__file__).parents[1] / "trace"))
from made_traces import array_of, made_trace

BEYOND = CallsBeyond(opening=0.25, call=0.125, byte=2.0**-20)


def counsel(library: str, profile: StoreProfile) -> Counsel:
    array = replace(array_of((64, 32), None), library=library, layout="contiguous", filters=(), cache_nbytes=1 << 20)
    trace = made_trace([np.s_[row] for row in range(10)], array)
    ((_, found),) = counsels_on(SummarizedTrace(Path("run.trace"), trace, summaries_of(trace)), profile)
    assert not isinstance(found, str)
    return found


def test_both_libraries_are_measured_and_no_file_stays(tmp_path: Path) -> None:
    pytest.importorskip("netCDF4")
    pytest.importorskip("h5py")
    found = calls_beyond(tmp_path)
    assert found is not None
    assert all(value >= 0 for value in asdict(found).values())
    assert list(tmp_path.iterdir()) == []


def test_what_one_call_and_one_byte_take() -> None:
    h5py = {"h5py opening": 1.0, "h5py 1": 2.0, "h5py 256": 2.0, "h5py 65536": 1.0, "h5py 524288": 1.0}
    more = {"opening": 0.5, "1": 200 * 0.25, "256": 0.0, "65536": 0.0, "524288": 2 * (0.25 + 524288 * 4 * 1e-6)}
    found = _beyond(h5py | {f"netCDF4 {name}": h5py[f"h5py {name}"] + seconds for name, seconds in more.items()})
    assert asdict(found) == pytest.approx({"opening": 0.5, "call": 0.25, "byte": 1e-6})


def test_a_program_that_calls_netcdf_pays_for_it(tmp_path: Path) -> None:
    old = made_up_store_profile(tmp_path)
    profile = replace(old, netcdf4=BEYOND)
    by_h5py = counsel("h5py", profile).now.seconds
    assert by_h5py == counsel("h5py", old).now.seconds
    paid = 0.25 + 10 * 0.125 + 10 * 32 * 4 * 2.0**-20
    assert counsel("netCDF", profile).now.seconds == pytest.approx(by_h5py + paid)
    assert counsel("netCDF", old).now.seconds == by_h5py, "an old profile does not know it"
    calls = [counsel(caller, profile).now.call_seconds for caller in ("netCDF", "h5py")]
    assert calls[0] == pytest.approx(calls[1]), "a trace does not time netCDF4's own work"


def test_a_store_profile_keeps_it(tmp_path: Path) -> None:
    path = tmp_path / "profile.json"
    replace(made_up_store_profile(tmp_path), netcdf4=BEYOND).save(path)
    assert load_store_profile(path).netcdf4 == BEYOND
    document = json.loads(path.read_text())
    del document["netcdf4"]
    path.write_text(json.dumps(document))
    assert load_store_profile(path).netcdf4 is None
    for damaged in ({"call": 1.0}, {**asdict(BEYOND), "call": -1}, {**asdict(BEYOND), "byte": "x"}, [1, 2, 3]):
        path.write_text(json.dumps({**document, "netcdf4": damaged}))
        with pytest.raises(NotAStoreProfile):
            load_store_profile(path)


def test_usual_reads_of_a_netcdf_file_are_priced_by_netcdf4(tmp_path: Path) -> None:
    """`predict FILE:ARRAY` without a trace says what `advise` says of the same read."""
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "a.nc"
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("x", 4096)
        file.createVariable("x", "f4", ("x",), zlib=True, chunksizes=(64,))[:] = np.arange(4096.0)
    old = with_codecs(made_up_store_profile(tmp_path), "deflate")
    profile = replace(old, netcdf4=BEYOND)
    array = find_array(f"{path}:x")
    measured = codecs_of(array, {array.format: [array.encoding]}, profile)
    assert {name for name, _ in measured} >= {"netCDF4"}, "each library has its own zlib"
    mine, before = (compare_layouts(array, each, measured=measured) for each in (profile, old))
    for row, one in zip(mine.rows, before.rows, strict=True):
        paid = 0.25 + 0.125 + row.nbytes * 2.0**-20
        assert row.seconds == pytest.approx([(seconds or 0.0) + paid for seconds in one.seconds])
    step = Step("read", Hyperslab((0,), (1,), (4096,), (1,)))
    demand = Demand("all", (4096,), "<f4", [step])
    assert mine.rows[0].seconds[0] == counsel_on(array, [demand], profile, None, measured).now.seconds
    assert (mine.notes, before.notes) == ((), (NETCDF_UNKNOWN,))
    profile.save(tmp_path / "profile.json")
    shown = CliRunner().invoke(app, ["predict", f"{path}:x", "--profile", str(tmp_path / "profile.json")])
    assert "by netCDF4, cold" in shown.output


def test_advice_says_that_an_old_store_profile_does_not_know_netcdf(tmp_path: Path) -> None:
    netcdf = pytest.importorskip("netCDF4")
    path = tmp_path / "a.nc"
    with netcdf.Dataset(path, "w") as file:
        file.createDimension("x", 4096)
        file.createVariable("x", "f4", ("x",))[:] = np.arange(4096.0)
    said = "netCDF4 is priced as h5py with netCDF's own chunk cache: run `hyperslab calibrate` to measure it"
    old = made_up_store_profile(tmp_path)
    for profile, is_said in ((old, True), (replace(old, netcdf4=BEYOND), False)):
        (one,) = hs.advise(path, like="all", store_profile=profile)
        assert (said in one.notes) is is_said
