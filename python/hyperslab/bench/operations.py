"""The operations that a study can name, and the selections of each read.

A read is a list of Hyperslabs, one for each call of the library, in order. Random ones are drawn from a seed that
depends only on the array's shape, so every format, process and run gets the same selections.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from pydantic import Field, PositiveInt, field_validator

from hyperslab._core import Hyperslab
from hyperslab.chunk_grid import ceil_div
from hyperslab.declared import Declared, one_of

Shape = tuple[int, ...]


class Operation(Declared):
    """One thing to time: `write`, `read-all`, `read-random-boxes`, …, with its parameters."""

    name: str
    count: PositiveInt | None = Field(default=None, description="how many selections, or how many arrays to read")
    shape: list[PositiveInt | None] | None = Field(
        default=None, description=("shape of a box or hyperslab; null means the whole axis")
    )
    within: list[PositiveInt | None] | None = Field(
        default=None, description=("boxes start within this many first elements")
    )
    step: PositiveInt | None = Field(default=None, description="take every step-th element, for strided reads")
    fraction: float | None = Field(
        default=None, gt=0, le=1, description="share of the array, for hyperslab, overwrite, append"
    )

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        return one_of(name, OPERATIONS, "operation")

    @property
    def label(self) -> str:
        """The name with the parameters that differ from the operation's defaults."""
        given = self.model_dump(exclude_none=True, exclude={"name"})
        words = [f"{key}={'×'.join(map(_axis, v)) if isinstance(v, list) else v}" for key, v in given.items()]
        return f"{self.name}({', '.join(words)})" if words else self.name


def _axis(length: int | None) -> str:
    return "all" if length is None else str(length)


Pattern = Callable[[Shape, Operation, np.random.Generator], list[Hyperslab]]


def everything(shape: Shape, _: Operation, __: np.random.Generator) -> list[Hyperslab]:
    """The whole array in one call."""
    return [Hyperslab.all(shape)]


def contiguous_hyperslab(shape: Shape, operation: Operation, _: np.random.Generator) -> list[Hyperslab]:
    """One box in the middle: of `shape`, or `fraction` (a quarter) of axis 0 and all of the other axes."""
    if operation.shape is not None:
        box = _box(operation.shape, shape)
    else:
        box = (max(1, round(shape[0] * (operation.fraction or 0.25))), *shape[1:])
    start = [(length - wanted) // 2 for length, wanted in zip(shape, box, strict=True)]
    return [Hyperslab(start, None, [1] * len(shape), list(box))]


def strided(shape: Shape, operation: Operation, _: np.random.Generator) -> list[Hyperslab]:
    """Every `step`-th element (2) along every axis, from a leading box of `shape` if one is given."""
    step = operation.step or 2
    box = _box(operation.shape or [None] * len(shape), shape)
    counts = [ceil_div(length, step) for length in box]
    return [Hyperslab([0] * len(shape), [step] * len(shape), counts, None)]


def rows(shape: Shape, operation: Operation, _: np.random.Generator) -> list[Hyperslab]:
    """`count` (100) consecutive rows, one call each. A row is everything at one index of axis 0."""
    wanted = min(_count(operation), shape[0])
    first = (shape[0] - wanted) // 2
    return [_index(shape, {0: first + k}) for k in range(wanted)]


def columns(shape: Shape, operation: Operation, _: np.random.Generator) -> list[Hyperslab]:
    """`count` (1) columns, one call each. A column is everything at one index of the last axis."""
    wanted = min(_count(operation), shape[-1])
    first = (shape[-1] - wanted) // 2
    return [_index(shape, {len(shape) - 1: first + k}) for k in range(wanted)]


def random_rows(shape: Shape, operation: Operation, random: np.random.Generator) -> list[Hyperslab]:
    """`count` (1000) random rows with replacement, one call each."""
    return [_index(shape, {0: int(row)}) for row in random.integers(0, shape[0], _count(operation))]


def random_points(shape: Shape, operation: Operation, random: np.random.Generator) -> list[Hyperslab]:
    """`count` (1000) random elements, one call each."""
    drawn = random.integers(0, np.array(shape), (_count(operation), len(shape)))
    return [Hyperslab([int(i) for i in point], None, [1] * len(shape), None) for point in drawn]


def random_boxes(shape: Shape, operation: Operation, random: np.random.Generator) -> list[Hyperslab]:
    """`count` (1000) random boxes of `shape` (1000 × 8, as in Kang et al.), `within` the first elements of axes."""
    wanted = list(operation.shape or [1000, 8])
    if operation.shape is None:  # the published box has two axes: use the first and the last
        wanted = [1000] if len(shape) == 1 else [1000, *[1] * (len(shape) - 2), 8]
    box = _box(wanted, shape)
    limits = _box(operation.within or [None] * len(shape), shape)
    room = np.array([max(1, limit - length + 1) for limit, length in zip(limits, box, strict=True)])
    drawn = random.integers(0, room, (_count(operation), len(shape)))
    return [Hyperslab([int(i) for i in start], None, [1] * len(shape), list(box)) for start in drawn]


def time_series(shape: Shape, operation: Operation, random: np.random.Generator) -> list[Hyperslab]:
    """All of axis 0 at `count` (10) random positions on the other axes, one call each."""
    positions = random.integers(0, np.array(shape[1:], dtype=np.int64), (_count(operation), len(shape) - 1))
    return [_index(shape, dict(enumerate(map(int, position), start=1))) for position in positions]


def maps(shape: Shape, operation: Operation, random: np.random.Generator) -> list[Hyperslab]:
    """Everything at `count` (10) random indices of axis 0, one call each."""
    return [_index(shape, {0: int(k)}) for k in random.integers(0, shape[0], _count(operation))]


def _count(operation: Operation) -> int:
    """How many selections."""
    return operation.count or OPERATIONS[operation.name].usual_count


def _index(shape: Shape, fixed: dict[int, int]) -> Hyperslab:
    start = [fixed.get(axis, 0) for axis in range(len(shape))]
    block = [1 if axis in fixed else length for axis, length in enumerate(shape)]
    return Hyperslab(start, None, [1] * len(shape), block)


def _box(wanted: list[int | None], shape: Shape) -> Shape:
    return tuple(length if w is None else min(w, length) for w, length in zip(wanted, shape, strict=True))


@dataclass(frozen=True)
class OperationKind:
    """How an operation runs and what it needs of a format.

    `takes` are the parameters that its selections depend on besides `count`, and `usual_count` is how many there are
    without one. `is_one`: there is one selection, whatever `count` says.
    """

    verb: Literal["write", "read", "modify"]
    title: str
    pattern: Pattern | None = None
    takes: tuple[str, ...] = ()
    usual_count: int = 1
    is_one: bool = False
    slices: bool = False
    strided: bool = False
    overwrite: bool = False
    append: bool = False
    field_write: bool = False
    compound: bool = False
    empty: bool = False  # arrays are created but nothing is written
    fair_only: bool = False  # no published study has it


OPERATIONS: dict[str, OperationKind] = {
    "create": OperationKind("write", "create arrays and write nothing", empty=True, fair_only=True),
    "write": OperationKind("write", "create and write each array in turn"),
    "write-separate": OperationKind("write", "create all arrays, then write them"),
    "write-fields": OperationKind("write", "create, then write field by field", field_write=True, compound=True),
    "read-all": OperationKind("read", "everything", everything, is_one=True),
    "read-last-array": OperationKind("read", "the last array, whole", everything, is_one=True),
    "read-hyperslab": OperationKind(
        "read", "one contiguous hyperslab", contiguous_hyperslab, ("shape",), is_one=True, slices=True
    ),
    "read-strided": OperationKind(
        "read", "every k-th element", strided, ("shape", "step"), is_one=True, slices=True, strided=True
    ),
    "read-rows": OperationKind("read", "consecutive rows", rows, usual_count=100, slices=True),
    "read-columns": OperationKind("read", "columns", columns, slices=True),
    "read-random-rows": OperationKind("read", "random rows", random_rows, usual_count=1000, slices=True),
    "read-random-points": OperationKind("read", "random points", random_points, usual_count=1000, slices=True),
    "read-random-boxes": OperationKind(
        "read", "random boxes", random_boxes, ("shape", "within"), usual_count=1000, slices=True
    ),
    "read-time-series": OperationKind(
        "read", "time series at random positions", time_series, usual_count=10, slices=True
    ),
    "read-map": OperationKind("read", "maps at random times", maps, usual_count=10, slices=True),
    "read-fields": OperationKind("read", "random fields of a compound array, one call each", compound=True),
    "read-half-fields": OperationKind("read", "the first half of the fields of all rows", compound=True),
    "overwrite": OperationKind("modify", "rewrite part of an array in place", overwrite=True),
    "append": OperationKind("modify", "append along axis 0", append=True),
}


def selections(operation: Operation, shape: Shape) -> list[Hyperslab]:
    """The selections of a read from arrays of `shape`, one for each call."""
    pattern = OPERATIONS[operation.name].pattern
    if pattern is None:
        return [Hyperslab.all(shape)]
    seed = [20231101, *shape]
    return pattern(shape, operation, np.random.default_rng(seed))
