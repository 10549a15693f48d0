"""Arrays compressed by zfp: h5py reads them for us if hdf5plugin has the codec; otherwise the error names it."""

from __future__ import annotations

import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs

hdf5plugin = pytest.importorskip("hdf5plugin", reason="not installed: pip install hdf5plugin")
MODES: dict[str, dict[str, Any]] = {
    "rate": {"rate": 16.0},
    "precision": {"precision": 20},
    "accuracy": {"accuracy": 0.01},
    "reversible": {"reversible": True},
}
GRIDS = [((1000,), (256,)), ((40, 50), (16, 20)), ((12, 13, 14), (8, 8, 8)), ((5, 6, 7, 8), (4, 4, 4, 4))]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    rng = np.random.default_rng(1)
    with h5py.File(tmp_path / "zfp.h5", "w") as file:
        for dtype in ("f4", "f8", "i4", "i8"):
            for mode, options in MODES.items():
                if dtype[0] == "i" and mode == "accuracy":
                    continue  # zfp supports this for floats only
                for shape, chunks in GRIDS:
                    data = np.cumsum(rng.normal(size=shape) * 100, axis=-1).astype(dtype)
                    name = f"{dtype}-{mode}-{len(shape)}"
                    file.create_dataset(name, data=data, chunks=chunks, **hdf5plugin.Zfp(**options))
    return tmp_path / "zfp.h5"


def test_all_modes_are_read_as_h5py_reads_them(path: Path) -> None:
    found = hs.open(path)
    with h5py.File(path) as file:
        assert len(file) == 14 * len(GRIDS)
        for name, theirs in file.items():
            assert found[name].via == "h5py"
            np.testing.assert_array_equal(found[name][...], theirs[...])
            np.testing.assert_array_equal(pickle.loads(pickle.dumps(found[name]))[1:4], theirs[1:4])


WITHOUT = """
import sys
import hyperslab as hs

sys.modules["hdf5plugin"] = None
import importlib.util
known = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name == "hdf5plugin" else known(name, *rest)
import hyperslab.archive.tree.fallback as fallback
fallback.find_spec = importlib.util.find_spec
try:
    hs.open(sys.argv[1])["f4-rate-1"][...]
except hs.errors.HyperslabError as error:
    print(type(error).__name__, error)
"""


def test_without_the_codec_they_are_refused_by_name(path: Path) -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT, str(path)], capture_output=True, text=True, check=True)
    assert "f4-rate-1" in done.stdout
    assert "zfp" in done.stdout
    assert "hdf5plugin" in done.stdout
