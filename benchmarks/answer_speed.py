"""How long the five commands take that answer from one trace, and how much memory: at most 2 s and 300 MB.

    python benchmarks/answer_speed.py [--profile PROFILE] [--accesses N] [--arrays K] [--turns T]

A file is written, and a trace of N accesses (a million by default) to K of its arrays, as `hyperslab trace` would:
rows, columns, boxes and single elements at random places. Each command is a process of its own, with compiled modules
as an installation has them; the least of T turns counts. Seconds are those of the processors (user and system), which
a busy machine falsifies least, and those that you wait. Memory is the peak that the kernel saw, from the fork on, so
another process writes the files. Nothing is saved: the lines belong into the note of a change.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHAPE, CHUNK = (200, 256, 256), (8, 64, 64)
FORMS = [(1, 1, 1), (1, 8, 8), (1, 256, 256), (200, 1, 1), (1, 32, 16)]


def made(folder: Path, access_count: int, array_count: int) -> None:
    """Write a file, and a trace of accesses to it."""
    import h5py
    import numpy as np

    import hyperslab as hs
    from hyperslab.trace.recording.log import HYPERSLAB
    from hyperslab.trace.table import COLUMNS, TracedArray

    path, random = folder / "a.h5", np.random.default_rng(1)
    forms = np.array(FORMS)
    elements = np.add.outer(np.arange(200.0), np.add.outer(np.arange(256.0), np.arange(256.0))).astype("f4")
    arrays = []
    with h5py.File(path, "w") as file:
        for place in range(array_count):
            array = file.create_dataset(f"x{place}", data=elements, chunks=CHUNK, compression="gzip", shuffle=True)
            arrays.append(
                TracedArray("h5py", str(path), array.name, SHAPE, CHUNK, None, "<f4", 4, ("shuffle", "deflate"),
                            "chunked", 8 << 20, 8191, 0.75, array.id.get_storage_size(), (1, 2, 3))
            )  # fmt: skip
    lengths = forms[random.integers(0, len(forms), access_count)]
    numbers = np.ones((access_count, 3, 4), np.int64)
    numbers[:, :, 0] = random.random((access_count, 3)) * (np.array(SHAPE) - lengths + 1)
    numbers[:, :, 2] = lengths
    columns = {name: np.zeros(access_count, dtype) for name, dtype in COLUMNS.items()}
    columns["duration_ns"][:] = random.integers(20_000, 60_000, access_count)
    columns["start_ns"][:] = np.cumsum(columns["duration_ns"] + 5_000)
    columns["array"][:] = random.integers(0, array_count, access_count)
    columns["kind"][:], columns["nbytes"][:] = HYPERSLAB, lengths.prod(axis=1) * 4
    program = {"arguments": ["python", "a.py"], "seconds": float(columns["start_ns"][-1]) / 1e9}
    hs.Trace(arrays, columns, np.arange(access_count + 1) * 12, numbers.ravel(), program=program).save(
        folder / "a.trace"
    )


def measured(words: list[str]) -> tuple[float, float, float]:
    """Seconds of the processors, seconds that pass, and MB at the peak, of one command."""
    begun = time.perf_counter()
    process = subprocess.Popen([sys.executable, "-m", "hyperslab", *words], stdout=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"hyperslab {' '.join(words)} failed")
    return used.ru_utime + used.ru_stime, time.perf_counter() - begun, used.ru_maxrss * 1024 / 1e6


def main() -> None:
    """Print a line for each command."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--profile", type=Path, help="store profile (default: the one from `calibrate`)")
    parser.add_argument("--accesses", type=int, default=1_000_000)
    parser.add_argument("--arrays", type=int, default=1)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--made", type=Path, help=argparse.SUPPRESS)
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise each turn compiles all modules, for a second
    given = parser.parse_args()
    if given.made is not None:
        made(given.made, given.accesses, given.arrays)
        return
    with tempfile.TemporaryDirectory() as name:
        sizes = ["--accesses", str(given.accesses), "--arrays", str(given.arrays)]
        subprocess.run([sys.executable, __file__, "--made", name, *sizes], check=True)
        path, trace = str(Path(name, "a.h5")), str(Path(name, "a.trace"))
        profile = [] if given.profile is None else ["--profile", str(given.profile)]
        target = [] if given.profile is None else ["--target", str(given.profile)]
        print(f"{given.accesses:,} accesses to {given.arrays} arrays, {Path(trace).stat().st_size / (1 << 20):.1f} MiB")
        for words in (
            ["trace", "show", trace, *profile],
            ["predict", "--trace", trace, *profile],
            ["predict", f"{path}:x0", "--trace", trace, *profile],
            ["advise", path, "--trace", trace, *target],
            ["info", path, "--trace", trace, *profile],
        ):
            cpu, wall, peak = map(min, zip(*(measured(words) for _ in range(given.turns)), strict=True))
            shown = " ".join(Path(word).name for word in words[:4])
            print(f"{shown:<40} {cpu:6.2f} s of processors {wall:6.2f} s {peak:6.0f} MB")


if __name__ == "__main__":
    main()
