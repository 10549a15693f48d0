"""VirtualiZarr's own tests that read references, with the engine "hyperslab" or our codec pipeline.

Each test must end as it does with kerchunk's engine and zarr-python's pipeline; `virtualizarr_reading/differences.txt`
lists the exceptions with the reason.
"""

from __future__ import annotations

from pathlib import Path

import peer_suites
import pytest
from peer_suites import Differences, Outcomes

OURS = {"HYPERSLAB_ALIAS": "1", "ZARR_CODEC_PIPELINE__PATH": "hyperslab.archive.zarr_pipeline.Pipeline"}
READING = peer_suites.HERE / "virtualizarr_reading"
AIR = peer_suites.HERE.parents[2] / "shared" / "corpus" / "fsspec+kerchunk" / "tests" / "air.nc"
# These modules do not read any data: they compare manifests and codecs in memory.
LEFT_OUT = ("test_manifests/test_array.py", "test_manifests/test_manifest.py", "test_manifests/test_group.py")
SAMPLE = ["test_parsers/test_hdf/test_hdf_integration.py", "test_writers/test_kerchunk.py"]
LEAST_SAMPLE, LEAST = 15, 250


def outcomes(folder: Path, files: list[str], is_ours: bool) -> Outcomes:
    peer_suites.require_version("virtualizarr")
    suite = peer_suites.source_distribution("virtualizarr")
    tests = suite / "virtualizarr" / "tests"
    environment = {**(OURS if is_ours else {}), **({"SUITE_AIR": str(AIR)} if AIR.exists() else {})}
    left_out = [f"--ignore={tests / name}" for name in LEFT_OUT]
    options = ["-n", "2", "--timeout=120", "-W", "ignore", "--override-ini", "addopts=", "-p", "virtualizarr_alias"]
    return peer_suites.run_pytest(
        folder,
        [*options, *left_out, *(str(tests / name) for name in files)],
        cwd=suite,
        plugins=[READING, peer_suites.plugin("pytest-asyncio")],
        environment=environment,
        seconds=1500,
    )[0]


def check(folder: Path, files: list[str], least: int) -> None:
    theirs, ours = outcomes(folder / "theirs", files, False), outcomes(folder / "ours", files, True)
    print("virtualizarr,", Differences((READING / "differences.txt").read_text()).check(theirs, ours, least))


@pytest.mark.slow
@pytest.mark.timeout(3600)
@peer_suites.in_full
def test_virtualizarrs_suite_ends_alike(tmp_path: Path) -> None:
    check(tmp_path, [""], LEAST)


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sample_of_virtualizarrs_suite_ends_alike(tmp_path: Path) -> None:
    check(tmp_path, SAMPLE, LEAST_SAMPLE)


def test_every_difference_has_its_reason() -> None:
    Differences((READING / "differences.txt").read_text())
