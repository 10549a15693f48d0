"""Unmodified programs under `hyperslab run`, compared with the same programs without it, on warm files.

    python benchmarks/run_speed.py [--only NAME ...] [--quick] [--files DIRECTORY] [--list]

NAME is a group of rows (`--list` names them). Both sides of a row are programs of their own; in `threads`, ours has
four threads, which crash without us, and the other reads four times in a row. They print a checksum, which must agree,
and the seconds of their reads or writes, which are compared. `tools` compares whole programs, so the time to start
`hyperslab run` counts; `start` has a row for that alone. They run in one run, in a new random order each turn. Then a
row says how long `hyperslab run` says that libhdf5 would have taken, and how many times as long as it takes that is;
not so for writes. Results are saved in benchmarks/results/run_speed.json row by row.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import command
import comparison
import peers
from comparison import OURS, Row, Side
from files import Files

from hyperslab.lab import cache

RESULTS = Path(__file__).parent / "results" / "run_speed.json"
MEGABYTES = 512
WITHOUT = "without us"
# The command that pip installs. Where it is missing, the module, which takes milliseconds longer.
COMMAND = Path(sys.executable).with_name("hyperslab")
HYPERSLAB = [str(COMMAND)] if COMMAND.exists() else [sys.executable, "-m", "hyperslab"]
RUN = [*HYPERSLAB, "run", "--quiet", "--threads", str(peers.THREADS), "--"]
SAYS = [*HYPERSLAB, "run", "--json", "--threads", str(peers.THREADS), "--"]
WRITES = [*RUN[:-1], "--writes", "--"]
ESTIMATES = 3
# Each opens the array, then `read()` reads it and returns a number that tells whether it read the same.
OPENED = {
    "h5py": "import h5py\narray = h5py.File(path)['x']",
    "netCDF4": "import netCDF4\narray = netCDF4.Dataset(path)['x']\narray.set_auto_maskandscale(False)",
    "xarray": "import xarray\narray = xarray.open_dataset(path, engine='netcdf4', cache=False)['x']",
}
READS = {
    "whole": "def read():\n    return np.asarray(array[...])[::7, ::5, ::3].sum(dtype='f8')",
    "rows": "def read():\n    return sum(np.asarray(array[k])[::5, ::3].sum(dtype='f8') for k in range(len(array)))",
    "columns": "def read():\n    return sum(np.asarray(array[:, k])[::5, ::3].sum(dtype='f8') for k in (9, 99, 499))",
    "points": "def read():\n    return sum(np.asarray(array[:, k, k + 5]).sum(dtype='f8') for k in (100, 300, 500))",
    "cached": "def read():\n    return sum(float(array[0, k % 512, (7 * k) % 512]) for k in range({count}))",
}
# Four times the same array: by as many threads, or one after the other. Each time it is opened anew.
FOUR_TIMES = """
import sys, time, threading
import numpy as np
import {library}
path = sys.argv[1]
def work(number, found):
    {opened}
    {read}
    found[number] = read()
found = [0.0] * 4
threads = [threading.Thread(target=work, args=(number, found)) for number in range(4)]
begun = time.perf_counter()
for thread in threads:
    thread.start()
    if not {together}:
        thread.join()
for thread in threads:
    thread.join()
print(time.perf_counter() - begun, float(sum(found)))
"""
TIMED = """
import sys, time
import numpy as np
path = sys.argv[1]
{opened}
{read}
begun = time.perf_counter()
found = read()
print(time.perf_counter() - begun, float(found))
"""
# Each writes `data`, whose steps are chunks of 1 MiB, to a new file.
WRITTEN = {
    "h5py": """
import h5py
def write():
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=data, chunks=(1, 512, 512), compression=4, shuffle=True)
""",
    "netCDF4": """
import netCDF4
def write():
    with netCDF4.Dataset(path, "w") as file:
        axes = ("t", "y", "x")
        for name, length in zip(axes, data.shape):
            file.createDimension(name, length)
        kept = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (1, 512, 512)}
        file.createVariable("v", "f4", axes, **kept)[:] = data
""",
    "xarray": """
import xarray
made = xarray.Dataset({"v": (("t", "y", "x"), data)})
kept = {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (1, 512, 512)}
def write():
    made.to_netcdf(path, engine="netcdf4", encoding={"v": kept})
""",
    "steps": """
import h5py
def write():
    with h5py.File(path, "w") as file:
        kept = {"chunks": (1, 512, 512), "compression": 4, "shuffle": True}
        x = file.create_dataset("x", (0, 512, 512), "f4", maxshape=(None, 512, 512), **kept)
        for k in range(len(data)):
            x.resize(k + 1, 0)
            x[k] = data[k]
            until = time.thread_time() + {computing}
            while time.thread_time() < until:
                pass
""",
    "uncompressed": """
import h5py
def write():
    with h5py.File(path, "w") as file:
        x = file.create_dataset("x", data.shape, "f4", chunks=(1, 512, 512))
        for k in range(len(data)):
            x[k] = data[k]
""",
    "parts": """
import h5py
def write():
    with h5py.File(path, "w", rdcc_nbytes=1 << 22) as file:
        x = file.create_dataset("x", data.shape, "f4", chunks=(1, 512, 512), compression=1, shuffle=True)
        for k in range(0, len(data), 4):
            for row in range(0, 512, 64):
                x[k, row : row + 64] = data[k, row : row + 64]
""",
}
WRITE_TARGETS = {"h5py": 0.35, "netCDF4": 0.35, "xarray": 0.35, "steps": 0.6, "uncompressed": 1.03, "parts": 1.03}
COMPUTING = 0.0065
"""Seconds for each step: a fifth of the time that such a program takes."""
TIMED_WRITES = """
import os, sys, time
import numpy as np
path = sys.argv[1]
base = np.cumsum(np.random.default_rng(1).normal(size=(512, 512)), axis=1).astype("f4")
data = np.stack([base * np.float32(1 + k / 100) + np.float32(k) for k in range(int(sys.argv[2]))])
{written}
begun = time.perf_counter()
write()
took = time.perf_counter() - begun
os.unlink(path)
print(took, data.nbytes)
"""
NO_HDF5 = """
import random, time
begun = time.perf_counter()
draw = random.Random(1).random
found = sum(draw() for _ in range(20_000_000))
print(time.perf_counter() - begun, found)
"""


# Calls of a library that has a lock: what that costs, and a gate. Not by Python, whose own call costs more.
CALLS = """
#include <stdio.h>
#include <time.h>
int H5get_libversion(unsigned *, unsigned *, unsigned *);
int main(void) {
    unsigned numbers[3];
    struct timespec begun, done;
    H5get_libversion(numbers, numbers + 1, numbers + 2);
    clock_gettime(CLOCK_MONOTONIC, &begun);
    for (int k = 0; k < COUNT; k++) H5get_libversion(numbers, numbers + 1, numbers + 2);
    clock_gettime(CLOCK_MONOTONIC, &done);
    printf("%.9f %u\\n", done.tv_sec - begun.tv_sec + 1e-9 * (done.tv_nsec - begun.tv_nsec), numbers[0]);
    return 0;
}
"""


def timed(words: Sequence[str], prefix: Sequence[str]) -> tuple[float, str]:
    """The seconds that a program prints for its reads, and what it read."""
    done = subprocess.run([*prefix, *words], capture_output=True, text=True, check=True)
    seconds, found = done.stdout.split()
    return float(seconds), found


def whole(words: Sequence[str], prefix: Sequence[str]) -> tuple[float, str]:
    """The seconds of a whole program, and what it prints."""
    begun = time.perf_counter()
    done = subprocess.run([*prefix, *words], capture_output=True, text=True, check=True)
    return time.perf_counter() - begun, done.stdout


Measured = Callable[[Sequence[str], Sequence[str]], tuple[float, str]]


def measure(
    key: str, work: str, words: Sequence[str], files: Sequence[Path], target: float, quick: bool, how: Measured = timed,
    other: Sequence[str] | None = None, by: Sequence[str] = RUN,
) -> dict[str, Any]:  # fmt: skip
    """One row: the same program with and without us, or another one without us."""
    cache.warm_up(files)
    sides = {OURS: (words, by), WITHOUT: (other or words, [])}
    answers = {name: how(*side)[1] for name, side in sides.items()}
    if answers[OURS] != answers[WITHOUT]:
        raise RuntimeError(f"{key}: it read something else under `hyperslab run`")
    each = {name: lambda side=side: how(*side)[0] for name, side in sides.items()}
    turns = 3 if quick else 11
    seconds, proof = comparison.interleaved(each, turns, files)
    unused = {name: lambda: Side(lambda: None) for name in sides}
    row = Row(key, work, files, None, unused, {WITHOUT: target}, turns=turns)
    made = comparison.measured(row, seconds, {}, proof, turns)
    is_estimated = how is timed and other is None and by is RUN
    estimate = estimated(words, made["seconds"][WITHOUT]) if is_estimated else None
    if estimate is not None:
        print(f"  it says {estimate['seconds']:.3g} s for libhdf5: {estimate['ratio']:.2f} times what it takes")
    return made | {"estimate": estimate}


def estimated(words: Sequence[str], measured: float) -> dict[str, float] | None:
    """The seconds that `hyperslab run` says libhdf5 would have taken, beside what it takes; None if it says nothing."""
    said = []
    for _ in range(ESTIMATES):
        done = subprocess.run([*SAYS, *words], capture_output=True, text=True, check=True)
        said.append(json.loads(done.stderr.splitlines()[-1])["served"]["libhdf5_seconds"])
    if None in said:
        return None
    seconds = statistics.median(said)
    return {"seconds": seconds, "ratio": seconds / measured}


def program(library: str, read: str, path: Path, **values: int) -> list[str]:
    """A program that reads with a library."""
    code = TIMED.format(opened=OPENED[library], read=READS[read].format(**values))
    return [sys.executable, "-c", code, str(path)]


def by_libraries(read: str, layout: str, target: float, files: Files, quick: bool) -> Iterator[dict[str, Any]]:
    """A row for each library."""
    path = files.hdf5(layout)
    for library in OPENED:
        said = f"{library}: {read}, {layout}"
        yield measure(f"{library}-{read}-{layout}", said, program(library, read, path), [path], target, quick)


def cached(files: Files, quick: bool) -> Iterator[dict[str, Any]]:
    """Single elements of one chunk, which libhdf5 keeps."""
    path, count = files.hdf5("deflate"), 10_000 if quick else 100_000
    words = program("h5py", "cached", path, count=count)
    yield measure("cached", f"h5py: {count} cached elements", words, [path], 1.10, quick)


def threads(files: Files, quick: bool) -> Iterator[dict[str, Any]]:
    """Four threads read the same array, compared with four reads in a row: without us, threads crash."""
    path = files.hdf5("deflate")
    for library in ("netCDF4", "xarray"):
        opened = indented(OPENED[library].split("\n", 1)[1])
        named = {"library": library, "opened": opened, "read": indented(READS["whole"])}
        together, alone = (
            [sys.executable, "-c", FOUR_TIMES.format(together=together, **named), str(path)]
            for together in (True, False)
        )
        said = f"{library}: the whole array by 4 threads; without us, 4 times in a row"
        yield measure(f"{library}-threads", said, together, [path], 0.35, quick, other=alone)


def indented(code: str) -> str:
    """Code for the inside of a function."""
    return code.replace("\n", "\n    ")


def lock(quick: bool) -> Iterator[dict[str, Any]]:
    """What a call costs that takes a lock."""
    import netCDF4

    count = 1_000_000 if quick else 20_000_000
    libraries = sorted((Path(netCDF4.__file__).parents[1] / "netcdf4.libs").glob("libhdf5-*.so*"))
    if not libraries or shutil.which("gcc") is None:
        print("no wheel of netCDF4, or no gcc")
        return
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as folder:
        source, made = Path(folder) / "calls.c", Path(folder) / "calls"
        source.write_text(CALLS.replace("COUNT", str(count)))
        linked = [str(libraries[0]), f"-Wl,-rpath,{libraries[0].parent}", "-Wl,--allow-shlib-undefined"]
        subprocess.run(["gcc", "-O2", "-o", made, source, *linked], check=True)
        # 50 ns besides the 35 ns or so of the call itself.
        row = measure("lock", f"C: {count:,} calls of H5get_libversion", [str(made)], [], 2.4, quick)
        cost = (row["seconds"][OURS] - row["seconds"][WITHOUT]) / count
        print(f"  a gate and its lock take {1e9 * cost:.1f} ns")
        yield row | {"gate_nanoseconds": 1e9 * cost}


def writes(quick: bool) -> Iterator[dict[str, Any]]:
    """A row for each way to write, to files in memory: the disk is not what is compared."""
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    steps = 32 if quick else MEGABYTES
    with tempfile.TemporaryDirectory(prefix="hyperslab-", dir=memory) as folder:
        for name, target in WRITE_TARGETS.items():
            code = TIMED_WRITES.format(written=WRITTEN[name].replace("{computing}", str(COMPUTING)))
            words = [sys.executable, "-c", code, str(Path(folder) / "made"), str(steps)]
            yield measure(f"writes-{name}", f"writes by {name}, {steps} MiB", words, [], target, quick, by=WRITES)


def start(quick: bool) -> Iterator[dict[str, Any]]:
    """Programs that read no HDF5."""
    words = [sys.executable, "-c", NO_HDF5]
    yield measure("no-hdf5", "a program without HDF5, once it has started", words, [], 1.01, quick)
    yield measure("start", "`true`: what starting takes", ["true"], [], 1e9, quick, whole)


def tools(files: Files, quick: bool) -> Iterator[dict[str, Any]]:
    """Programs of others, if they are installed."""
    path = files.hdf5("deflate")
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="hyperslab-", dir=memory) as folder:
        # Its output is a file in memory: ncks puts a finished file in the place of its target, even of /dev/null.
        copy = str(Path(folder) / "copy.nc")
        known = {
            "h5dump": ["h5dump", "-d", "x", "-b", "-o", "/dev/null", str(path)],
            "ncks": ["ncks", "-O", "--no_tmp_fl", "-3", "-v", "x", str(path), copy],
            "cdo": ["cdo", "-s", "outputf,%g,1", "-fldmean", "-selname,x", str(path)],
        }
        for name, words in known.items():
            if shutil.which(name) is None:
                print(f"{name} is not installed")
                continue
            yield measure(name, f"{name}: one array", words, [path], 0.35, quick, whole)


def groups(files: Files, quick: bool) -> command.Groups:
    """The groups of rows."""
    return {
        "whole": lambda: by_libraries("whole", "deflate", 0.35, files, quick),
        "rows": lambda: by_libraries("rows", "deflate", 0.45, files, quick),
        "columns": lambda: by_libraries("columns", "deflate", 0.35, files, quick),
        "points": lambda: by_libraries("points", "deflate", 0.35, files, quick),
        "cached": lambda: cached(files, quick),
        "uncompressed": lambda: by_libraries("whole", "contiguous", 0.8, files, quick),
        "threads": lambda: threads(files, quick),
        "lock": lambda: lock(quick),
        "writes": lambda: writes(quick),
        "start": lambda: start(quick),
        "tools": lambda: tools(files, quick),
    }


def main() -> None:
    """Measure, print a line for each comparison, and save the figures after each row."""
    # Programs find compiled modules, as after pip installed them.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    command.run_locally(__doc__, groups, RESULTS, MEGABYTES)


if __name__ == "__main__":
    main()
