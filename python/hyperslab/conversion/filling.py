"""Fills the arrays of a new file: reads slabs of the source, and lets the target encode and write them."""

from __future__ import annotations

import itertools
import math
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import numpy as np
import numpy.typing as npt

from hyperslab._core import encode_chunks
from hyperslab.conversion.journal import ConversionJournal, Finished
from hyperslab.conversion.slabs import Passes, SlabPlan, passes
from hyperslab.errors import RunError
from hyperslab.memory import aligned_empty
from hyperslab.progress import Progress

Box: TypeAlias = tuple[slice, ...]
Bytes: TypeAlias = npt.NDArray[np.uint8]


class Target(Protocol):
    """An array that is written slab by slab. `is_replayable`: finished slabs need not be written again."""

    is_replayable: bool

    @property
    def chunk_shape(self) -> tuple[int, ...]:
        """The shape of what is encoded at once; checksums are of these."""

    def write(self, box: Box, data: Bytes) -> Finished:
        """Encode and write a slab that begins and ends at boundaries of the unit."""

    def replay(self, box: Box, finished: Finished) -> None:
        """Repeat what `write` did apart from writing, for a slab that is there."""


@dataclass
class Filling:
    """An array to fill.

    Attributes
    ----------
    path
        Its path in the target, for messages and the journal.
    shape, width
        Its shape, and bytes of an element.
    fill
        The bytes of an element that was never written.
    source_chunks
        The chunk shape of the source; None if any part can be read by itself.
    unit
        The shape of what is written at once: a chunk, or a shard.
    read
        Reads a box of the source into bytes.
    target
        What writes the array.
    read_back
        Reads a box of the finished array into bytes; None if it need not be verified.
    """

    path: str
    shape: tuple[int, ...]
    width: int
    fill: bytes
    source_chunks: tuple[int, ...] | None
    unit: tuple[int, ...]
    read: Callable[[Box, Bytes], None]
    target: Target

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.width


class Filler:
    """Fills arrays one after the other.

    Parameters
    ----------
    journal : ConversionJournal
        Where finished slabs are noted.
    memory : int
        The most bytes to use for slabs.
    threads : int | None
        How many threads work.
    progress : Progress | None
        Told how many MiB are done.
    """

    def __init__(self, journal: ConversionJournal, memory: int, threads: int | None, progress: Progress | None) -> None:
        self._journal = journal
        self._memory = memory
        self._threads = threads
        self._progress = progress
        self._done = 0
        self._all = 0
        self._buffer = np.empty(0, np.uint8)

    def fill(self, fillings: list[Filling]) -> None:
        """Fill all arrays."""
        self._all = sum(filling.nbytes for filling in fillings)
        plans = [(filling, self._plan(filling)) for filling in fillings if 0 not in filling.shape]  # fails first
        for filling, found in plans:
            if found.source is None:
                self._in_one_pass(filling, found.target)
            else:
                self._in_two_passes(filling, found.target, found.source)

    def verify(self, fillings: list[Filling], read_back: Callable[[str], Callable[[Box, Bytes], None]]) -> None:
        """Read all arrays again, and compare the checksums of their chunks.

        Raises
        ------
        RunError
            A slab is not what was written.
        """
        self._done = 0
        for filling in fillings:
            if 0 in filling.shape:
                continue
            read = read_back(filling.path)
            for number, box in enumerate(self._plan(filling).target.boxes()):
                data = self._room(box, filling)
                read(box, data)
                if checksum(filling, box, data, self._threads) != self._journal.finished[filling.path, number].checksum:
                    said = f"{filling.path}: what was written at {_shown(box)} reads differently"
                    raise RunError(
                        f"{said}: nothing was put in place; the disk or a codec is at fault, please report it"
                    )
                self._tell(f"verifying {filling.path}", data.nbytes)

    def _plan(self, filling: Filling) -> Passes:
        # One slab is in memory with its encoded chunks, which may be as large.
        most = max(self._memory // 2, 1)
        return passes(filling.shape, filling.source_chunks, filling.unit, filling.width, most)

    def _room(self, box: Box, filling: Filling) -> Bytes:
        """Memory for a slab; one buffer serves all."""
        nbytes = math.prod(one.stop - one.start for one in box) * filling.width
        if len(self._buffer) < nbytes:
            self._buffer = np.empty(0, np.uint8)  # free the old one first
            self._buffer = aligned_empty((nbytes,), np.dtype(np.uint8))
        return self._buffer[:nbytes]

    def _in_one_pass(self, filling: Filling, plan: SlabPlan) -> None:
        for number, box in enumerate(plan.boxes()):
            self._slab(filling, number, box, filling.read)

    def _slab(self, filling: Filling, number: int, box: Box, read: Callable[[Box, Bytes], None]) -> None:
        finished = self._journal.finished.get((filling.path, number))
        data = self._room(box, filling)
        if finished is None or not filling.target.is_replayable:
            read(box, data)
            self._journal.add(filling.path, number, filling.target.write(box, data))
        else:
            filling.target.replay(box, finished)
        self._tell(filling.path, data.nbytes)

    def _in_two_passes(self, filling: Filling, plan: SlabPlan, source: SlabPlan) -> None:
        """Copy the source into an intermediate file first, cut along both plans; then every slab is in one piece."""
        boxes = list(plan.boxes())
        if filling.target.is_replayable and all(
            (filling.path, number) in self._journal.finished for number in range(len(boxes))
        ):
            self._in_one_pass(filling, plan)
            return
        with tempfile.TemporaryFile(dir=self._journal.folder) as file:
            descriptor = file.fileno()
            offsets = _offsets(boxes, source, filling.width)
            for box in source.boxes():
                data = self._room(box, filling)
                filling.read(box, data)
                slab = data.reshape(*(one.stop - one.start for one in box), filling.width)
                for part in _parts(box, plan):
                    _write_at(descriptor, np.ascontiguousarray(slab[_within(part, box)]), offsets[_key(part)])

            def read(box: Box, data: Bytes) -> None:
                slab = data.reshape(*(one.stop - one.start for one in box), filling.width)
                for part in _parts(box, source):
                    piece = np.empty((*(one.stop - one.start for one in part), filling.width), np.uint8)
                    _read_at(descriptor, piece, offsets[_key(part)])
                    slab[_within(part, box)] = piece

            for number, box in enumerate(boxes):
                self._slab(filling, number, box, read)

    def _tell(self, what: str, nbytes: int) -> None:
        self._done += nbytes
        if self._progress is not None:
            self._progress(what, self._done >> 20, self._all >> 20)


def checksum(filling: Filling, box: Box, data: Bytes, threads: int | None) -> int:
    """One number for a slab: the checksum of its chunks' checksums."""
    if not filling.shape:
        return folded(encode_chunks(data, ([1], [1]), filling.fill, [], None, threads))
    shape = [one.stop - one.start for one in box]
    return folded(encode_chunks(data, (shape, list(filling.target.chunk_shape)), filling.fill, [], None, threads))


def folded(checksums: npt.NDArray[np.uint32]) -> int:
    """The checksum of checksums."""
    data = np.ascontiguousarray(checksums).view(np.uint8)
    return int(encode_chunks(data, ([len(data)], [max(len(data), 1)]), b"\0", [], None, 1)[0]) if len(data) else 0


def _shown(box: Box) -> str:
    return "[" + ", ".join(f"{one.start}:{one.stop}" for one in box) + "]"


def _key(box: Box) -> tuple[int, ...]:
    return tuple(one.start for one in box)


def _parts(box: Box, plan: SlabPlan) -> Iterator[Box]:
    """The parts of a box that the slabs of a plan hold, in C order."""
    axes = []
    for one, slab in zip(box, plan.slab_shape, strict=True):
        cuts = range(one.start // slab * slab, one.stop, slab)
        axes.append([slice(max(cut, one.start), min(cut + slab, one.stop)) for cut in cuts])
    yield from itertools.product(*axes)


def _offsets(boxes: list[Box], source: SlabPlan, width: int) -> dict[tuple[int, ...], int]:
    """Where each part lies in the intermediate file, by its start: those of a slab of the target follow one another."""
    offset, found = 0, {}
    for box in boxes:
        for part in _parts(box, source):
            found[_key(part)] = offset
            offset += math.prod(one.stop - one.start for one in part) * width
    return found


def _within(part: Box, box: Box) -> Box:
    return tuple(slice(a.start - b.start, a.stop - b.start) for a, b in zip(part, box, strict=True))


def _write_at(descriptor: int, data: npt.NDArray[np.uint8], offset: int) -> None:
    view, done = data.reshape(-1).data, 0
    while done < len(view):
        done += os.pwrite(descriptor, view[done:], offset + done)


def _read_at(descriptor: int, data: npt.NDArray[np.uint8], offset: int) -> None:
    view, done = data.reshape(-1).data, 0
    while done < len(view):
        done += os.preadv(descriptor, [view[done:]], offset + done)
