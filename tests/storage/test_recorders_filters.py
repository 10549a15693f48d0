"""The recorders run inside other programs and import nothing of ours: their filters are those of the table."""

from __future__ import annotations

import re
from pathlib import Path

from hyperslab.storage.table import FIRST_PLUGIN, TABLE
from hyperslab.trace.recording import h5py_recorder

# HDF5's own filters, and those of plugins that we write.
ADVISED = sorted({row.hdf5 for row in TABLE if row.hdf5 and (row.hdf5 < FIRST_PLUGIN or row.parameters is not None)})
RUST = Path(__file__).parents[2] / "crates/hyperslab-preload/src/recording/arrays.rs"


def test_the_recorder_of_h5py_asks_for_the_filters_of_the_table() -> None:
    assert sorted(h5py_recorder._ADVISED) == ADVISED
    assert {row.hdf5: row.name for row in TABLE if row.hdf5 and row.hdf5 < FIRST_PLUGIN} == h5py_recorder._FILTERS


def test_the_preloaded_recorder_asks_for_the_filters_of_the_table() -> None:
    listed = re.search(r"const ADVISED: \[i32; \d+\] = \[([\d, ]+)\];", RUST.read_text())
    assert listed is not None
    assert sorted(int(number) for number in listed[1].split(",")) == ADVISED
