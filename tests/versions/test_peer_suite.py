"""The tests in versioned-hdf5's source distribution, run with `hyperslab.versions.compat` instead of versioned-hdf5.

That is a sample of them; HYPERSLAB_SUITES=1 runs them all. Either way, the list must name all that are there.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "peer_suite"
DOCS = Path(__file__).parents[2] / "docs" / "versions.md"
NAME = "versioned-hdf5"
SAMPLE = 1 if os.environ.get("HYPERSLAB_SUITES") else 4
VERSION = version(NAME)


class Expected:
    """What `outcomes.txt` says of each test: "passed", "failed" or "either"."""

    def __init__(self, text: str) -> None:
        self.modules: set[str] = set()
        self.tests: dict[str, str] = {}
        for line in text.splitlines():
            name, *said = (part.strip() for part in line.split(" | ", 2))
            if not name or name.startswith("#"):
                continue
            if "::" not in name:
                self.modules.add(name)
            else:
                self.tests[name] = {"fails": "failed", "either": "either"}[said[0]] if said else "passed"
            assert "::" not in name or len(said) in (0, 2), f"a reason is missing: {line}"

    def of(self, name: str) -> str | None:
        return self.tests.get(name, self.tests.get(name.split("[")[0]))

    def differences(self, found: dict[str, tuple[str, str]]) -> list[str]:
        """The differences from the list, one line for each test."""
        lines = []
        for name, (outcome, said) in sorted(found.items()):
            expected = self.of(name)
            if expected is None:
                lines.append(f"{name}: not in the list, {outcome}: {said}")
            elif expected not in ("either", outcome) and outcome != "left out":
                lines.append(f"{name}: listed as {expected}, but {outcome}: {said}")
        cases = {name.split("[")[0] for name in found}
        return lines + [
            f"{name}: listed, but not there" for name in sorted(self.tests) if name not in found and name not in cases
        ]

    def share_that_passes(self, found: dict[str, tuple[str, str]]) -> float:
        return sum(self.of(name) == "passed" for name in found) / len(found)


def downloaded(folder: Path) -> Path:
    """Download the source distribution with pip."""
    found = folder / f"{NAME.replace('-', '_')}-{VERSION}.tar.gz"
    if not found.exists():
        asked = [f"{NAME}=={VERSION}", "--no-deps", "--no-binary", NAME, "--no-build-isolation", "--dest", str(folder)]
        command = [sys.executable, "-m", "pip", "download", "--disable-pip-version-check", "--retries", "1", *asked]
        environment = {**os.environ, "PYTHONPATH": str(HERE / "build_system")}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=250)
        if done.returncode or not found.exists():
            said = [line for line in done.stderr.splitlines() if line.strip()] or ["nothing was said"]
            pytest.skip(f"the source distribution of {NAME} {VERSION} cannot be downloaded: {said[-1]}")
    return found


def outcomes(archive: Path, folder: Path, expected: Expected) -> dict[str, tuple[str, str]]:
    """The outcome and the output of each test; the suite's own xfail marks do not count."""
    with tarfile.open(archive) as opened:
        opened.extractall(folder / "unpacked", filter="data")
    source = next((folder / "unpacked").iterdir())
    for part in ("tests", "test_data"):
        shutil.copytree(source / part, folder / "suite" / part)
    settings = folder / "suite" / "pytest.ini"
    settings.write_text("[pytest]\nmarkers =\n    slow\n    api\n    setup_args\naddopts = -m 'not slow'\n")
    options = ["-p", "peer_alias", "-p", "no:cacheprovider", "-q", "--runxfail", f"--basetemp={folder / 'run'}"]
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-c",
        str(settings),
        *options,
        "--tb=short",
        str(folder / "suite" / "tests"),
    ]
    # If another test imported netCDF4, it points HDF5 to filters that h5py's library cannot use.
    environment = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}
    written = folder / "outcomes.jsonl"
    environment |= {"PYTHONPATH": os.pathsep.join([str(HERE), *filter(None, [environment.get("PYTHONPATH")])])}
    environment |= {"PEER_OUTCOMES": str(written), "PEER_LEFT_OUT": " ".join(expected.modules)}
    environment["PEER_SAMPLE"] = str(SAMPLE)
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment, timeout=1400)
    assert done.returncode in (0, 1), done.stdout[-5_000:] + done.stderr[-5_000:]
    found: dict[str, tuple[str, str]] = {}
    for line in written.read_text().splitlines():
        name, outcome, said = json.loads(line)  # a test that fails may also fail to clean up
        if found.get(name, ("passed", ""))[0] != "failed":
            found[name] = (outcome, said)
    return found


@pytest.mark.slow
@pytest.mark.timeout(1500)
def test_their_tests_do_what_is_listed(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    expected = Expected((HERE / "outcomes.txt").read_text())
    found = outcomes(downloaded(Path(pytestconfig.cache.mkdir(NAME))), tmp_path, expected)
    differences = expected.differences(found)
    assert not differences, f"{NAME} {VERSION} is not as outcomes.txt has it:\n" + "\n".join(differences)
    assert expected.share_that_passes(found) > 2 / 3
    assert "more than two thirds of the tests pass" in " ".join(DOCS.read_text().split())


def test_a_difference_is_named() -> None:
    """What another release may bring: a test that is new, missing, or behaves differently."""
    expected = Expected("m.py | why\na.py::f | fails | why\na.py::g\na.py::h[1]\na.py::k | either | why\na.py::gone\n")
    names = {
        "a.py::f[x]": "passed",
        "a.py::g": "skipped",
        "a.py::h[1]": "passed",
        "a.py::k": "failed",
        "a.py::new": "passed",
    }
    found = {name: (outcome, "said") for name, outcome in names.items()}
    assert expected.differences(found) == [
        "a.py::f[x]: listed as failed, but passed: said",
        "a.py::g: listed as passed, but skipped: said",
        "a.py::new: not in the list, passed: said",
        "a.py::gone: listed, but not there",
    ]
    with pytest.raises(AssertionError, match="a reason is missing"):
        Expected("a.py::f | either")
