"""From a case to its cells: the groups of cells, the array that each cell writes, and which cells are refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from hyperslab.bench import mpi
from hyperslab.bench.layouts import auto_chunks, given_chunks, shard_shape
from hyperslab.bench.operations import OPERATIONS, selections
from hyperslab.bench.published import make_replay
from hyperslab.bench.records import Cell, Method
from hyperslab.bench.study import Case, Conditions
from hyperslab.errors import MissingLibrary
from hyperslab.formats import availability, format_class, make_format
from hyperslab.formats.contract import ArraySpec, Need
from hyperslab.lab import serving
from hyperslab.lab.fields import Field
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout


@dataclass(frozen=True)
class CellGroup:
    """Cells that are measured together in random order: one case, one method, one array shape and count."""

    case: Case
    method: Method
    shape: tuple[int, ...]
    count: int
    cells: tuple[Cell, ...]

    @property
    def field(self) -> Field:
        """The elements of the arrays."""
        return Field(self.case.data, self.shape, array_dtype(self.case))


def array_dtype(case: Case) -> np.dtype[Any]:
    """The dtype of a case's arrays. A compound one is structured, with fields p0, p1, …"""
    if case.properties is None:
        return np.dtype(case.dtype)
    return np.dtype([(f"p{k}", case.dtype) for k in range(case.properties)])


def groups(case: Case, method: Method) -> list[CellGroup]:
    """All groups of a case, with the smallest arrays first."""
    return [
        CellGroup(case, method, tuple(shape), count, tuple(_cells(case, method, tuple(shape), count)))
        for shape in case.shapes
        for count in case.counts
    ]


def _cells(case: Case, method: Method, shape: tuple[int, ...], count: int) -> Iterator[Cell]:
    fair = method == "fair"
    conditions = list(case.conditions) if fair else published_conditions(case)
    formats = [name for name in case.formats if fair or name in make_replay(case.replay or "").formats]
    operations = [each for each in case.operations if fair or not OPERATIONS[each.name].fair_only]
    for condition, name, operation in product(conditions, formats, operations):
        for cache, processes in product(_caches(case, method, operation.name), case.processes if fair else [1]):
            yield Cell(case.name, method, condition, name, operation, shape, count, cache, processes)


def _caches(case: Case, method: Method, operation: str) -> list[Any]:
    if method == "published":
        return ["unknown"]
    return ["new"] if OPERATIONS[operation].verb == "write" else case.caches


def published_conditions(case: Case) -> list[str]:
    """The conditions that a published method distinguishes: compressed or not. Otherwise it uses its own defaults."""
    plain = [name for name, said in case.conditions.items() if said == "default"]
    plain += [name for name in case.conditions if name not in plain and not is_compressed(case, name)]
    packed = [name for name in case.conditions if is_compressed(case, name)]
    return plain[:1] + packed[:1]


def is_compressed(case: Case, conditions: str) -> bool:
    """Whether the conditions include a codec."""
    said = case.conditions[conditions]
    return isinstance(said, Conditions) and bool(said.codecs)


def spec_of(case: Case, cell: Cell) -> ArraySpec:
    """The array that a cell's format should create."""
    dtype = array_dtype(case)
    if cell.format in case.stored_as:
        dtype = np.dtype(case.stored_as[cell.format])
    growable = cell.operation.name == "append"
    return ArraySpec(cell.shape, dtype, layout_of(case, cell, dtype), growable)


def layout_of(case: Case, cell: Cell, dtype: np.dtype[Any]) -> StoredLayout | None:
    """The layout of an array under the conditions, or None for the library's default."""
    said = case.conditions[cell.conditions]
    if said == "default":
        return None
    codecs = CodecChain(Codec.parse(text) for text in said.codecs)
    if said.chunks == "contiguous":
        return StoredLayout(codecs=codecs)
    if said.chunks == "auto":
        chunks = auto_chunks(cell.shape, dtype.itemsize)
    else:
        chunks = given_chunks(case.name, said.chunks, cell.shape)
    can = format_class(cell.format).capabilities
    return StoredLayout(chunks, shard_shape(chunks, cell.shape) if can.sharded_only else None, codecs=codecs)


def need_of(case: Case, cell: Cell) -> Need:
    """What a cell needs its format to support."""
    kind = OPERATIONS[cell.operation.name]
    wants = (kind.slices, kind.strided, kind.overwrite, kind.append, kind.compound, kind.field_write, kind.empty)
    return Need(*wants, urls=bool(server_of(case, cell)))


def server_of(case: Case, cell: Cell) -> Conditions | None:
    """The conditions of a cell if they name a server, else None."""
    said = case.conditions[cell.conditions]
    return said if said != "default" and said.server else None


def refusal(case: Case, cell: Cell) -> str | None:
    """Why a cell cannot be measured, or None if it can. This is known before anything runs."""
    known = availability(cell.format)
    if isinstance(known, MissingLibrary):
        return str(known)
    if cell.method == "published":
        return None
    if case.launcher == "mpi" and (reason := mpi.refusal(cell.format, cell.operation.name)):
        return reason
    if (served := server_of(case, cell)) and served.server:
        if OPERATIONS[cell.operation.name].verb != "read":
            return "servers only serve reads: write without a server"
        if reason := serving.absent(served.server):
            return reason
    made = make_format(cell.format, case.options.get(cell.format))
    if cell.processes > 1 and OPERATIONS[cell.operation.name].verb == "modify":
        return "several processes cannot change the same array"
    return made.refusal(spec_of(case, cell), need_of(case, cell))


def file_nbytes(case: Case, shape: tuple[int, ...], count: int) -> int:
    """Decoded bytes of one file of a group."""
    return int(np.prod(shape, dtype=np.int64)) * array_dtype(case).itemsize * count


def asked_nbytes(case: Case, cell: Cell) -> int:
    """Decoded bytes that a cell's operation writes or reads."""
    dtype = array_dtype(case)
    if OPERATIONS[cell.operation.name].verb == "write" or dtype.fields is not None:
        return file_nbytes(case, cell.shape, cell.count)
    arrays = 1 if cell.operation.name == "read-last-array" else cell.count
    return arrays * dtype.itemsize * sum(selection.size for selection in selections(cell.operation, cell.shape))
