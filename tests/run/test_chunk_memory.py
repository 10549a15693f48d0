"""What is kept of decoded chunks: enough for programs that read many arrays by turns."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
from run_programs import python, without

COUNT, SHAPE, CHUNKS = 14, (20, 20_000), (10, 20_000)
# Of the file that is read: all once, what describes it, and, if the machine is slow or pauses, one of the two chunks of
# each array for comparing with libhdf5. A program whose chunks were not kept would read the file ten times.
MOST_SHARE = 1.6


def test_chunks_of_many_arrays_are_read_once(tmp_path: Path) -> None:
    """Each read wants a row of one array; a chunk has ten rows."""
    path, random = tmp_path / "a.h5", np.random.default_rng(1)
    total = 0
    with h5py.File(path, "w") as made:
        for number in range(COUNT):
            values = random.integers(0, 1 << 30, SHAPE, "i4")
            total += int(values.sum())
            made.create_dataset(f"x{number}", data=values, chunks=CHUNKS, compression="gzip")
    code = f"""
    import os, sys, h5py
    def read_so_far():
        with open("/proc/self/io") as facts:
            return next(int(line.split()[1]) for line in facts if line.startswith("rchar"))
    file = h5py.File(sys.argv[1])
    arrays = [file[f"x{{number}}"] for number in range({COUNT})]
    before = read_so_far()
    print(sum(int(array[row].sum()) for row in range({SHAPE[0]}) for array in arrays))
    print((read_so_far() - before) / os.path.getsize(sys.argv[1]))
    """
    ran = python(code, path, HYPERSLAB_MEMORY="64M", HYPERSLAB_PREFETCH="0")
    found, share = ran.out.split()
    assert int(found) == total
    assert ran.served == COUNT * SHAPE[0], ran.counts
    assert float(share) < MOST_SHARE


def test_memory_of_closed_files_goes_to_the_next_ones(tmp_path: Path) -> None:
    """A program reads one file after the other, row by row."""
    random = np.random.default_rng(2)
    paths = [tmp_path / f"{number}.h5" for number in range(8)]
    for path in paths:
        with h5py.File(path, "w") as made:
            values = random.integers(0, 1 << 30, SHAPE, "i4")
            made.create_dataset("x", data=values, chunks=CHUNKS, compression="gzip")
    code = f"""
    import os, sys, h5py
    def read_so_far():
        with open("/proc/self/io") as facts:
            return next(int(line.split()[1]) for line in facts if line.startswith("rchar"))
    before = read_so_far()
    for path in sys.argv[1:]:
        with h5py.File(path) as file:
            for row in range({SHAPE[0]}):
                file["x"][row]
    print((read_so_far() - before) / sum(map(os.path.getsize, sys.argv[1:])))
    """
    ran = python(code, *paths, HYPERSLAB_MEMORY="16M", HYPERSLAB_PREFETCH="0")
    assert ran.served == len(paths) * SHAPE[0], ran.counts
    assert float(ran.out) < MOST_SHARE


def test_few_elements_of_many_chunks(tmp_path: Path) -> None:
    """A chunk has one map, and each read wants a series: libhdf5 would decode all chunks for each of them."""
    path = tmp_path / "a.h5"
    values = np.random.default_rng(3).integers(0, 1 << 30, (365, 60, 180), "i4")
    with h5py.File(path, "w") as made:
        made.create_dataset("x", data=values, chunks=(1, 60, 180), compression="gzip")
    code = """
    import sys, h5py
    file = h5py.File(sys.argv[1])
    print(sum(int(file["x"][:, lat, 90].sum()) for lat in range(0, 60, 6)))
    print(sum(int(file["x"][::7, lat, 90:100:2].sum()) for lat in range(0, 60, 6)))
    for row in range(100):
        file["x"][row, 10, :100]  # in one chunk, which libhdf5's cache keeps
    """
    expected, ran = without(code, path), python(code, path)
    assert (ran.status, ran.out, ran.errors) == (0, expected.stdout, "")
    assert (ran.served, ran.passed("small")) == (20, 100), ran.counts
