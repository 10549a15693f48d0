"""What recording costs: unmodified programs under `hyperslab trace`, compared with the same programs without it.

    python benchmarks/trace_speed.py [--only NAME ...] [--quick] [--files DIRECTORY] [--list]

NAME is a group of rows (`cached`, `megabytes`, `opened`). Both sides of a row are programs of their own. They print a
checksum, which must agree, and the seconds of their reads, which are compared: neither starting the program nor writing
the trace at its end counts. They run in one run, in a new random order each turn, on warm files. Each program reads for
a second or so: of fewer reads, the speed differs by a fifth from one start of the same program to the next. Results are
saved in benchmarks/results/trace_speed.json row by row.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import command
import comparison
from comparison import OURS, Row, Side
from files import Files

from hyperslab.lab import cache

RESULTS = Path(__file__).parent / "results" / "trace_speed.json"
MEGABYTES = 64
WITHOUT = "without us"
OPENED = {
    "h5py": "import h5py\nfile = h5py.File(path)\narray = file['x']",
    "netCDF4": "import netCDF4\nfile = netCDF4.Dataset(path)\narray = file['x']\narray.set_auto_maskandscale(False)",
}
READS = {
    "cached": "array[0, k % 512, (7 * k) % 512]",
    "megabytes": "(array.read_direct(out, np.s_[k % len(array), :256]), out[0])[1]",
    "opened": "file['x'][0, k % 512, (7 * k) % 512]",
}
TIMED = """
import sys, time
import numpy as np
path = sys.argv[1]
{opened}
k, out = 0, np.empty((256, 1024), "f4")
{read}
begun = time.perf_counter()
total = 0.0
for k in range({count}):
    total += float(np.asarray({read}).flat[0])
print(time.perf_counter() - begun, total)
"""


def program(library: str, read: str, path: Path, count: int) -> list[str]:
    """A program that reads `count` times, after one read to warm up."""
    code = TIMED.format(opened=OPENED[library], read=READS[read], count=count)
    return [sys.executable, "-c", code, str(path)]


def timed(words: list[str], is_recorded: bool) -> tuple[float, str]:
    """The seconds that a program prints for its reads, and what it read."""
    with tempfile.TemporaryDirectory() as folder:
        recorded = [sys.executable, "-m", "hyperslab", "trace", "--quiet", "-o", f"{folder}/run.trace", "--"]
        done = subprocess.run([*(recorded if is_recorded else []), *words], capture_output=True, text=True, check=True)
    seconds, found = done.stdout.split()
    return float(seconds), found


def measure(key: str, work: str, words: list[str], path: Path, target: float, quick: bool) -> dict[str, Any]:
    """One row: the same program recorded and not recorded."""
    cache.warm_up([path])
    if timed(words, True)[1] != timed(words, False)[1]:
        raise RuntimeError(f"{key}: it read something else while it was recorded")
    sides = {OURS: lambda: timed(words, True)[0], WITHOUT: lambda: timed(words, False)[0]}
    turns = 5 if quick else 21
    seconds, proof = comparison.interleaved(sides, turns, [path])
    unused = {name: lambda: Side(lambda: None) for name in sides}
    row = Row(key, work, [path], None, unused, {WITHOUT: target}, turns=turns)
    return comparison.measured(row, seconds, {}, proof, turns)


def cached(files: Files, quick: bool) -> Iterator[dict[str, Any]]:
    """Single elements of one chunk, which libhdf5 keeps."""
    path, count = files.hdf5("deflate"), 100_000
    for library in OPENED:
        words = program(library, "cached", path, count)
        yield measure(f"{library}-cached", f"{library}: {count} cached elements", words, path, 1.10, quick)


def megabytes(files: Files, quick: bool) -> Iterator[dict[str, Any]]:
    """Reads of one uncompressed MiB each, the fastest that libhdf5 has, into memory that the program has already.

    A new array for each read would measure the allocator: whether it gives pages back depends on what lies behind.
    """
    path, count = files.hdf5("contiguous"), 5_000
    words = program("h5py", "megabytes", path, count)
    yield measure("h5py-megabytes", f"h5py: {count} reads of 1 MiB", words, path, 1.01, quick)


def opened(files: Files, quick: bool) -> Iterator[dict[str, Any]]:
    """Single elements of an array that the program opens again for each."""
    path, count = files.hdf5("deflate"), 10_000 if quick else 20_000
    words = program("h5py", "opened", path, count)
    yield measure("h5py-opened", f"h5py: {count} elements, the array opened for each", words, path, 1.10, quick)


def groups(files: Files, quick: bool) -> command.Groups:
    """The groups of rows."""
    return {
        "cached": lambda: cached(files, quick),
        "megabytes": lambda: megabytes(files, quick),
        "opened": lambda: opened(files, quick),
    }


def main() -> None:
    """Measure, print a line for each comparison, and save the figures after each row."""
    command.run_locally(__doc__, groups, RESULTS, MEGABYTES)


if __name__ == "__main__":
    main()
