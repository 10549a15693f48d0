"""The own test suites of h5py, netCDF4-python and PyTables, run by `hyperslab run`.

Each test must end as it does without: there are no exceptions. `policy` is what users get, where small reads stay with
libhdf5, which is most of a suite; `all` also serves the small ones (HYPERSLAB_SERVE_SMALL), and `writes` encodes what
the tests write.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path

import peer_suites
import pytest
from peer_suites import Differences, Outcomes

from hyperslab.running import command

if command.library() is None:
    pytest.skip("no library to preload: crates/hyperslab-preload/build.sh", allow_module_level=True)

RUN = [sys.executable, "-m", "hyperslab", "run", "--json", "--"]
KINDS: dict[str, dict[str, str]] = {
    "policy": {},
    "all": {"HYPERSLAB_SERVE_SMALL": "1"},
    "writes": {"HYPERSLAB_SERVE_SMALL": "1", "HYPERSLAB_WRITES": "1"},
}
MARKERS = ("network", "slow", "mpi", "mpi_skip", "parallel_threads_limit", "thread_unsafe")


def in_wheel(package: str, module: str) -> Path:
    """The tests that are part of an installed package."""
    found = find_spec(package)
    if found is None or found.origin is None:
        pytest.skip(f"not installed: pip install {package}")
    tests = Path(found.origin).parent / module
    if not tests.exists():
        pytest.skip(f"this {package} was installed without its tests")
    return tests


def h5py_suite(folder: Path) -> tuple[Path, list[str]]:
    """h5py's tests, which are the same in its wheel and in its source distribution."""
    return in_wheel("h5py", "tests"), ["--no-network"]


def netcdf_suite(folder: Path) -> tuple[Path, list[str]]:
    """netCDF4-python's tests, copied, because they write beside themselves."""
    peer_suites.require_version("netCDF4")
    copied = folder / "test"
    shutil.copytree(peer_suites.source_distribution("netCDF4") / "test", copied)
    return copied, []


def tables_suite(folder: Path) -> tuple[Path, list[str]]:
    """PyTables' tests, which are part of its wheel."""
    return in_wheel("tables", "tests"), ["-p", "no:faulthandler"]


SUITES: dict[str, Callable[[Path], tuple[Path, list[str]]]] = {
    "h5py": h5py_suite,
    "netCDF4": netcdf_suite,
    "tables": tables_suite,
}
# The files of the sample; tests that must pass, of the sample and of all; reads that we must have served in `all`.
SAMPLE = {
    "h5py": ["test_slicing.py", "test_dataset_getitem.py", "test_big_endian_file.py"],
    "netCDF4": ["test_slicing.py", "test_endian.py", "test_compression_quant.py"],
    "tables": ["test_array.py"],
}
# Of a large file, the classes that read and write in each way; but for base classes, which pytest takes for tests.
OF_TABLES = "GI1 or GI2 or SI1 or SI2 or Basic1DOne or Basic2DTwo or PointSelection0"
SAMPLE_OPTIONS = {"tables": ["-k", f"({OF_TABLES}) and not NATestCase"]}
LEAST = {"h5py": (60, 500), "netCDF4": (5, 100), "tables": (50, 2000)}
LEAST_SERVED = {"h5py": 5, "netCDF4": 50, "tables": 500}


def outcomes(
    name: str, folder: Path, files: list[str], kind: str | None, more: Sequence[str] = ()
) -> tuple[Outcomes, int]:
    """How each test ended, and how many reads we served. `kind` None runs the suite without us."""
    folder.mkdir(parents=True)
    tests, options = SUITES[name](folder)
    settings = folder / "pytest.ini"
    settings.write_text("[pytest]\nmarkers =\n" + "".join(f"    {marker}: of h5py\n" for marker in MARKERS))
    common = ["-c", str(settings), f"--rootdir={tests}", f"--confcutdir={tests}", "--timeout=300", "-W", "ignore"]
    found, printed = peer_suites.run_pytest(
        folder / "run",
        [*common, *options, *more, "-p", "no:xdist", *(str(tests / one) for one in files)],
        cwd=tests if tests.is_relative_to(folder) else folder,
        environment={"NO_NET": "1"} | ({} if kind is None else KINDS[kind]),
        prefix=() if kind is None else RUN,
    )
    last = printed.splitlines()[-1]
    return found, json.loads(last)["served"]["reads"] if last.startswith("{") else 0


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("name", SUITES)
def test_a_sample_ends_alike(tmp_path: Path, name: str) -> None:
    more = SAMPLE_OPTIONS.get(name, ())
    ours, _ = outcomes(name, tmp_path / "ours", SAMPLE[name], "writes", more)
    Differences("").check(peer_suites.passing(ours), ours, LEAST[name][0])


@pytest.mark.slow
@pytest.mark.timeout(9000)
@pytest.mark.parametrize("name", SUITES)
@peer_suites.in_full
def test_the_suite_ends_alike(tmp_path: Path, name: str) -> None:
    theirs, _ = outcomes(name, tmp_path / "theirs", [""], None)
    for kind in KINDS:
        ours, served = outcomes(name, tmp_path / kind, [""], kind)
        print(f"{name} under `hyperslab run`, {kind}, {served} reads served,",
              Differences("").check(theirs, ours, LEAST[name][1]))  # fmt: skip
        assert kind == "policy" or served >= LEAST_SERVED[name]
