"""Fills the arrays of a new file: reads slabs of the source, and lets the target encode and write them."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from hyperslab.conversion.cluster import Cluster
from hyperslab.conversion.encoding import Box, Bytes, SlabEncoder
from hyperslab.conversion.intermediate import Intermediate
from hyperslab.conversion.journal import SCRATCH_PREFIX, ConversionJournal, Finished
from hyperslab.conversion.meter import Meter
from hyperslab.conversion.reading import BoxReader
from hyperslab.conversion.slabs import Passes, SlabPlan, passes
from hyperslab.errors import RunError
from hyperslab.memory import aligned_empty


class Maker(Protocol):
    """Makes slabs of an array in another process."""

    def make(self, box: Box, data: Bytes) -> Any:
        """Encode a slab, and write it if it needs no other process."""


class Target(Protocol):
    """An array that is written slab by slab. `is_replayable`: finished slabs need not be written again."""

    is_replayable: bool
    encoder: SlabEncoder

    @property
    def elsewhere(self) -> Maker | None:
        """What makes slabs in other processes; None if only this process can."""

    def put(self, box: Box, made: Any) -> Finished:
        """Finish a slab that another process made."""

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
    given
        All elements, if they are in memory already.
    stored_count
        How many chunks will about be stored; None for all.
    """

    path: str
    shape: tuple[int, ...]
    width: int
    fill: bytes
    source_chunks: tuple[int, ...] | None
    unit: tuple[int, ...]
    read: Callable[[Box, Bytes], None]
    target: Target
    given: Bytes | None = None
    stored_count: int | None = None

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return math.prod(self.shape) * self.width

    def nbytes_of(self, box: Box) -> int:
        """Bytes of the elements of a box."""
        return int(math.prod(one.stop - one.start for one in box) * self.width)


class Filler:
    """Fills arrays one after the other.

    Parameters
    ----------
    journal : ConversionJournal
        Where finished slabs are noted.
    memory : int
        The most bytes to use for slabs.
    meter : Meter
        Told what is done.
    cluster : Cluster | None
        Processes that make slabs; None: only this one.
    """

    def __init__(self, journal: ConversionJournal, memory: int, meter: Meter, cluster: Cluster | None = None) -> None:
        self._journal = journal
        self._memory = memory
        self._meter = meter
        self._cluster = cluster
        self._buffer = np.empty(0, np.uint8)
        self._plans: dict[str, Passes] = {}

    def plan(self, filling: Filling) -> Passes:
        """How an array is filled: one slab is in memory with its encoded chunks, which may be as large."""
        if filling.path not in self._plans:
            most = max(self._memory // 2, 1)
            found = passes(filling.shape, filling.source_chunks, filling.unit, filling.width, most)
            self._plans[filling.path] = found
        return self._plans[filling.path]

    @staticmethod
    def least_nbytes(filling: Filling) -> int:
        """The least memory with which an array can be filled: one chunk or shard, twice.

        Of a shard only what lies in the array takes memory, but a chunk is encoded as a whole.
        """
        inside = math.prod(map(min, filling.unit, filling.shape))
        return 2 * max(inside, math.prod(filling.target.encoder.chunk_shape)) * filling.width

    def fill(self, fillings: list[Filling]) -> None:
        """Fill all arrays."""
        plans = [(filling, self.plan(filling)) for filling in fillings if 0 not in filling.shape]  # fails first
        for filling, plan in plans:
            maker = filling.target.elsewhere
            if filling.given is not None:
                box = tuple(slice(0, length) for length in filling.shape)
                self._journal.add(filling.path, 0, filling.target.write(box, filling.given))
            elif self._cluster is not None and maker is not None:
                self._by_cluster(filling, plan.target, maker, self._cluster)
            elif plan.source is None:
                self._in_one_pass(filling, plan.target)
            else:
                self._in_two_passes(filling, plan.target, plan.source)

    def verify(self, fillings: list[Filling], read_back: Callable[[str], Callable[[Box, Bytes], None]]) -> None:
        """Read all arrays again, and compare the checksums of their chunks.

        Raises
        ------
        RunError
            A slab is not what was written.
        """
        for filling in fillings:
            if 0 in filling.shape:
                continue
            read = read_back(filling.path)
            boxes = list(self.plan(filling).target.boxes())
            for number, (box, checksum) in enumerate(zip(boxes, self._checksums(filling, read, boxes), strict=True)):
                if checksum != self._journal.finished[filling.path, number].checksum:
                    said = f"{filling.path}: what was written at {_shown(box)} reads differently"
                    raise RunError(
                        f"{said}: nothing was put in place; the disk or a codec is at fault, please report it"
                    )
                self._meter.add(f"verifying {filling.path}", filling.nbytes_of(box))

    def _checksums(self, filling: Filling, read: Callable[[Box, Bytes], None], boxes: list[Box]) -> Iterator[int]:
        encoder = filling.target.encoder
        if self._cluster is not None and isinstance(read, BoxReader):
            alone = replace(read, threads=1)
            tasks = ((_checked, (alone, replace(encoder, threads=1), box, filling.nbytes_of(box))) for box in boxes)
            yield from self._cluster.in_order(tasks)
            return
        for box in boxes:
            data = self._room(box, filling)
            read(box, data)
            yield encoder.checksum(box, data)

    def _room(self, box: Box, filling: Filling) -> Bytes:
        """Memory for a slab; one buffer serves all."""
        nbytes = filling.nbytes_of(box)
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
        self._meter.add(filling.path, data.nbytes)

    def _in_two_passes(self, filling: Filling, plan: SlabPlan, source: SlabPlan) -> None:
        """Copy the source into an intermediate file first; then every slab of the target is in one piece."""
        boxes = list(plan.boxes())
        numbers = range(len(boxes))
        if filling.target.is_replayable and all((filling.path, one) in self._journal.finished for one in numbers):
            self._in_one_pass(filling, plan)
            return
        with tempfile.TemporaryFile(dir=self._journal.folder, prefix=SCRATCH_PREFIX) as file:
            between = Intermediate(file.fileno(), plan, source, filling.width)
            for box in source.boxes():
                data = self._room(box, filling)
                filling.read(box, data)
                between.put(box, data)
                self._meter.add(f"first pass over {filling.path}", 0)
            for number, box in zip(numbers, boxes, strict=True):
                self._slab(filling, number, box, between.read)

    def _by_cluster(self, filling: Filling, plan: SlabPlan, maker: Maker, cluster: Cluster) -> None:
        """Let other processes read and encode slabs, and finish them in order."""
        boxes = list(plan.boxes())
        known = self._journal.finished
        waiting = [box for number, box in enumerate(boxes) if (filling.path, number) not in known]
        read = replace(filling.read, threads=1) if isinstance(filling.read, BoxReader) else filling.read
        made = cluster.in_order((_made, (read, maker, box, filling.nbytes_of(box))) for box in waiting)
        for number, box in enumerate(boxes):
            finished = known.get((filling.path, number))
            if finished is None:
                self._journal.add(filling.path, number, filling.target.put(box, next(made)))
            else:
                filling.target.replay(box, finished)
            self._meter.add(filling.path, filling.nbytes_of(box))


def _made(read: Callable[[Box, Bytes], None], maker: Maker, box: Box, nbytes: int) -> Any:
    """A slab, made in another process."""
    data = np.empty(nbytes, np.uint8)
    read(box, data)
    return maker.make(box, data)


def _checked(read: Callable[[Box, Bytes], None], encoder: SlabEncoder, box: Box, nbytes: int) -> int:
    """The checksum of a slab of the target, read in another process."""
    data = np.empty(nbytes, np.uint8)
    read(box, data)
    return encoder.checksum(box, data)


def _shown(box: Box) -> str:
    return "[" + ", ".join(f"{one.start}:{one.stop}" for one in box) + "]"
