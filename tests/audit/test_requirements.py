"""`--require cmip7` judges as `check_cmip7_packing` does, and `cloud` asks what its rule says."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pytest

from hyperslab.audit.judging import Question, audit_file

Kept = Callable[..., Path]
CHECK = shutil.which("check_cmip7_packing", path=str(Path(sys.executable).parent))
REASONS = {
    "consolidated": "its metadata are not in front",
    "time coordinates": "/time has",
    "time bounds": "/time_bnds has",
    "data variable": "has chunks of",
}


def made(path: Path, random: np.random.Generator, block_nbytes: int) -> None:
    """A file as climate models write it, with some of the faults that the check looks for; metadata come in blocks."""
    steps, height = int(random.integers(3, 20)), int(random.integers(60, 140))
    has_bounds, is_named = random.random(2) < (0.6, 0.9)
    step = int(random.choice([1, 2, max(1, (4 << 20) // (height * 256 * 4)), steps]))
    with h5py.File(path, "w", meta_block_size=block_nbytes) as file:
        if is_named:
            file.attrs["variable_id"] = "tas"
        time_chunks = (int(random.choice([1, steps])),)
        time = file.create_dataset("time", data=np.arange(float(steps)), chunks=time_chunks, maxshape=(None,))
        if has_bounds:
            time.attrs["bounds"] = "time_bnds"
            file.create_dataset("time_bnds", data=np.zeros((steps, 2)), chunks=(int(random.choice([1, steps])), 2))
        chunks = (min(step, steps), height, 256)
        data = file.create_dataset("tas", (steps, height, 256), "f4", chunks=chunks, maxshape=(None, height, 256))
        data[...] = 1.0


@pytest.mark.skipif(CHECK is None, reason="check_cmip7_packing is not installed: pip install cmip7-repack pyfive")
def test_cmip7_is_what_its_own_check_says(tmp_path: Path) -> None:
    files = []
    for seed in range(12):
        for block_nbytes in (2048, 1 << 16):
            files.append(tmp_path / f"{seed}-{block_nbytes}.nc")
            made(files[-1], np.random.default_rng(seed), block_nbytes)
    said = subprocess.run([str(CHECK), *map(str, files)], capture_output=True, text=True, check=False).stdout
    verdicts = {line.split("'")[1]: line for line in said.splitlines()}
    passed = 0
    for path in files:
        unmet, verdict = audit_file(str(path), Question(require="cmip7")).unmet, verdicts[str(path)]
        assert (unmet == ()) == verdict.startswith("PASS"), (unmet, verdict)
        if unmet:
            reason = next(ours for theirs, ours in REASONS.items() if theirs in verdict)
            assert any(reason in one for one in unmet), (unmet, verdict)
        passed += not unmet
    assert 3 <= passed <= len(files) - 5


def test_cmip7_is_about_hdf5(tmp_path: Path) -> None:
    cards = (
        "SIMPLE  =                    T",
        "BITPIX  =                    8",
        "NAXIS   =                    0",
        "END",
    )
    (tmp_path / "x.fits").write_text("".join(f"{card:80}" for card in cards).ljust(2880))
    assert audit_file(str(tmp_path / "x.fits"), Question(require="cmip7")).unmet == ("it is not an HDF5 file",)


def test_cloud_asks_for_metadata_in_front_large_chunks_and_whole_coordinates(kept: Kept) -> None:
    words = {
        "small-chunks": "too small", "scattered-metadata": "its metadata",
        "cut-coordinates": "coordinates are in more than one chunk", "damaged": "was cut off",
        "unreadable": "no signature",
    }  # fmt: skip
    for kind, said in words.items():
        unmet = audit_file(str(kept(kind)), Question(require="cloud")).unmet
        assert any(said in one for one in unmet), (kind, unmet)
    for kind in ("good", "foreign-filters", "tiny-arrays"):
        assert audit_file(str(kept(kind)), Question(require="cloud")).unmet == ()
