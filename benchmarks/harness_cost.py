"""What the harness costs: a warm 64 MiB read through it, compared with the same calls timed by hand.

    python benchmarks/harness_cost.py [PAIRS]

Both sides open the file, read everything and close it, in one process. Each pair runs in a random order, and mincore
proves that the file is warm. The figure is the ratio of the two medians, harness / by hand, with a bootstrap interval
over the pairs. Results are saved in benchmarks/results/harness_cost.json.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import h5py
import numpy as np
from comparison import compared, interleaved

from hyperslab.bench.operations import Operation
from hyperslab.bench.trial import Job, Prepare, array_name
from hyperslab.formats.contract import ArraySpec
from hyperslab.lab import cache
from hyperslab.lab.environment import observe
from hyperslab.lab.fields import Field
from hyperslab.lab.worker import Workbench
from hyperslab.memory import aligned_empty
from hyperslab.storage.layout import StoredLayout

SHAPE = (64, 512, 512)  # float32: 64 MiB
RESULTS = Path(__file__).parent / "results" / "harness_cost.json"


def raw_by_hand(path: Path) -> float:
    """Seconds to open, read and close with system calls."""
    start = time.perf_counter()
    out = aligned_empty(SHAPE, np.dtype("float32"))  # as the format does
    view = memoryview(out).cast("B")
    descriptor = os.open(path / f"{array_name(0)}.bin", os.O_RDONLY)
    done = 0
    while done < len(view):
        done += os.preadv(descriptor, [view[done:]], done)
    os.close(descriptor)
    return time.perf_counter() - start


def hdf5_by_hand(path: Path) -> float:
    """Seconds to open, read and close with h5py."""
    start = time.perf_counter()
    opened = h5py.File(path, "r")
    out = opened[array_name(0)][()]
    opened.close()
    elapsed = time.perf_counter() - start
    assert out.shape == SHAPE
    return elapsed


def null_by_hand(_: Path) -> float:
    """Nothing at all: this measures the timers themselves."""
    start = time.perf_counter()
    return time.perf_counter() - start


BY_HAND: dict[str, Callable[[Path], float]] = {"raw": raw_by_hand, "hdf5": hdf5_by_hand, "null": null_by_hand}


def compare(name: str, directory: Path, pairs: int) -> dict[str, object]:
    """Measure one format in interleaved pairs."""
    spec = ArraySpec(SHAPE, np.dtype("float32"), StoredLayout())
    path = directory / name
    job = Job(name, (), Operation(name="read-all"), spec, Field("waves", SHAPE, spec.dtype), 1, path)
    bench = Workbench()
    Prepare(job).run(bench)
    files = cache.files_below(path)
    cache.warm_up(files)
    sides = {"harness": lambda: sum(job.run(bench).seconds.values()), "hand": lambda: BY_HAND[name](path)}
    seconds, _ = interleaved(sides, pairs, files)
    harness, hand = seconds["harness"], seconds["hand"]
    found = compared(harness, hand)
    return {
        "format": name,
        "pairs": pairs,
        "resident": cache.resident_fraction(files),
        "harness_median_seconds": float(np.median(harness)),
        "by_hand_median_seconds": float(np.median(hand)),
        "ratio": found["ratio"],
        "ratio_low": found["low"],
        "ratio_high": found["high"],
        "harness_min_seconds": min(harness),
        "by_hand_min_seconds": min(hand),
    }


def main() -> None:
    """Compare all formats, print a line for each, and save the figures."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as scratch:
        rows = [compare(name, Path(scratch), pairs) for name in BY_HAND]
        environment = asdict(observe(Path(scratch), ["raw", "hdf5"]))
    for row in rows:
        print(
            f"{row['format']}: harness {row['harness_median_seconds'] * 1e3:.3f} ms, by hand "
            f"{row['by_hand_median_seconds'] * 1e3:.3f} ms, ratio {row['ratio']:.3f} "
            f"[{row['ratio_low']:.3f}, {row['ratio_high']:.3f}], {pairs} pairs"
        )
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps({"rows": rows, "environment": environment}, indent=1) + "\n")


if __name__ == "__main__":
    main()
