"""The 2002 study's five benchmarks: the phases that it timed, the best of ten trials, nothing synced to the device.

Elena Pourmal, "FITSIO, HDF4, NetCDF, PDB and HDF5 Performance", 2002. The programs are not public. The slides say what
was timed: the total (create or open the file and the dataset, write or read, close both) and the write or read alone.
We use our own formats, which call the libraries as in 2002. These figures differ from fair ones in durability, in the
cache (whatever state it is in) and in the statistic.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.bench.operations import OPERATIONS, Operation, selections
from hyperslab.bench.published import PublishedArrays, Replay
from hyperslab.errors import Refused
from hyperslab.formats import make_format
from hyperslab.formats.contract import ArrayHandle, ArraySpec, Format, Need
from hyperslab.storage.layout import StoredLayout
from hyperslab.timers import Timers


class Formats2002(Replay):
    """The total, and the operation alone, for each of the six libraries."""

    name: ClassVar[str] = "formats-2002"
    source: ClassVar[str] = "Science Data Processing Workshop, 27 February 2002"
    formats: ClassVar[tuple[str, ...]] = ("raw", "fits", "hdf4", "netcdf3", "pdb", "hdf5")
    trials: ClassVar[int] = 10
    dropped: ClassVar[int] = 0
    statistic: ClassVar[Literal["mean", "min"]] = "min"
    faults: ClassVar[Mapping[str, str]] = {
        "B9": "nothing is synced to the device: writes end in the page cache",
        "B10": "the file was just written and is read from the page cache",
        "B13": "the best of ten trials is used, without a measure of spread",
    }

    def write(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> dict[str, float]:
        """Create the file, create and write each array, and close."""
        if operation.name != "write":
            raise Refused(
                f"{self.name} does not support {operation.name}: the study created and wrote each array in turn"
            )
        made, spec, timers = *_made(format_name, arrays), Timers()
        data = np.random.default_rng(arrays.count).integers(0, 256, spec.nbytes, np.uint8).view(spec.dtype)
        data = data.reshape(spec.shape)
        with timers("create_file"):
            file = made.create(path)
        for index in range(arrays.count):
            with timers("create_array"):
                array = file.create_array(_name(index), spec)
            with timers("write"):
                array.write(data)
        with timers("close"):
            file.close()
        return timers.seconds

    def read(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> dict[str, float]:
        """Open the file and its last array, read the selections, and close.

        The study's read benchmarks wrote their file first without timing it. So does this, if there is no file.
        """
        if OPERATIONS[operation.name].verb != "read":
            raise Refused(f"{self.name} does not support {operation.name}")
        made, spec, timers = *_made(format_name, arrays), Timers()
        if not path.exists():
            self.write(format_name, path, arrays, Operation(name="write"))
        asked = selections(operation, arrays.shape)
        with timers("open_file"):
            file = made.open(path)
        with timers("open_array"):
            array = file.open_array(_name(arrays.count - 1), spec)
        with timers("read"):
            for selection in asked:
                _native(array, selection)
        with timers("close"):
            file.close()
        return timers.seconds


def _native(array: ArrayHandle, selection: Hyperslab) -> np.ndarray:
    """Elements in the processor's byte order: the C libraries of 2002 converted them during the read calls."""
    got = array.read(selection)
    return got.astype(got.dtype.newbyteorder("="), copy=False)


def _made(format_name: str, arrays: PublishedArrays) -> tuple[Format, ArraySpec]:
    """The format and its contiguous array. Raises Refused before anything is written."""
    made, spec = make_format(format_name), ArraySpec(arrays.shape, arrays.dtype, StoredLayout())
    if reason := made.refusal(spec, Need()):
        raise Refused(f"{format_name} {reason}; use `stored_as` to name another dtype for the same bits")
    return made, spec


def _name(index: int) -> str:
    return f"array{index}"
