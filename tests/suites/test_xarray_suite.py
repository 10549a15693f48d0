"""xarray's own backend tests with the engine "hyperslab" in place of netcdf4, h5netcdf and scipy for reading.

Each test's outcome is compared with what becomes of it with xarray's own engines. xarray's wheel has its tests.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "xarray"
FILES = ("test_backends.py", "test_backends_api.py", "test_backends_datatree.py")
# Zarr is read by xarray's engine "zarr", and Pydap asks servers.
LEFT_OUT = "not Zarr and not zarr and not Pydap and not Online"
VERSIONS = dict(line.split("==") for line in (HERE.parent / "versions.txt").read_text().split())
Outcomes = dict[str, tuple[str, str]]


def differences_listed() -> dict[str, str]:
    """The reason for each test that may differ, by its name without parameters."""
    lines = (HERE / "differences.txt").read_text().splitlines()
    rows = [line.split(" | ", 1) for line in lines if line.strip() and not line.startswith("#")]
    return {name.strip(): reason.strip() for name, reason in rows}


def outcomes(folder: Path, chosen: str, is_ours: bool) -> Outcomes:
    """What became of each test: passed, failed or skipped, and what it said."""
    import xarray

    if version("xarray") != VERSIONS["xarray"]:
        pytest.skip(f"xarray {version('xarray')} is installed, tests/suites/versions.txt has {VERSIONS['xarray']}")
    tests = Path(xarray.__file__).parent / "tests"
    if not (tests / FILES[0]).exists():
        pytest.skip("this xarray was installed without its tests")
    folder.mkdir()
    settings = folder / "pytest.ini"
    settings.write_text("[pytest]\nmarkers =\n    flaky\n    network\n    slow\n")
    written = folder / "outcomes.jsonl"
    paths = [str(HERE), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "PEER_OUTCOMES": str(written)}
    environment |= {"PEER_ALIAS": "1"} if is_ours else {}
    command = [
        *(sys.executable, "-m", "pytest", "-c", str(settings), "-p", "xarray_alias", "-p", "no:cacheprovider", "-q"),
        *("--tb=short", "--timeout=120", f"--rootdir={tests}", f"--confcutdir={tests}", "-n", "0", "-k", chosen),
        *(str(tests / name) for name in FILES),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=3000)
    assert done.returncode in (0, 1), done.stdout[-5000:] + done.stderr[-5000:]
    found: Outcomes = {}
    for line in written.read_text().splitlines():
        name, outcome, said = json.loads(line)
        if found.get(name, ("passed", ""))[0] != "failed":
            found[name] = (outcome, said)
    return found


def differing(theirs: Outcomes, ours: Outcomes) -> dict[str, str]:
    """Tests of which the outcome is another one, and what they said."""
    pairs = {name: (theirs.get(name, ("absent", ""))[0], *ours[name]) for name in ours}
    return {name: f"{one} -> {other}: {said}" for name, (one, other, said) in pairs.items() if one != other}


def check(folder: Path, chosen: str) -> None:
    theirs, ours = outcomes(folder / "theirs", chosen, False), outcomes(folder / "ours", chosen, True)
    listed = differences_listed()
    found = differing(theirs, ours)
    unlisted = {name: said for name, said in found.items() if name.split("[")[0] not in listed}
    told = "\n".join(f"{name}: {said}" for name, said in unlisted.items())
    assert not unlisted, f"xarray {version('xarray')}: {len(unlisted)} of {len(ours)} tests differ:\n{told}"
    assert sum(outcome == "passed" for outcome, _ in ours.values()) > 0.9 * sum(
        outcome == "passed" for outcome, _ in theirs.values()
    )


@pytest.mark.slow
@pytest.mark.timeout(6000)
@pytest.mark.skipif(not os.environ.get("HYPERSLAB_SUITES"), reason="all of it: make suites")
@pytest.mark.skipif(find_spec("h5netcdf") is None, reason="not installed: pip install h5netcdf")
def test_backends_of_xarray(tmp_path: Path) -> None:
    check(tmp_path, LEFT_OUT)


@pytest.mark.timeout(600)
def test_a_sample(tmp_path: Path) -> None:
    """Bytes in memory and trees: seconds instead of minutes."""
    check(tmp_path, "TestNetCDF4InMemory or TestNetCDF4DatatreeIO")


def test_every_difference_has_a_reason() -> None:
    assert all("::" in name and len(reason) > 20 for name, reason in differences_listed().items())
