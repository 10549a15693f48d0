"""What zarr-python 2 did equals what the trace says. It is installed beside, as one Python has one zarr-python."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from preloaded_programs import mask, selected, traced_python

import hyperslab as hs

pytest.importorskip("pyarrow", reason="not installed: pip install 'hyperslab[report]'")
# Keeps what was fetched for this Python, so that it is fetched only once.
KEPT = Path(__file__).parents[2] / "target" / f"zarr2-{sys.implementation.cache_tag}"
VERSIONS = ("zarr==2.18.7", "numcodecs==0.15.1", "fasteners==0.20", "deprecated==1.2.18", "wrapt==1.17.3")
# zarr-python 2 draws trees with this package, which has no wheel.
ASCIITREE = {"__init__": "class LeftAligned: ...\nBoxStyle = BOX_LIGHT = None\n", "traversal": "class Traversal: ...\n"}
PROGRAM = """
import sys
sys.path.insert(0, sys.argv[1])
import numpy as np, zarr
assert zarr.__version__.startswith("2."), zarr.__version__
root = zarr.open_group("a.zarr", mode="w")
array = root.create_dataset("g/x", shape=(12, 9), chunks=(5, 2), dtype="i2")
array[...] = np.ones((12, 9), "i2")
array[2:7, 3] = 5
array[3]
array[-1, ::2]
array[5:5]
array.oindex[[1, 4, 7], [0, 8]]
array.oindex[np.arange(12) % 3 == 0, 1:3]
array.vindex[[1, 4, 7], [0, 8, 2]]
array.vindex[np.eye(12, 9, dtype=bool)]
array.get_block_selection((1, slice(1, 3)))
one = root.create_dataset("one", shape=(), dtype="f8")
one[...] = 2.5
assert one[()] == 2.5
try:
    array[99]
except IndexError:
    print("out of bounds")
"""


@pytest.fixture(scope="module")
def zarr2() -> Path:
    """A folder with zarr-python 2. Skips the test if it cannot be fetched."""
    if not KEPT.exists():
        KEPT.parent.mkdir(parents=True, exist_ok=True)
        made = KEPT.with_name(f"{KEPT.name}-{id(PROGRAM)}")
        words = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--retries", "1", "--target", str(made)]
        try:
            done = subprocess.run([*words, *VERSIONS], capture_output=True, text=True, timeout=250)
        except subprocess.TimeoutExpired:
            pytest.skip("zarr-python 2 cannot be installed: the package index is slow")
        if done.returncode:
            pytest.skip(f"zarr-python 2 cannot be installed: {done.stderr[-200:]}")
        (made / "asciitree").mkdir()
        for name, text in ASCIITREE.items():
            (made / "asciitree" / f"{name}.py").write_text(text)
        made.rename(KEPT)
    return KEPT


@pytest.mark.slow  # it installs a package
def test_zarr_python_2(tmp_path: Path, zarr2: Path) -> None:
    trace = traced_python(tmp_path, PROGRAM, str(zarr2))
    assert trace.notes == []
    array = [one for one in trace if one.array.array == "/g/x"]
    keys = [
        np.s_[...], np.s_[2:7, 3], np.s_[3], np.s_[-1, ::2], np.s_[5:5], np.ix_([1, 4, 7], [0, 8]),
        np.s_[::3, 1:3], ([1, 4, 7], [0, 8, 2]), np.eye(12, 9, dtype=bool), np.s_[5:10, 2:6],
    ]  # fmt: skip
    assert [one.operation for one in array] == ["write"] * 2 + ["read"] * 8
    for access, key in zip(array, keys, strict=True):
        np.testing.assert_array_equal(mask(access), selected(key))
        assert access.nbytes == 2 * int(selected(key).sum())
    described = array[0].array
    assert (described.library, described.file) == ("zarr", str(tmp_path / "a.zarr"))
    assert (described.shape, described.chunks, described.dtype, described.filters) == (
        (12, 9),
        (5, 2),
        "<i2",
        ("blosc",),
    )
    one = [access for access in trace if access.array.array == "/one"]
    assert [(access.operation, access.selection_kind, access.nbytes) for access in one] == [
        ("write", "all", 8), ("read", "all", 8),
    ]  # fmt: skip
    assert isinstance(trace, hs.Trace)
