"""zarr-python's own tests of arrays, codecs and stores, from its source distribution, with our codec pipeline.

Each test must end as it does with zarr-python's own pipeline; `zarr/differences.txt` lists the others with the reason.
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
DIFFERENCES = HERE / "zarr" / "differences.txt"
OURS = "hyperslab.archive.zarr_pipeline.Pipeline"
STORES = ("core", "local", "memory", "object", "wrapper", "zip")
ALL = [
    *("tests/test_codecs", "tests/test_v2.py", "tests/test_indexing.py", "tests/test_array.py", "tests/test_group.py"),
    *(f"tests/test_store/test_{name}.py" for name in STORES),
]
SAMPLE = ["tests/test_codecs/test_vlen.py", "tests/test_codecs/test_transpose.py", "tests/test_v2.py"]
LEAST_SAMPLE, LEAST = 50, 1500  # tests that pass with both: a run that collects nothing differs in nothing


def fetched(folder: Path, *arguments: str) -> None:
    """Have pip download or install something, or skip the test."""
    done = subprocess.run([sys.executable, "-m", "pip", *arguments], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip(f"pip {' '.join(arguments)}: {done.stderr.strip()[-300:]}")


@pytest.fixture(scope="session")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tests of the installed version, and the plugin that they need for coroutines."""
    zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[formats]'")
    if zarr.__version__ != VERSIONS["zarr"]:
        pytest.skip(f"zarr {zarr.__version__} is installed, tests/suites/versions.txt has {VERSIONS['zarr']}")
    folder = tmp_path_factory.mktemp("zarr-suite")
    fetched(folder, "download", "-q", "--no-deps", "--no-binary", "zarr", f"zarr=={VERSIONS['zarr']}")
    plugin = f"pytest-asyncio=={VERSIONS['pytest-asyncio']}"
    fetched(folder, "install", "-q", "--no-deps", "--target", str(folder / "plugins"), plugin)
    (archive,) = folder.glob("zarr-*.tar.gz")
    with tarfile.open(archive) as opened:
        opened.extractall(folder, filter="data")
    return folder / archive.name.removesuffix(".tar.gz")


def outcomes(suite: Path, pipeline: str | None, tests: list[str]) -> dict[str, tuple[str, str]]:
    """What became of each test, and the last line of what it said."""
    written = suite / f"outcomes-{'theirs' if pipeline is None else 'ours'}.json"
    paths = [str(HERE / "zarr"), str(suite.parent / "plugins"), *sys.path]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "HYPERSLAB_OUTCOMES": str(written)}
    environment.pop("PYTEST_ADDOPTS", None)
    if pipeline is not None:
        environment["ZARR_CODEC_PIPELINE__PATH"] = pipeline
    options = ["-p", "recording", "-p", "no:cacheprovider", "-q", "-n", "2", "--timeout=120", "-W", "ignore"]
    options += ["-m", "not slow_hypothesis", "--override-ini", "addopts="]
    command = [sys.executable, "-m", "pytest", *options, *tests]
    done = subprocess.run(command, cwd=suite, env=environment, capture_output=True, text=True)
    assert written.exists(), done.stdout[-3000:] + done.stderr[-3000:]
    found: dict[str, tuple[str, str]] = json.loads(written.read_text())
    return found


def listed() -> list[tuple[str, str]]:
    """Patterns of tests that may end otherwise, with the reasons."""
    lines = [line for line in DIFFERENCES.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return [(name, reason) for name, _, reason in (line.partition(" | ") for line in lines)]


def compare(suite: Path, tests: list[str], least: int) -> None:
    """Run the tests with both pipelines; nothing that is not listed may differ."""
    theirs, ours = outcomes(suite, None, tests), outcomes(suite, OURS, tests)
    counts = {
        name: {outcome: sum(one == outcome for one, _ in found.values()) for outcome in ("passed", "failed", "skipped")}
        for name, found in (("theirs", theirs), ("ours", ours))
    }
    print(counts)
    known = [name for name, _ in listed()]
    differing = [
        f"{name}: {theirs.get(name, ('not there',))[0]} with theirs, {ours.get(name, ('not there',))[0]} with ours:"
        f" {ours.get(name, theirs.get(name, ('', '')))[1]}"
        for name in sorted({*theirs, *ours})
        if theirs.get(name, ("",))[0] != ours.get(name, ("",))[0] and not any(name.startswith(one) for one in known)
    ]
    assert not differing, "\n".join([f"{len(differing)} tests end otherwise, {counts}", *differing[:50]])
    assert counts["ours"]["passed"] >= least, counts


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_sample_of_zarrs_suite_ends_alike(suite: Path) -> None:
    compare(suite, SAMPLE, LEAST_SAMPLE)


@pytest.mark.slow
@pytest.mark.timeout(7200)
@pytest.mark.skipif(not os.environ.get("HYPERSLAB_SUITES"), reason="all of it: make suites")
def test_zarrs_suite_ends_alike(suite: Path) -> None:
    compare(suite, ALL, LEAST)


def test_every_difference_has_its_reason() -> None:
    for name, reason in listed():
        assert re.fullmatch(r"tests/[\w/]+\.py(::\S+)?", name), name
        assert len(reason) > 20, name
