"""VirtualiZarr's own tests that read references, with the engine "hyperslab" or our codec pipeline.

Each test must end as it does with kerchunk's engine and zarr-python's pipeline; `virtualizarr_reading/differences.txt`
lists the exceptions with the reason.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import peer_suites
import pytest
from peer_suites import Differences, Outcomes

xarray = pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
OURS = {"HYPERSLAB_ALIAS": "1", "ZARR_CODEC_PIPELINE__PATH": "hyperslab.archive.zarr_pipeline.Pipeline"}
READING = peer_suites.HERE / "virtualizarr_reading"
# These modules do not read any data: they compare manifests and codecs in memory.
LEFT_OUT = ("test_manifests/test_array.py", "test_manifests/test_manifest.py", "test_manifests/test_group.py")
PLUGINS = ("pytest-asyncio", "imagecodecs", "arro3-core")
SAMPLE = ["test_parsers/test_hdf/test_hdf_integration.py", "test_writers/test_kerchunk.py"]
LEAST_SAMPLE, LEAST = 15, 250


def made_air(path: Path) -> Path:
    """A data set like the one of xarray's tutorial, which most of the tests begin with: packed, with times."""
    hours = np.arange(1867128, 1867128 + 6 * 2920, 6, "f4")
    lat, lon = np.arange(75, 14, -2.5, "f4"), np.arange(200, 331, 2.5, "f4")
    values = np.random.default_rng(1).integers(22000, 32000, (len(hours), len(lat), len(lon)), "i2")
    made = xarray.Dataset(
        {"air": (("time", "lat", "lon"), values, {"units": "degK", "scale_factor": 0.01, "long_name": "air"})},
        {
            "time": (
                "time",
                hours,
                {"units": "hours since 1800-01-01", "calendar": "standard", "standard_name": "time"},
            ),
            "lat": ("lat", lat, {"units": "degrees_north"}),
            "lon": ("lon", lon, {"units": "degrees_east"}),
        },
        {"title": "made for the tests"},
    )
    made.to_netcdf(path, engine="h5netcdf")
    return path


def outcomes(folder: Path, files: list[str], is_ours: bool, processes: int) -> Outcomes:
    peer_suites.require_version("virtualizarr")
    suite = peer_suites.source_distribution("virtualizarr")
    tests = suite / "virtualizarr" / "tests"
    folder.mkdir(parents=True)
    environment = {**(OURS if is_ours else {}), "SUITE_AIR": str(made_air(folder / "air.nc"))}
    left_out = [f"--ignore={tests / name}" for name in LEFT_OUT]
    options = [
        f"-n{processes}",
        "--timeout=120",
        "-W",
        "ignore",
        "--override-ini",
        "addopts=",
        "-p",
        "virtualizarr_alias",
    ]
    return peer_suites.run_pytest(
        folder,
        [*options, *left_out, *(str(tests / name) for name in files)],
        cwd=suite,
        plugins=[READING, *map(peer_suites.plugin, PLUGINS)],
        environment=environment,
        seconds=1500,
    )[0]


@pytest.mark.slow
@pytest.mark.timeout(3600)
@peer_suites.in_full
def test_virtualizarrs_suite_ends_alike(tmp_path: Path) -> None:
    theirs = outcomes(tmp_path / "theirs", [""], is_ours=False, processes=2)
    ours = outcomes(tmp_path / "ours", [""], is_ours=True, processes=2)
    print("virtualizarr,", Differences((READING / "differences.txt").read_text()).check(theirs, ours, LEAST))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sample_of_virtualizarrs_suite_ends_alike(tmp_path: Path) -> None:
    ours = outcomes(tmp_path / "ours", SAMPLE, is_ours=True, processes=0)
    Differences((READING / "differences.txt").read_text()).check(peer_suites.passing(ours), ours, LEAST_SAMPLE)


def test_every_difference_has_its_reason() -> None:
    Differences((READING / "differences.txt").read_text())
