"""A workload: the accesses to an array, their order, and how often each one happens.

A workload file (YAML) has the array and a list of accesses:

    array: {shape: [35660170, 64], dtype: float32}
    accesses:
      - {select: random-boxes, count: 1000, shape: [1000, 8], within: [null, 8]}
      - {select: list, boxes: [{start: [0, 0], shape: [10, 64]}], operation: write, weight: 2}
    order: shuffled
    seed: 7
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationInfo,
    field_validator,
    model_validator,
)

from hyperslab._core import Hyperslab
from hyperslab.bench.declared import Declared, Misplaced
from hyperslab.bench.operations import OPERATIONS, Operation

SELECTS = sorted(name.removeprefix("read-") for name, kind in OPERATIONS.items() if kind.pattern is not None)
MOST_SELECTIONS = 10_000_000
MOST_COMPUTE_SECONDS = 1e6


class WorkloadArray(Declared):
    """The array that is accessed."""

    shape: list[PositiveInt] = Field(min_length=1, max_length=32)
    dtype: str = "float32"

    @field_validator("dtype")
    @classmethod
    def _known(cls, dtype: str) -> str:
        try:
            width = np.dtype(dtype).itemsize
        except TypeError as error:
            raise ValueError(f"{dtype!r} is not a NumPy dtype; use one like float32 or i2") from error
        if width == 0:
            raise ValueError(f"{dtype!r} has no fixed width; use a dtype like float32 or i2")
        return dtype

    @property
    def element_nbytes(self) -> int:
        """The width of an element in bytes."""
        return np.dtype(self.dtype).itemsize


class Box(Declared):
    """One box: its first element, its shape, and its step along each axis (1 by default)."""

    start: list[NonNegativeInt]
    shape: list[PositiveInt]
    step: list[PositiveInt] | None = None


class Access(Declared):
    """Selections of one kind. `list` takes `boxes`; the other kinds are the patterns of `hyperslab bench`."""

    select: str
    operation: Literal["read", "write"] = "read"
    weight: PositiveFloat = Field(default=1, description="how often the access happens, relative to the others")
    count: PositiveInt | None = Field(default=None, le=MOST_SELECTIONS, description="how many selections")
    shape: list[PositiveInt | None] | None = Field(
        default=None, description=("shape of a box; null means the whole axis")
    )
    within: list[PositiveInt | None] | None = Field(
        default=None, description=("boxes start within this many first elements")
    )
    step: PositiveInt | None = Field(default=None, description="take every step-th element")
    boxes: list[Box] | None = Field(default=None, description="the selections, for `select: list`")
    reopen: bool = Field(default=False, description="whether the file is closed and opened again before the access")
    compute_seconds: NonNegativeFloat = Field(
        default=0, le=MOST_COMPUTE_SECONDS, description="seconds that the program computes after each call"
    )

    @model_validator(mode="after")
    def _consistent(self) -> Access:
        if self.select != "list" and self.select not in SELECTS:
            raise ValueError(f"unknown selection {self.select!r}; choose from list, {', '.join(SELECTS)}")
        if (self.select == "list") != (self.boxes is not None):
            raise ValueError("`select: list` needs boxes, and other selections do not take any")
        return self

    def selections(self, array: WorkloadArray, seed: int) -> list[Hyperslab]:
        """The selections, one for each call of the library."""
        if self.boxes is not None:
            return [Hyperslab(box.start, box.step, box.shape, [1] * len(box.shape)) for box in self.boxes]
        given = self.model_dump(include={"count", "shape", "within", "step"}, exclude_none=True)
        operation = Operation(name=f"read-{self.select}", **given)
        pattern = OPERATIONS[operation.name].pattern
        assert pattern is not None  # SELECTS has no other
        return pattern(tuple(array.shape), operation, np.random.default_rng([seed, *array.shape]))


class Step(NamedTuple):
    """One call of the library, with its weight."""

    operation: Literal["read", "write"]
    selection: Hyperslab
    weight: float
    reopens: bool = False  # whether the file is closed and opened again before the call
    compute_seconds: float = 0.0  # after the call


class Workload(Declared):
    """The accesses to one array."""

    array: WorkloadArray
    accesses: list[Access] = Field(min_length=1)
    order: Literal["listed", "shuffled"] = "listed"
    seed: NonNegativeInt = 0
    repeat: PositiveInt = Field(default=1, description="how many times all accesses are made, one time after another")
    processes: PositiveInt = Field(
        default=1, description=("processes that make the accesses at the same time; only 1 for now")
    )
    threads: PositiveInt = Field(
        default=1, description=("threads that make the accesses at the same time; only 1 for now")
    )

    @field_validator("processes", "threads")
    @classmethod
    def _alone(cls, count: int, info: ValidationInfo) -> int:
        if count > 1:
            raise ValueError(f"{count} {info.field_name} cannot be priced yet; describe what one of them does alone")
        return count

    @model_validator(mode="after")
    def _inside(self) -> Workload:
        self._check_loops()
        for position, access in enumerate(self.accesses):
            ndim = len(self.array.shape)
            for name, axes in (("shape", access.shape), ("within", access.within)):
                if axes is not None and len(axes) != ndim:
                    message = f"{name} has {len(axes)} axes, the array has {ndim}"
                    raise Misplaced(message, "accesses", position, name)
            for number, box in enumerate(access.boxes or []):
                where = ("accesses", position, "boxes", number)
                if {len(box.start), len(box.shape), len(box.step or box.start)} != {ndim}:
                    raise Misplaced(f"the box does not have {ndim} axes, as the array does", *where)
                step = box.step or [1] * ndim
                ends = [a + (n - 1) * s for a, n, s in zip(box.start, box.shape, step, strict=True)]
                if any(end >= length for end, length in zip(ends, self.array.shape, strict=True)):
                    raise Misplaced(f"the box at {box.start} reaches outside {self.array.shape}", *where)
        return self

    def _check_loops(self) -> None:
        calls = sum(access.count or len(access.boxes or [0]) for access in self.accesses) * self.repeat
        if calls > MOST_SELECTIONS:
            raise Misplaced(f"all accesses together make {calls} calls; at most {MOST_SELECTIONS}", "repeat")
        for position, access in enumerate(self.accesses):
            if access.reopen and self.order == "shuffled":
                raise Misplaced("shuffled accesses have no place to reopen the file", "accesses", position, "reopen")

    def steps(self) -> list[Step]:
        """The calls in the order of the workload. They are the same each time."""
        steps = [
            step._replace(compute_seconds=access.compute_seconds, reopens=access.reopen and position == 0)
            for access in self.accesses
            for position, step in enumerate(
                Step(access.operation, selection, access.weight)
                for selection in access.selections(self.array, self.seed)
            )
        ] * self.repeat
        if self.order == "shuffled":
            steps = [steps[position] for position in np.random.default_rng(self.seed).permutation(len(steps))]
        steps[0] = steps[0]._replace(reopens=False)  # the file is open anyway
        return steps

    def largest_nbytes(self, steps: list[Step]) -> int:
        """The size of the largest selection of `steps`, in bytes."""
        return max(step.selection.size for step in steps) * self.array.element_nbytes
