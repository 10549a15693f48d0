"""xarray's own backend tests, in which the engine "hyperslab" replaces netcdf4, h5netcdf and scipy for reading.

Each test must end as it does with xarray's own engines; `xarray/differences.txt` lists the exceptions with the reason.
The tests are part of xarray's wheel.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import peer_suites
import pytest
from peer_suites import Differences, Outcomes

FILES = ("test_backends.py", "test_backends_api.py", "test_backends_datatree.py")
# Leave out tests of the engine "zarr", which we do not replace, and of Pydap, which needs servers.
CHOSEN = "not Zarr and not zarr and not Pydap and not Online"
SAMPLE = "TestNetCDF4InMemory or TestNetCDF4DatatreeIO"
DIFFERENCES = peer_suites.HERE / "xarray" / "differences.txt"
LEAST_SAMPLE, LEAST = 15, 1500


def outcomes(folder: Path, chosen: str, is_ours: bool, processes: int) -> Outcomes:
    xarray = pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
    peer_suites.require_version("xarray")
    tests = Path(xarray.__file__).parent / "tests"
    if not (tests / FILES[0]).exists():
        pytest.skip("this xarray was installed without its tests")
    folder.mkdir()
    settings = folder / "pytest.ini"
    settings.write_text("[pytest]\nmarkers =\n    flaky\n    network\n    slow\n")
    options = ["-c", str(settings), "-p", "xarray_alias", "--timeout=120", f"--rootdir={tests}"]
    return peer_suites.run_pytest(
        folder / "run",
        [*options, f"--confcutdir={tests}", f"-n{processes}", "-k", chosen, *(str(tests / name) for name in FILES)],
        cwd=folder,
        plugins=[peer_suites.HERE / "xarray", peer_suites.plugin("pytest-asyncio")],
        environment={"HYPERSLAB_ALIAS": "1"} if is_ours else None,
    )[0]


@pytest.mark.slow
@pytest.mark.timeout(7200)
@peer_suites.in_full
@pytest.mark.skipif(find_spec("h5netcdf") is None, reason="not installed: pip install h5netcdf")
def test_xarrays_backend_tests_end_alike(tmp_path: Path) -> None:
    theirs = outcomes(tmp_path / "theirs", CHOSEN, is_ours=False, processes=2)
    ours = outcomes(tmp_path / "ours", CHOSEN, is_ours=True, processes=2)
    print("xarray,", Differences(DIFFERENCES.read_text()).check(theirs, ours, LEAST))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_sample_of_xarrays_backend_tests_ends_alike(tmp_path: Path) -> None:
    """Bytes in memory and trees: seconds instead of minutes."""
    ours = outcomes(tmp_path / "ours", SAMPLE, is_ours=True, processes=0)
    Differences(DIFFERENCES.read_text()).check(peer_suites.passing(ours), ours, LEAST_SAMPLE)


def test_every_difference_has_its_reason() -> None:
    Differences(DIFFERENCES.read_text())
