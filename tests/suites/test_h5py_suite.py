"""h5py's own test suite, read with `hyperslab.h5`.

There are two passes. In `mirror`, both libraries make each read of the suite, and the results are compared. In `alias`,
only `hyperslab.h5` opens the files that the suite opens for reading.
"""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import peer_suites
import pytest

# The suite imports from the package h5py that contains it. Here another package contains it, with h5py's modules.
PACKAGE = """
import sys
import h5py
import h5py._hl.files
for name, module in list(sys.modules.items()):
    if name.startswith("h5py.") and not name.startswith("h5py.tests"):
        sys.modules[__name__ + name[4:]] = module
globals().update({name: value for name, value in vars(h5py).items() if not name.startswith("__")})
"""
MARKERS = ("network", "slow", "mpi", "mpi_skip", "parallel_threads_limit", "thread_unsafe")
# The minimum that each pass must read, because a mirror that compares nothing would pass.
LEAST = {"mirror": ("read", 5000), "alias": ("opened by us", 20)}
SAMPLE = ("test_attrs.py", "test_dims_dimensionproxy.py", "test_slicing.py")


@pytest.fixture
def suite(tmp_path: Path) -> Path:
    """The suite of the installed version of h5py."""
    peer_suites.require_version("h5py")
    package = tmp_path / "h5py_suite"
    shutil.copytree(peer_suites.source_distribution("h5py") / "h5py" / "tests", package / "tests")
    (package / "__init__.py").write_text(PACKAGE)
    markers = "".join(f"    {name}: of h5py\n" for name in MARKERS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n" + markers)
    return tmp_path


def check(suite: Path, kind: str, files: list[str]) -> tuple[str, dict[str, int]]:
    """Run tests of the suite, and check that none fails. Returns how they ended, and counts of what was compared."""
    read = suite / "read.json"
    environment = {"HYPERSLAB_H5PY": kind, "HYPERSLAB_H5PY_COUNTS": str(read)}
    options = ["-c", "pytest.ini", "-p", "mirror", "--no-network", "--timeout=300"]
    plugins = [peer_suites.HERE / "h5py"]
    arguments = [*options, *(f"h5py_suite/tests/{name}" for name in files)]
    found, printed = peer_suites.run_pytest(
        suite / "run", arguments, cwd=suite, plugins=plugins, environment=environment
    )
    wrong = [f"{name}: {one.ended}: {one.said}" for name, one in found.items() if one.ended in ("failed", "unfinished")]
    assert not wrong, "\n".join(wrong) + printed[-6000:]
    return f"h5py, {kind}: {dict(peer_suites.counts(found))}", json.loads(read.read_text())


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_sample_of_h5pys_suite_reads_the_same(suite: Path) -> None:
    _, read = check(suite, "mirror", list(SAMPLE))
    assert read["read"] >= 50


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", LEAST)
@peer_suites.in_full
def test_h5pys_suite_reads_the_same(suite: Path, kind: str) -> None:
    ended, read = check(suite, kind, [""])
    print(ended, read)
    name, least = LEAST[kind]
    assert read[name] >= least


def test_every_test_that_is_left_out_has_its_reason() -> None:
    lines = (peer_suites.HERE / "h5py" / "left_out.txt").read_text().splitlines()
    entries = [line for line in lines if line.strip() and not line.startswith("#")]
    assert entries
    for line in entries:
        assert re.fullmatch(r"(mirror|alias|both): test_\w+(/\w+)?\.py(::\w+)* \| \S.{10,}", line), line
