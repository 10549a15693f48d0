"""zarr-python's own tests of arrays, codecs and stores, from its source distribution, with our codec pipeline.

Each test must end as it does with zarr-python's own pipeline; `zarr/differences.txt` lists the exceptions with reasons.
"""

from __future__ import annotations

from pathlib import Path

import peer_suites
import pytest
from peer_suites import Differences, Outcomes

OURS = {"ZARR_CODEC_PIPELINE__PATH": "hyperslab.archive.zarr_pipeline.Pipeline"}
DIFFERENCES = peer_suites.HERE / "zarr" / "differences.txt"
STORES = ("core", "local", "memory", "object", "wrapper", "zip")
# Each piece has its own time limit, so that a piece that hangs does not affect the outcomes of the others.
PIECES = [
    *("test_codecs", "test_v2.py", "test_indexing.py", "test_array.py", "test_group.py"),
    *(f"test_store/test_{name}.py" for name in STORES),
]
SAMPLE = ["test_codecs/test_vlen.py test_codecs/test_transpose.py test_v2.py"]
LEAST_SAMPLE, LEAST = 50, 3000
SECONDS_OF_PIECE = 900


@pytest.fixture
def suite() -> Path:
    peer_suites.require_version("zarr")
    return peer_suites.source_distribution("zarr")


def outcomes(suite: Path, folder: Path, pieces: list[str], is_ours: bool, processes: int = 2) -> Outcomes:
    """The outcomes of all pieces."""
    found: Outcomes = {}
    # No test that asks for a random search of minutes. No option of the suite's own, of which one needs another plugin.
    options = [
        f"-n{processes}",
        "--timeout=120",
        "-W",
        "ignore",
        "-m",
        "not slow_hypothesis",
        "--override-ini",
        "addopts=",
    ]
    for number, piece in enumerate(pieces):
        found |= peer_suites.run_pytest(
            folder / str(number),
            [*options, *(f"tests/{name}" for name in piece.split())],
            cwd=suite,
            plugins=[peer_suites.plugin("pytest-asyncio")],
            environment=OURS if is_ours else None,
            seconds=SECONDS_OF_PIECE,
        )[0]
    return found


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_a_sample_of_zarrs_suite_ends_alike(suite: Path, tmp_path: Path) -> None:
    ours = outcomes(suite, tmp_path, SAMPLE, is_ours=True, processes=0)
    Differences(DIFFERENCES.read_text()).check(peer_suites.passing(ours), ours, LEAST_SAMPLE)


@pytest.mark.slow
@pytest.mark.timeout(2 * SECONDS_OF_PIECE * len(PIECES))
@peer_suites.in_full
def test_zarrs_suite_ends_alike(suite: Path, tmp_path: Path) -> None:
    theirs = outcomes(suite, tmp_path / "theirs", PIECES, is_ours=False)
    ours = outcomes(suite, tmp_path / "ours", PIECES, is_ours=True)
    print("zarr,", Differences(DIFFERENCES.read_text()).check(theirs, ours, LEAST))


def test_every_difference_has_its_reason() -> None:
    Differences(DIFFERENCES.read_text())
