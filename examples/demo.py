"""`make demo`: what hyperslab does for a deflated file and for a script as it is, and which format suits real fields.

First h5py and hyperslab read one deflated file in turn. Then a script that knows only h5py runs alone and under
`hyperslab run`, in turn. Last, formats store and read two real fields: monthly sea-surface temperatures and a century
of North American air temperatures, from the NetCDF files of the PyPI package iris-sample-data.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import h5py
import iris_sample_data
import numpy as np
import side_by_side

import hyperslab
from hyperslab.bench.results import Run, load_run
from hyperslab.lab import cache
from hyperslab.lab.paired import Ratio, ratio_of
from hyperslab.report.answer_words import short_text

OUTPUT = Path("demo")
TURNS = 6
COPIES = 6  # of the generated field, so that the script has something to read
SCRIPT = """\
import sys, h5py
with h5py.File(sys.argv[1]) as file:
    print(sum(float(file[name][:].mean(dtype="float64")) for name in file))
"""
# Contenders that keep named arrays with their metadata, and `raw`: bare bytes, the floor.
STUDY = """\
# Made by examples/demo.py: arrays like these, on this machine.
name: demo
prefix: demo
title: real fields
formats: [raw, hdf5, hyperslab, netcdf4, netcdf3, zarr2, zarr3, zarr3-sharded, zarrs, tensorstore, fits, blosc2, tiledb]
conditions:
  contiguous: {{chunks: contiguous}}
  compressed: {{chunks: auto, codecs: ["blosc-zstd:3"]}}
operations: [write, read-all, read-time-series, read-map]
caches: [warm]
shape: [1]
cases:
  sea-surface: {{title: sea-surface temperature, data_file: "{samples}/ostia_monthly.nc:surface_temperature"}}
  air: {{title: air temperature of North America, data_file: "{samples}/A1B_north_america.nc:air_temperature"}}
"""


def in_turn(first: Callable[[], object], second: Callable[[], object]) -> tuple[float, Ratio]:
    """Run both in turn, after one that does not count. Returns the median of the first, and second / first."""
    took: tuple[dict[int, float], dict[int, float]] = {}, {}
    for turn in range(-1, TURNS):
        for side in (0, 1) if turn % 2 else (1, 0):
            start = time.perf_counter()
            (first, second)[side]()
            took[side][turn] = time.perf_counter() - start
    for side in took:
        del side[-1]
    ratio = ratio_of(*took)
    assert ratio is not None
    return float(np.median(list(took[0].values()))), ratio


def times_as_fast(ratio: Ratio, other: str = "") -> str:
    """How many times as fast the second one is as the first, with the interval."""
    reach = f" ({1 / ratio.high:.2g} to {1 / ratio.low:.2g})" if ratio.low and ratio.high else ""
    return f"{1 / ratio.value:.2g} times as fast{f' as {other}' if other else ''}{reach}"


def by_h5py(path: Path) -> dict[str, np.ndarray]:
    """Read every array with the HDF5 library."""
    with h5py.File(path) as file:
        return {name: file[name][...] for name in file}


def by_hyperslab(path: Path) -> dict[str, np.ndarray]:
    """Read every array with hyperslab."""
    with hyperslab.open(path) as file:
        return {name: file[name][...] for name in file}


def show_reader(path: Path) -> Ratio:
    """Read a deflated file with both."""
    theirs, ours = by_h5py(path), by_hyperslab(path)
    if any(not np.array_equal(theirs[name], ours[name]) for name in theirs):
        raise AssertionError("hyperslab and h5py read different elements")
    decoded = sum(array.nbytes for array in theirs.values())
    seconds, ratio = in_turn(lambda: by_h5py(path), lambda: by_hyperslab(path))
    print(f"1. A compressed HDF5 file ({decoded / 1e6:.0f} MB of numbers, deflate): h5py reads it in {seconds:.2f} s.")
    print(f"   hyperslab.open is {times_as_fast(ratio)}, and returns the same numbers.\n", flush=True)
    return ratio


def show_script(path: Path, directory: Path) -> Ratio:
    """Run a script alone and under `hyperslab run`."""
    script = directory / "means.py"
    script.write_text(SCRIPT)
    alone = [sys.executable, str(script), str(path)]
    served = [sys.executable, "-m", "hyperslab", "run", "--quiet", "--", *alone]
    printed = [subprocess.run(command, check=True, capture_output=True).stdout for command in (alone, served)]
    if printed[0] != printed[1]:
        raise AssertionError("the script prints something else under hyperslab run")
    seconds, ratio = in_turn(
        lambda: subprocess.run(alone, check=True, capture_output=True),
        lambda: subprocess.run(served, check=True, capture_output=True),
    )
    print("2. A script that knows only h5py:\n")
    print("".join(f"       {line}\n" for line in SCRIPT.splitlines()))
    print(f"   `python means.py` takes {seconds:.2f} s. `hyperslab run -- python means.py` prints the same and is")
    print(f"   {times_as_fast(ratio)}; the starts of Python and of hyperslab count.\n", flush=True)
    return ratio


def show_formats() -> Run | None:
    """Measure the formats; the report goes to demo/report.html. None if a trial failed."""
    shutil.rmtree(OUTPUT, ignore_errors=True)
    OUTPUT.mkdir()
    study = OUTPUT / "demo.yaml"
    study.write_text(STUDY.format(samples=iris_sample_data.path))
    print("3. Which format suits real fields, from the NetCDF files of a climate model and of a satellite product?")
    print("   Each round stores and reads them once in every format.\n", flush=True)
    command = [sys.executable, "-m", "hyperslab", "bench", str(study), "-o", str(OUTPUT), "--scale", "quick"]
    return load_run(OUTPUT) if subprocess.run(command).returncode == 0 else None


def main() -> int:
    """Show all three parts, and end with what to remember."""
    with tempfile.TemporaryDirectory(prefix="hyperslab-") as scratch:
        path = Path(scratch) / "waves.h5"
        side_by_side.write_waves(path)
        with h5py.File(path, "r+") as file:
            for copy in range(1, COPIES):
                file.copy("waves", f"waves-{copy}")
        cache.warm_up([path])
        reader = show_reader(path)
        script = show_script(path, Path(scratch))
    run = show_formats()
    if run is None:
        return 1
    print("\nIn short, on this machine:")
    print(f"- hyperslab reads a compressed HDF5 file {times_as_fast(reader, 'h5py')}.")
    print(f"- `hyperslab run` makes an h5py script {times_as_fast(script)}, without changing it.")
    for recommendation in run.recommendations:
        case = next(case for case in run.description.cases if case.name == recommendation.case)
        print(f"- For {case.title}, {short_text(recommendation)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
