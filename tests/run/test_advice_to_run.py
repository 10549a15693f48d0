"""`hyperslab trace show` recommends `hyperslab run` for what it serves: the rule of one is that of the other."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np
import pytest
from run_programs import run

import hyperslab as hs
from hyperslab.trace import served
from hyperslab.trace.summaries import summaries_of

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")

SOURCE = Path(__file__).parents[2] / "crates" / "hyperslab-preload" / "src" / "serving.rs"
# Arrays with reads of each kind: for each, whether any of its reads is served.
READS = {
    "packed[:, 3]": True,  # 64 elements in 64 chunks, more than the cache holds
    "packed[:12, 3]": True,  # 12 elements in 12 chunks
    "packed[:8, 3]": False,  # the cache holds 8 chunks
    "packed[5, 100]": False,
    "packed[5, :500]": False,
    "packed[5]": True,
    "large[7, 7]": True,  # the cache does not hold a single chunk
    "small[:, 3]": False,  # the cache holds all chunks
    "small[:]": True,
    "plain[:1000]": False,
    "plain[:]": True,
    "rows[:600]": False,  # 600 elements of 64 bytes
    "rows[:2000]": True,
}
PROGRAM = """
import sys, h5py
with h5py.File(sys.argv[1], rdcc_nbytes=1 << 20) as file:
    for text in sys.argv[2:]:
        name, key = text.rstrip("]").split("[")
        for _ in range(3):
            file[name].__getitem__(eval(f"__import__('numpy').s_[{key}]"))
"""


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "a.h5"
    random = np.random.default_rng(1)
    with h5py.File(path, "w") as made:
        elements = random.integers(0, 9, (64, 32_768)).astype("f4")
        made.create_dataset("packed", data=elements, chunks=(1, 32_768), compression="gzip", compression_opts=1)
        made.create_dataset("large", data=elements, chunks=(32, 32_768), compression="gzip", compression_opts=1)
        made.create_dataset("small", data=elements[:, :128], chunks=(1, 128), compression="gzip")
        made["plain"] = np.arange(300_000.0)
        rows = np.zeros(4000, [("a", "f8", 8)])
        made.create_dataset("rows", data=rows, chunks=(1000,), compression="gzip")
    return path


def predicted(file: Path, text: str) -> int:
    """How many of three such reads are said to be served."""
    name, key = text.rstrip("]").split("[")
    with hs.record() as trace, h5py.File(file, rdcc_nbytes=1 << 20) as opened:
        for _ in range(3):
            opened[name][eval(f"np.s_[{key}]")]
    (one,) = summaries_of(trace)
    found = served.served_reads(trace, one)
    assert (served.served_share(trace, one) > 0) == bool(found.any())
    return int(found.sum())


def test_reads_that_are_said_to_be_served_are_served(file: Path) -> None:
    """Reads that touch few chunks were recommended to `run`, which left all of them to libhdf5."""
    counts = {text: predicted(file, text) for text in READS}
    assert {text: count > 0 for text, count in counts.items()} == READS
    assert run(sys.executable, "-c", PROGRAM, file, *READS).served == sum(counts.values())
    small = [text for text, count in counts.items() if not count]
    assert run(sys.executable, "-c", PROGRAM, file, *small).served == 0


def test_the_numbers_are_those_of_the_preloaded_library() -> None:
    source = SOURCE.read_text()
    for name in ("FEW_ELEMENTS", "FEWEST_ELEMENTS", "FEW_NBYTES", "FEW_PLAIN_NBYTES", "NBYTES_PER_CHUNK"):
        (value,) = re.findall(rf"const {name}: \w+ = ([^;]+);", source)
        assert eval(value) == getattr(served, name), name
