"""Zarr arrays with impossible elements raise our errors, never NumPy's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import hyperslab as hs
from hyperslab.errors import DamagedFile, Unsupported

SHAPES = [[10**9, 10**9], [10**9], [2**31], [2**63], [2**62, 4], [1] * 65, [-1], [2.5], "x", []]
NAMES = ["|S1000000000000", "|S2147483648", "<U600000000", "|V9999999999", "|S-1"]


@pytest.mark.parametrize(
    "dtype", [*([["f", "<f8", shape]] for shape in SHAPES), *NAMES, *([["f", one]] for one in NAMES)]
)
def test_records_and_text(tmp_path: Path, dtype: Any) -> None:
    (tmp_path / "z.zarr" / "a").mkdir(parents=True)
    (tmp_path / "z.zarr" / ".zgroup").write_text('{"zarr_format": 2}')
    said = {"zarr_format": 2, "shape": [2], "chunks": [2], "dtype": dtype, "compressor": None, "filters": None}
    (tmp_path / "z.zarr" / "a" / ".zarray").write_text(json.dumps({**said, "fill_value": None, "order": "C"}))
    repr(hs.open(tmp_path / "z.zarr"))
    for look in (lambda array: array.dtype, lambda array: array.nbytes, lambda array: array[0]):
        with pytest.raises((Unsupported, DamagedFile)):
            look(hs.open(tmp_path / "z.zarr")["a"])
