"""Numbers that programs want as another type: what we convert is, byte by byte, what libhdf5 makes of it."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest
from run_programs import python, without

# In the file, and in memory: what we convert, and what stays with libhdf5.
SERVED = [
    ("i1", "i2"), ("i1", "f4"), ("u1", "i2"), ("u1", "u8"), ("u1", "f8"), ("<i2", "i4"), (">i2", "i8"), ("<i2", "f4"),
    (">i2", "f8"), ("<u2", "u4"), (">u2", "f4"), ("<i4", "i8"), ("<i4", "f8"), (">u4", "f8"), ("<u4", "u8"),
    ("<f4", "f8"), ("<f8", "f4"),
]  # fmt: skip
LEFT = [("<i4", "i2"), ("<i4", "u4"), ("<i4", "f4"), ("<f4", "i4"), (">f4", "f8"), ("<f2", "f4"), ("<i8", "f8")]
CODE = """
    import hashlib, sys, h5py, numpy as np
    for pair in sys.argv[2:]:
        stored, wanted = pair.split()
        with h5py.File(sys.argv[1]) as file:
            array = file[stored].astype(wanted)
            out = np.zeros((400, 600), wanted)
            file[stored].read_direct(out, np.s_[:, ::2], np.s_[50:350, 100:500])
            print(pair, *(hashlib.sha256(part.tobytes()).hexdigest() for part in (array[...], array[3:-1, 5:], out)))
"""


def values(dtype: str) -> np.ndarray:
    """Ordinary values, then any bytes: NaN of all kinds, infinity, the largest integers, numbers beyond float32."""
    random = np.random.default_rng(4)
    found = np.frombuffer(random.bytes(300 * 800 * np.dtype(dtype).itemsize), dtype).reshape(300, 800).copy()
    found[:200] = random.integers(0, 100, (200, 800))
    if dtype == "<f8":
        found[200:] = random.choice([np.nan, np.inf, -np.inf, 1e-310, -0.0, 1e-44, 3.4e38, 0.1], (100, 800))
    return found


def made(path: Path, *dtypes: str) -> Path:
    with h5py.File(path, "w") as file:
        for dtype in dtypes:
            file.create_dataset(dtype, data=values(dtype), chunks=(40, 800), compression="gzip", compression_opts=1)
    return path


@pytest.mark.parametrize(("pairs", "are_ours"), [(SERVED, True), (LEFT, False)], ids=["served", "left"])
def test_conversions(tmp_path: Path, pairs: list[tuple[str, str]], are_ours: bool) -> None:
    """All pairs in one program, because one takes half a second to start: each is read three times."""
    path, words = made(tmp_path / "a.h5", *{stored for stored, _ in pairs}), [" ".join(pair) for pair in pairs]
    ran = python(CODE, path, *words)
    assert ran.out.splitlines() == without(CODE, path, *words).stdout.splitlines()
    assert len(ran.out.splitlines()) == len(pairs)
    reads = 3 * len(pairs)
    assert (ran.served, ran.passed("conversion")) == ((reads, 0) if are_ours else (0, reads)), ran.counts


def test_numbers_beyond_float32_are_left_to_libhdf5(tmp_path: Path) -> None:
    path = made(tmp_path / "a.h5", "<f8")
    with h5py.File(path, "r+") as file:
        file["<f8"][299, 700] = 3.4028235e38 * (1 + 1e-8)
    ran = python(CODE, path, "<f8 f4")
    assert ran.out == without(CODE, path, "<f8 f4").stdout
    assert (ran.served, ran.passed("conversion")) == (1, 2)  # one of the three leaves that number out


def test_an_array_larger_than_the_memory_for_converting(tmp_path: Path) -> None:
    values = np.random.default_rng(1).integers(0, 1000, (3000, 1000), "i4")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=values, chunks=(70, 500), compression="gzip", compression_opts=1)
    code = "import sys, h5py, hashlib\nprint(hashlib.sha256(h5py.File(sys.argv[1])['v'].astype('f8')[1:]).hexdigest())"
    ran = python(code, tmp_path / "a.h5", HYPERSLAB_MEMORY="1M")
    assert ran.out == without(code, tmp_path / "a.h5").stdout
    assert ran.served == 1
