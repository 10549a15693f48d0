"""h5py's own test-suite, from its source distribution: what its tests read is read by `hyperslab.h5`, too.

Two passes: in `mirror` every read of the suite is made by both and compared; in `alias` files that the suite opens for
reading are opened by `hyperslab.h5` alone.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tarfile
from pathlib import Path

import pytest

HERE = Path(__file__).parent
VERSIONS = dict(line.split("==") for line in (HERE / "versions.txt").read_text().split())
# The suite is a part of the package h5py: here it is one of a package that shows h5py's modules.
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
# What a pass reads at least: a mirror that compares nothing passes everything.
LEAST = {"mirror": ("read", 5000), "alias": ("opened by us", 20)}
SAMPLE = ("test_attrs.py", "test_dims_dimensionproxy.py", "test_slicing.py")


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The suite of the locked version, unpacked; of the installed version, or h5py itself would be another one."""
    h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
    if h5py.__version__ != VERSIONS["h5py"]:
        pytest.skip(f"h5py {h5py.__version__} is installed, tests/suites/versions.txt has {VERSIONS['h5py']}")
    folder = tmp_path_factory.mktemp("suite")
    command = ["-m", "pip", "download", "-q", "--no-deps", "--no-binary", "h5py", f"h5py=={VERSIONS['h5py']}"]
    done = subprocess.run([sys.executable, *command, "-d", folder], capture_output=True, text=True)
    found = list(folder.glob("*.tar.gz"))
    if not found:
        pytest.skip(f"no source distribution of h5py can be had: {done.stderr.strip()[-300:]}")
    package = folder / "h5py_suite"
    package.mkdir()
    (package / "__init__.py").write_text(PACKAGE)
    with tarfile.open(found[0]) as archive:
        archive.extractall(folder, filter="data")
    (unpacked,) = folder.glob("h5py-*/h5py/tests")
    unpacked.rename(package / "tests")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n" + "".join(f"    {name}: of h5py\n" for name in MARKERS))
    return folder


def run(suite: Path, kind: str, files: list[str]) -> tuple[str, dict[str, int]]:
    """The last line of pytest, and what was compared."""
    counts = suite / f"counts-{kind}.json"
    paths = [str(HERE / "h5py"), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))}
    environment.update(HYPERSLAB_H5PY=kind, HYPERSLAB_H5PY_COUNTS=str(counts))
    options = ["-c", "pytest.ini", "-p", "mirror", "-p", "no:cacheprovider", "-q", "--no-network", "--timeout=300"]
    command = [sys.executable, "-m", "pytest", *options, *files]
    done = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    return done.stdout.strip().splitlines()[-1], json.loads(counts.read_text())


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_sample_of_h5pys_suite_reads_the_same(suite: Path) -> None:
    _, counts = run(suite, "mirror", [f"h5py_suite/tests/{name}" for name in SAMPLE])
    assert counts["read"] >= 50


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("kind", LEAST)
@pytest.mark.skipif(not os.environ.get("HYPERSLAB_SUITES"), reason="all of it: make suites")
def test_h5pys_suite_reads_the_same(suite: Path, kind: str) -> None:
    last, counts = run(suite, kind, ["h5py_suite/tests"])
    print(last, counts)
    name, least = LEAST[kind]
    assert counts[name] >= least


def test_every_test_that_is_left_out_has_its_reason() -> None:
    lines = (HERE / "h5py" / "left_out.txt").read_text().splitlines()
    entries = [line for line in lines if line.strip() and not line.startswith("#")]
    assert entries
    for line in entries:
        assert re.fullmatch(r"(mirror|alias|both): test_\w+(/\w+)?\.py(::\w+)* \| \S.{10,}", line), line
