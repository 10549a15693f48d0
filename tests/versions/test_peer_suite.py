"""versioned-hdf5's own tests, of its source distribution, pass with `hyperslab.versions.compat` in its place."""

from __future__ import annotations

import os
import re
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
VERSION = version(NAME)


def downloaded(folder: Path) -> Path:
    """The source distribution, by pip."""
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


@pytest.mark.timeout(1500)
def test_their_tests_pass_with_ours(pytestconfig: pytest.Config, tmp_path: Path) -> None:
    archive = downloaded(Path(pytestconfig.cache.mkdir(NAME)))
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "unpacked", filter="data")
    source = next((tmp_path / "unpacked").iterdir())
    for folder in ("tests", "test_data"):
        shutil.copytree(source / folder, tmp_path / "suite" / folder)
    settings = tmp_path / "suite" / "pytest.ini"
    settings.write_text("[pytest]\nmarkers =\n    slow\n    api\n    setup_args\naddopts = -m 'not slow'\n")
    options = [
        "-p",
        "peer_alias",
        "-p",
        "no:cacheprovider",
        "-q",
        "-rfEXs",
        "--tb=short",
        f"--basetemp={tmp_path / 'run'}",
    ]
    command = [sys.executable, "-m", "pytest", "-c", str(settings), *options, str(tmp_path / "suite" / "tests")]
    # netCDF4, where another test imported it, points HDF5 to filters that h5py's library cannot use.
    environment = {name: value for name, value in os.environ.items() if name != "HDF5_PLUGIN_PATH"}
    environment["PYTHONPATH"] = str(HERE)
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, env=environment, timeout=1400)
    print(done.stdout[-20_000:], done.stderr[-5_000:])
    assert done.returncode == 0
    counts = {what: int(number) for number, what in re.findall(r"(\d+) (\w+)", done.stdout.splitlines()[-1])}
    said = f"{counts['passed']} pass, {counts['xfailed']} are left out"
    assert said in " ".join(DOCS.read_text().split()), f"docs/versions.md must say that {said}"
