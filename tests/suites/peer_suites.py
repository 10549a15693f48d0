"""The test suites of other libraries: fetched in the version that versions.txt names, run, and compared test by test.

A suite runs twice: unchanged ("theirs"), and with a plugin that replaces a part of the library with hyperslab ("ours").
Each test must end in the same way. A file of differences lists the exceptions: each line has a test and the reason.
"""

from __future__ import annotations

import collections
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import pytest

HERE = Path(__file__).parent
KEPT = HERE.parents[1] / "target" / "suites"  # keeps what was fetched, so that it is fetched only once
VERSIONS = dict(line.split("==") for line in (HERE / "versions.txt").read_text().split())
BUILD_SYSTEMS = ("mesonpy", "hatchling.build", "setuptools.build_meta", "flit_core.buildapi")
FOUND_BY = [str(Path(name).absolute()) for name in os.environ.get("PYTHONPATH", "").split(os.pathsep) if name]
MOST_SECONDS_TO_START = 300

in_full = pytest.mark.skipif(not os.environ.get("HYPERSLAB_SUITES"), reason="all of it: make suites")


@dataclass(frozen=True)
class Outcome:
    """How a test ended ("passed", "failed", "skipped", or "unfinished"), and the last line of its message."""

    ended: str
    said: str = ""


Outcomes = dict[str, Outcome]


def require_version(name: str) -> None:
    """Skip the test unless the locked version is installed, because the tests belong to that version."""
    try:
        found = version(name)
    except PackageNotFoundError:
        pytest.skip(f"not installed: pip install {name}")
    if found != VERSIONS[name]:
        pytest.skip(f"{name} {found} is installed, tests/suites/versions.txt has {VERSIONS[name]}")


def source_distribution(name: str) -> Path:
    """Unpack the source distribution of a package, and return its folder. Skips the test if it cannot be fetched."""
    kept = KEPT / f"{name}-{VERSIONS[name]}"
    if not kept.exists():
        with _new_folder() as folder:
            systems = _build_systems(Path(folder) / "systems")
            only_source = ["--no-binary", name, "--no-build-isolation"]
            _pip("download", "--no-deps", *only_source, f"{name}=={VERSIONS[name]}", "-d", folder, path=systems)
            (archive,) = Path(folder).glob("*.tar.gz")
            with tarfile.open(archive) as opened:
                opened.extractall(Path(folder) / "unpacked", filter="data")
            (unpacked,) = (Path(folder) / "unpacked").iterdir()
            _keep(unpacked, kept)
    return kept


def plugin(name: str) -> Path:
    """Return a folder with a package that only the suites need, so developers do not have to install it."""
    kept = KEPT / f"plugin-{name}-{VERSIONS[name]}-{sys.implementation.cache_tag}"
    if not kept.exists():
        with _new_folder() as folder:
            _pip("install", "--no-deps", f"{name}=={VERSIONS[name]}", "--target", str(Path(folder) / "plugin"))
            _keep(Path(folder) / "plugin", kept)
    return kept


def _new_folder() -> tempfile.TemporaryDirectory[str]:
    KEPT.mkdir(parents=True, exist_ok=True)
    return tempfile.TemporaryDirectory(dir=KEPT)


def _keep(made: Path, kept: Path) -> None:
    """Rename a folder. If another process was faster, its folder has the same content."""
    try:
        made.rename(kept)
    except OSError:
        if not kept.exists():
            raise


def _build_systems(folder: Path) -> Path:
    """Create modules with the names of the build systems. They only give metadata, and build nothing."""
    for name in BUILD_SYSTEMS:
        module = folder.joinpath(*name.split(".")).with_suffix(".py")
        module.parent.mkdir(parents=True, exist_ok=True)
        (module.parent / "__init__.py").touch()  # or the installed package would come first
        shutil.copy(HERE / "build_systems" / "metadata_only.py", module)
    with (folder / "setuptools" / "build_meta.py").open("a") as out:
        out.write("\n\nclass __legacy__:\n")  # of projects that name no build system
        out.write("    prepare_metadata_for_build_wheel = staticmethod(prepare_metadata_for_build_wheel)\n")
    return folder


def _pip(*arguments: str, path: Path | None = None) -> None:
    environment = {**os.environ, **({} if path is None else {"PYTHONPATH": str(path)})}
    command = [sys.executable, "-m", "pip", arguments[0], "-q", "--disable-pip-version-check", "--retries", "1"]
    try:
        done = subprocess.run([*command, *arguments[1:]], capture_output=True, text=True, env=environment, timeout=250)
    except subprocess.TimeoutExpired:
        pytest.skip(f"pip {' '.join(arguments)}: the package index is slow")
    if done.returncode:
        said = [line for line in done.stderr.splitlines() if line.strip()] or ["nothing was said"]
        pytest.skip(f"pip {' '.join(arguments)}: {said[-1]}")


def run_pytest(
    folder: Path,
    arguments: Sequence[str],
    *,
    cwd: Path,
    plugins: Iterable[Path] = (),
    environment: Mapping[str, str] | None = None,
    seconds: float = 3000,
    prefix: Sequence[str] = (),
) -> tuple[Outcomes, str]:
    """Run pytest once, and return the outcome of each test and the output of the run.

    `plugins` are folders from which the suite imports. `prefix` is a program that runs pytest. A run that takes longer
    than `seconds` is stopped; the tests that were running then are unfinished, and the outcomes lack those that had not
    begun.
    """
    folder.mkdir(parents=True, exist_ok=True)
    written = folder / "outcomes.jsonl"
    paths = [*map(str, plugins), str(HERE), *FOUND_BY]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "SUITE_OUTCOMES": str(written)}
    variables |= dict(environment or {})
    variables.pop("PYTEST_ADDOPTS", None)
    common = [
        "-p",
        "recording",
        "-p",
        "no:cacheprovider",
        "-p",
        "no:randomly",
        "-q",
        "--tb=short",
        f"--basetemp={folder / 'temporary'}",
    ]
    command = [*prefix, sys.executable, "-m", "pytest", *common, *arguments]
    # The order is the suite's own, and so is a folder for files that it leaves, whose path sockets can have.
    leaves = tempfile.TemporaryDirectory(prefix="s", ignore_cleanup_errors=True)
    with leaves as variables["TMPDIR"], (folder / "output.txt").open("w+") as output:
        process = subprocess.Popen(
            command, cwd=cwd, env=variables, stdout=output, stderr=output, text=True, start_new_session=True
        )
        try:
            _wait_for_start(process, written)
            process.wait(seconds)
        except subprocess.TimeoutExpired:
            output.write(f"\nended after {seconds:.0f} s\n")
        finally:
            _end(process)
        output.seek(0)
        printed = output.read()
    assert written.exists(), printed[-5000:]
    return read_outcomes(written), printed


def _wait_for_start(process: subprocess.Popen[str], written: Path) -> None:
    """Wait until the first test begins: importing the libraries takes long on a busy machine."""
    limit = time.monotonic() + MOST_SECONDS_TO_START
    while process.poll() is None and not written.exists() and time.monotonic() < limit:
        time.sleep(0.05)


def _end(process: subprocess.Popen[str]) -> None:
    """Stop a run and the processes that it started."""
    if process.poll() is None:
        os.killpg(process.pid, 9)
        process.wait()


def read_outcomes(written: Path) -> Outcomes:
    """Read the outcome of each test. If a test failed in several phases, the first failure counts."""
    found: Outcomes = {}
    for line in written.read_text().splitlines():
        name, ended, said = json.loads(line)
        if ended == "begun":
            found.setdefault(name, Outcome("unfinished"))
        elif name not in found or found[name].ended != "failed":
            found[name] = Outcome(ended, said)
    return found


def passing(ours: Outcomes) -> Outcomes:
    """In place of the outcomes with theirs, for a sample that is known to pass with theirs: half the time."""
    return {name: one if one.ended == "skipped" else Outcome("passed") for name, one in ours.items()}


class Differences:
    """A list of the tests that end differently with ours, as lines `TEST | REASON`.

    A TEST is the id of a test, or the beginning of an id that ends with a file, a class or a function.
    """

    def __init__(self, text: str) -> None:
        self.reasons: dict[str, str] = {}
        for line in text.splitlines():
            if line.strip() and not line.startswith("#"):
                name, _, reason = line.partition(" | ")
                assert re.fullmatch(r"[\w/]+\.py(::\S.*)?", name), f"not the id of a test: {line}"
                assert len(reason) > 20, f"a reason is missing: {line}"
                self.reasons[name.strip()] = reason.strip()

    def named(self, test: str) -> str | None:
        """Return the TEST of the line to which a test belongs."""
        return next((n for n in self.reasons if test == n or test.startswith((f"{n}[", f"{n}::", f"{n}/"))), None)

    def check(self, theirs: Outcomes, ours: Outcomes, least: int) -> str:
        """Compare two runs, and return the counts of their outcomes in words.

        Fails if a test ended differently and is not listed, or if it is listed and ended in the same way.
        """
        pairs = {
            name: (theirs.get(name, Outcome("absent")), ours.get(name, Outcome("absent"))) for name in theirs | ours
        }
        differing = {name: pair for name, pair in pairs.items() if pair[0].ended != pair[1].ended}
        told = [
            f"{name}: {one.ended} with theirs, {other.ended} with ours: {other.said or one.said}"
            for name, (one, other) in sorted(differing.items())
            if self.named(name) is None
        ]
        met = {self.named(name) for name in pairs}
        told += [
            f"{name}: listed as a difference, but each of its tests ended alike"
            for name in self.reasons
            if name in met and not any(self.named(one) == name for one in differing)
        ]
        counted = "; ".join(
            f"{whose}: {', '.join(f'{count} {ended}' for ended, count in sorted(counts(found).items()))}"
            for whose, found in (("theirs", theirs), ("ours", ours))
        )
        counted += f"; {len(differing)} end otherwise, by {len(self.reasons)} lines of the list"
        assert not told, "\n".join([f"{len(told)} tests or lines; {counted}", *told[:200]])
        assert counts(ours)["passed"] >= least, counted  # a run that collects nothing differs in nothing
        return counted


def counts(found: Outcomes) -> collections.Counter[str]:
    return collections.Counter(one.ended for one in found.values())
