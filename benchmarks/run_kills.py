"""Programs that are killed while they write, with and without `hyperslab run --writes`: who leaves less?

    python benchmarks/run_kills.py [COUNT] [SEED]

Half of the COUNT programs are killed right after one of their calls, by themselves, both sides at the same one; the
others at a random moment. Each either appends to a new array or overwrites one that exists, and flushes now and then.
Of the first kind, every chunk that can be read without us must be readable with us. Of the second kind, every row that
the program had flushed must be. Prints each program that leaves less, and how many there were.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import h5py
import numpy as np

ROWS, SHAPE = 24, (64, 200)
PROGRAM = """
import os, signal, sys
import h5py
import numpy as np

path, is_old, calls, flushes, cache, kills = sys.argv[1], *map(int, sys.argv[2:])
data = np.cumsum(np.random.default_rng(1).normal(size=(24, 64, 200)), axis=1).astype("f4")
file = h5py.File(path, "r+" if is_old else "w", locking=False, rdcc_nbytes=cache)
x = file["x"] if is_old else file.create_dataset(
    "x", (0, 64, 200), "f4", maxshape=(None, 64, 200), chunks=(1, 64, 200), compression=4, shuffle=True)
for k in range(calls):
    if is_old:
        x[k % 24] = data[k % 24] + k
    else:
        x.resize(k + 1, 0)
        x[k] = data[k % 24]
    if flushes and k % flushes == flushes - 1:
        file.flush()
        print(k + 1, flush=True)
if kills:
    os.kill(os.getpid(), signal.SIGKILL)
file.close()
"""
RUN = [sys.executable, "-m", "hyperslab", "run", "--writes", "--quiet", "--"]


def readable(path: Path) -> list[bool]:
    """Which chunks can be read."""
    found = []
    try:
        with h5py.File(path, locking=False) as file:
            for k in range(len(file["x"])):
                try:
                    found.append(file["x"][k] is not None)
                except OSError:
                    found.append(False)
    except (OSError, KeyError):
        return []
    return found


def killed(path: Path, prefix: list[str], words: list[int], moment: float | None) -> int:
    """Run one program until it is killed. Returns how many rows it had flushed, as far as it could say."""
    line = [*prefix, sys.executable, "-c", PROGRAM, str(path), *map(str, words)]
    process = subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        out, _ = process.communicate(timeout=moment)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        out, _ = process.communicate()
    return int(out.split()[-1]) if out.split() else 0


def lost(folder: Path, seed: int) -> str | None:
    """What one program leaves less of with us than without; None if it does not."""
    draw = random.Random(seed)
    is_old, calls, flushes = draw.randrange(2), draw.randrange(1, 60), draw.choice([0, 1, 3, 7])
    words = [is_old, calls, flushes, draw.choice([0, 100_000, 1 << 20]), 1]
    moment = None if seed % 2 else draw.uniform(0.2, 1.0)
    found, flushed = {}, {}
    for name, prefix in (("ours", RUN), ("theirs", [])):
        path = folder / name
        path.unlink(missing_ok=True)
        if is_old:
            with h5py.File(path, "w") as file:
                data = np.random.default_rng(3).normal(size=(ROWS, *SHAPE)).astype("f4")
                file.create_dataset("x", data=data, chunks=(1, *SHAPE), compression=4, shuffle=True)
        flushed[name] = killed(path, prefix, words, moment)
        found[name] = readable(path)
    if moment is None:
        missing = [k for k, is_there in enumerate(found["theirs"]) if is_there and not any(found["ours"][k : k + 1])]
    else:
        needed = 0 if is_old else flushed["ours"]
        missing = [k for k in range(needed) if not any(found["ours"][k : k + 1])]
    return f"seed {seed}: {words} {moment}: lost {missing}" if missing else None


def main() -> None:
    """Run so many programs."""
    count, first = [*map(int, sys.argv[1:]), *[3000, 1][len(sys.argv) - 1 :]][:2]
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as folder:
        less = [said for seed in range(first, first + count) if (said := lost(Path(folder), seed)) is not None]
    print(*less, f"{len(less)} of {count} programs left less", sep="\n")
    sys.exit(1 if less else 0)


if __name__ == "__main__":
    main()
