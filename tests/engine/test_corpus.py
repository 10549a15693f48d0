"""Files that other people's software wrote: every array equal to what h5py reads, or unsupported by name.

The corpus lies beside the project where it is present; elsewhere these tests are skipped.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"
ORACLE = Path(__file__).with_name("oracle.py")
# Arrays of each file that are compared. HYPERSLAB_DRAWS=new compares all.
MOST = [] if os.environ.get("HYPERSLAB_DRAWS") == "new" else ["--most", "6"]
SIGNATURE = b"\x89HDF\r\n\x1a\n"


def is_hdf5(path: Path) -> bool:
    """By the signature at 0 or, behind a user block, at 512, 1024, …"""
    with open(path, "rb") as stream:
        head = stream.read(1 << 16)
    return any(head[offset : offset + 8] == SIGNATURE for offset in [0, *(512 << k for k in range(7))])


def outcomes_of(files: list[Path]) -> list[dict[str, Any]]:
    """What the oracle says of each file."""
    done = subprocess.run([sys.executable, str(ORACLE), *MOST, *map(str, files)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
@pytest.mark.timeout(1500)
@pytest.mark.skipif(not CORPUS.is_dir(), reason="the corpus of foreign files is not here")
def test_every_array_of_the_corpus_is_right_or_refused_by_name(record_property) -> None:
    pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
    files = sorted(path for path in CORPUS.rglob("*") if path.is_file() and is_hdf5(path))
    outcomes = dict(zip(files, outcomes_of(files), strict=True))
    totals: Counter[str] = Counter()
    wrong, unsupported = [], Counter()
    for path, found in outcomes.items():
        totals.update({k: v for k, v in found.items() if isinstance(v, int)})
        wrong += [f"{path.relative_to(CORPUS)}: {name}: {why}" for name, why in found["wrong"].items()]
        unsupported.update(
            str(why).partition(":")[2][:80] or str(why)[:80] for why in found.get("unsupported", {}).values()
        )
    print(f"\n{len(files)} files: {dict(totals)}; unsupported: {sum(unsupported.values())}")
    for why, count in unsupported.most_common(30):
        print(f"  {count:5d} {why}")
    print("\n".join(wrong[:60]))
    assert files
    assert not wrong, f"{len(wrong)} wrong"
