"""Flip one bit of a file: if any reader then sees something else, or nothing, `verify` reports damage.

By default there are a few flips; HYPERSLAB_CRASHES=all makes all of them and prints the table of docs/versions.md.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from disks import ALL
from flips import FILES, READERS, flips, hired, isolated

import hyperslab as hs
from hyperslab.errors import HyperslabError
from hyperslab.versions.inspect import witness

COUNT = 500 if ALL else 3  # of each file
SEED = 13


def verdict(path: str) -> tuple[bool, str]:
    """Whether `verify` calls a file whole, and what it says."""
    try:
        with hs.VersionedFile(path) as file:
            found = file.verify()
    except (HyperslabError, FileNotFoundError) as error:
        return False, f"{type(error).__name__}: {error}"
    return found.is_whole, "; ".join(one.what for one in found.damages)


@pytest.mark.slow
@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_no_harmful_flip_is_called_whole(make: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(witness, "hired", hired)
    path = tmp_path / "good.h5"
    make(path)
    expected = [isolated(reader, str(path)) for reader in READERS]
    assert all(seen[0] not in ("raised", "ended") for seen in expected), expected
    assert isolated(verdict, str(path)) == (True, "")
    data = path.read_bytes()
    counts: Counter[str] = Counter()
    missed = []
    rng = np.random.default_rng([SEED, FILES.index(make)])
    flipped = tmp_path / "flipped.h5"
    for place, bit in flips(path, COUNT, rng):
        flipped.write_bytes(data[:place] + bytes([data[place] ^ (1 << bit)]) + data[place + 1 :])
        answer = isolated(verdict, str(flipped))
        assert len(answer) == 2, answer  # verify raised something else
        is_whole, said = answer
        harmed = []
        for reader, good in zip(READERS, expected, strict=True):
            seen = isolated(reader, str(flipped))
            if seen != good:
                harmed.append((reader.__name__, seen[:3] if seen[0] in ("raised", "ended") else "other"))
        assert is_whole in (True, False), f"byte {place}, bit {bit}: {is_whole} {said}"
        counts[f"{'harmful' if harmed else 'harmless'}, called {'whole' if is_whole else 'damaged'}"] += 1
        if harmed and is_whole:
            missed.append((place, bit, harmed))
            print(f"missed: {make.__name__}: byte {place}, bit {bit}: {harmed}", flush=True)
    print(f"{make.__name__}: seed {SEED}, {len(data)} bytes, {COUNT} flips: {dict(counts)}")
    assert not missed, missed
