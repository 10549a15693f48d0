"""Raw bytes through the operating system's own calls: the floor with which every library is compared.

Each array is one file `NAME.bin` in a directory. The file holds the elements in C order and nothing else; `open`,
`pread`, `pwrite` and `close` access it without a buffer in between. A selection costs one call for each run of bytes
that is contiguous in the file. To read every k-th element of a row, the format reads the row's whole span once and
picks the elements from it.

Library: the operating system. Cannot express: shape and dtype (you give them when you open the array), chunks,
codecs, compound types, nested names.
"""

from __future__ import annotations

import itertools
import os
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar, Literal

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.errors import RunError, UsageError
from hyperslab.formats.contract import ArrayFile, ArrayHandle, ArraySpec, Capabilities, Format, Installed
from hyperslab.formats.directory import DirectoryFile, open_descriptor
from hyperslab.memory import aligned_empty


class Raw(Format):
    """Elements in C order, nothing else."""

    name: ClassVar[str] = "raw"
    extension: ClassVar[str] = ".raw"
    capabilities: ClassVar[Capabilities] = Capabilities(
        append=True,
        many_arrays=False,
        byte_order="either",
        self_describing=False,
        notes="one pread or pwrite per contiguous run; an array that was never written reads as zeros",
    )
    default_layout: ClassVar[str] = "contiguous"

    @classmethod
    def library(cls) -> Installed:
        """The operating system."""
        return Installed(platform.system(), platform.release())

    def create(self, path: Path) -> ArrayFile:
        """Make the directory."""
        path.mkdir()
        return RawFile(path, ".bin", writable=True)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Find the directory."""
        return RawFile(path, ".bin", writable=mode == "r+")


class RawFile(DirectoryFile):
    """A directory of NAME.bin files."""

    def _create(self, path: Path, spec: ArraySpec) -> RawArray:
        descriptor = open_descriptor(path, os.O_RDWR | os.O_CREAT | os.O_EXCL)
        # Set the size without writing a byte, so that any part can be written first and read later.
        os.ftruncate(descriptor, spec.nbytes)
        return RawArray(descriptor, path, spec)

    def _open(self, path: Path, spec: ArraySpec | None) -> RawArray:
        if spec is None:
            raise UsageError(f"{path}: a raw file does not record shape and dtype; give a spec to open it")
        flags = os.O_RDWR if self._writable else os.O_RDONLY
        return RawArray(open_descriptor(path, flags), path, spec)


class RawArray(ArrayHandle):
    """One open file of elements."""

    def __init__(self, descriptor: int, path: Path, spec: ArraySpec) -> None:
        self._descriptor = descriptor
        self._path = path
        self._shape = spec.shape
        self._dtype = spec.dtype

    def write(self, data: np.ndarray, selection: Hyperslab | None = None) -> None:
        """Write each run with one pwrite; if only every k-th element is selected, read the run and change it first."""
        stored = np.ascontiguousarray(data, self._dtype)
        if selection is None:
            self._write_at(_bytes_of(stored), 0)
            return
        runs = _runs(selection, self._shape)
        rows = stored.reshape(runs.count, *runs.picked_shape)
        for piece, row, offset in zip(_pieces(rows), rows, runs.offsets(), strict=True):
            if runs.step == 1:
                self._write_at(piece, offset * self._dtype.itemsize)
                continue
            span = self._span_at(offset, runs)
            span[:: runs.step] = row
            self._write_at(_bytes_of(span), offset * self._dtype.itemsize)

    def read(self, selection: Hyperslab | None = None) -> np.ndarray:
        """Read each run with one pread, straight into the result if the run is contiguous."""
        if selection is None:
            whole = aligned_empty(self._shape, self._dtype)
            self._read_at(_bytes_of(whole), 0)
            return whole
        runs = _runs(selection, self._shape)
        rows = aligned_empty((runs.count, *runs.picked_shape), self._dtype)
        for piece, row, offset in zip(_pieces(rows), rows, runs.offsets(), strict=True):
            if runs.step == 1:
                self._read_at(piece, offset * self._dtype.itemsize)
            else:
                row[...] = self._span_at(offset, runs)[:: runs.step]
        return rows.reshape(selection.shape)

    def append(self, data: np.ndarray) -> None:
        """Write after the last element."""
        end = int(np.prod(self._shape, dtype=np.int64)) * self._dtype.itemsize
        self._write_at(_bytes_of(np.ascontiguousarray(data, self._dtype)), end)
        self._shape = (self._shape[0] + data.shape[0], *self._shape[1:])

    def close(self) -> None:
        """Close the descriptor."""
        os.close(self._descriptor)

    def _span_at(self, offset: int, runs: Runs) -> np.ndarray:
        picked, *inner = runs.picked_shape
        span = np.empty(((picked - 1) * runs.step + 1, *inner), self._dtype)
        self._read_at(_bytes_of(span), offset * self._dtype.itemsize)
        return span

    def _read_at(self, view: memoryview, position: int) -> None:
        while view.nbytes:
            got = os.preadv(self._descriptor, [view], position)
            if not got:
                raise RunError(f"{self._path} ends at byte {position}: it is too short for its shape and dtype")
            view, position = view[got:], position + got

    def _write_at(self, view: memoryview, position: int) -> None:
        while view.nbytes:
            put = os.pwrite(self._descriptor, view, position)
            view, position = view[put:], position + put


def _bytes_of(array: np.ndarray) -> memoryview:
    return array.reshape(-1).view(np.uint8).data


def _pieces(rows: np.ndarray) -> Iterator[memoryview]:
    everything = _bytes_of(rows)
    nbytes = len(everything) // max(len(rows), 1)
    return (everything[start : start + nbytes] for start in range(0, nbytes * len(rows), max(nbytes, 1)))


@dataclass(frozen=True)
class Runs:
    """A selection as equal runs of the file. Each run has an offset and picks `picked_shape` elements by `step`."""

    count: int
    picked_shape: tuple[int, ...]
    step: int
    outer: tuple[range, ...]  # element offsets of the selected indices of each outer axis
    first: int  # element offset inside the run's axis

    def offsets(self) -> Iterator[int]:
        """Where each run begins, in elements, in C order."""
        return (self.first + sum(offsets) for offsets in itertools.product(*self.outer))


def _runs(selection: Hyperslab, shape: tuple[int, ...]) -> Runs:
    selection.check_within(shape)
    wanted = [range(piece.start, piece.stop, piece.step) for piece in selection.slices]
    axis = len(shape) - 1
    while axis > 0 and wanted[axis] == range(shape[axis]):
        axis -= 1
    strides = [int(np.prod(shape[outer + 1 :], dtype=np.int64)) for outer in range(axis + 1)]
    outer = tuple(
        range(index.start * stride, index.stop * stride, index.step * stride)
        for index, stride in zip(wanted[:axis], strides, strict=False)
    )
    picked_shape = (len(wanted[axis]), *shape[axis + 1 :])
    count = int(np.prod([len(index) for index in outer], dtype=np.int64)) if picked_shape[0] else 0
    step = wanted[axis].step if len(wanted[axis]) > 1 else 1
    return Runs(count, picked_shape, step, outer, wanted[axis].start * strides[axis])
