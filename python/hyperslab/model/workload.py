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

from collections.abc import Sequence
from math import prod
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import (
    Field,
    NonNegativeFloat,
    NonNegativeInt,
    PositiveInt,
    PrivateAttr,
    ValidationInfo,
    field_validator,
    model_validator,
)

from hyperslab._core import Hyperslab, Points
from hyperslab.bench.operations import OPERATIONS, Operation
from hyperslab.declared import Declared, Misplaced
from hyperslab.meant import NUMBERS, meant, meant_or_choose
from hyperslab.model.hdf5_settings import Hdf5Settings

# Calls of their own kinds; the other names are the patterns of the bench.
OWN_SELECTS = ("list", "points", "lists", "append")
# Elements of one call that lists its indices: they are counted one by one.
MOST_LISTED = 5_000_000
SELECTS = sorted(name.removeprefix("read-") for name, kind in OPERATIONS.items() if kind.pattern is not None)
MOST_SELECTIONS = 10_000_000
# What numbers of elements and of bytes the core counts with.
MOST_LENGTH = 2**63 - 1
Length = Annotated[int, Field(gt=0, le=MOST_LENGTH)]
MOST_COMPUTE_SECONDS = 1e6
# Keys of an access that some selections do not take.
PARAMETERS = ("count", "shape", "within", "step")


class WorkloadArray(Declared):
    """The array that is accessed."""

    shape: list[Length] = Field(min_length=1, max_length=32)
    dtype: str = "float32"
    max_shape: list[Length | None] | None = Field(
        default=None, description="how far the array may grow; null means without a limit"
    )

    @model_validator(mode="after")
    def _can_grow(self) -> WorkloadArray:
        _check_nbytes(self, self.shape[0], "shape")
        most = self.max_shape
        if most is None:
            return self
        if len(most) != len(self.shape):
            raise ValueError(f"max_shape has {len(most)} axes, the array has {len(self.shape)}")
        if any(limit is not None and limit < length for limit, length in zip(most, self.shape, strict=True)):
            raise ValueError(f"max_shape {most} is smaller than the shape {self.shape}")
        return self

    @field_validator("dtype")
    @classmethod
    def _known(cls, dtype: str) -> str:
        try:
            width = np.dtype(dtype).itemsize
        except TypeError as error:
            near = meant(dtype, NUMBERS) or "; use one like float32 or i2"
            raise ValueError(f"{dtype!r} is not a NumPy dtype{near}") from error
        if width == 0 or np.dtype(dtype).hasobject:
            raise ValueError(f"{dtype!r} has no fixed width; use a dtype like float32 or i2")
        return dtype

    @property
    def element_nbytes(self) -> int:
        """The width of an element in bytes."""
        return np.dtype(self.dtype).itemsize


class Box(Declared):
    """One box: its first element, its shape, and its step along each axis (1 by default)."""

    start: list[NonNegativeInt]
    shape: list[Length]
    step: list[Length] | None = None


class Access(Declared):
    """Selections of one kind.

    `list` takes `boxes`. `points` takes `points`, or draws `count` of them, and asks for all in one call. `lists` takes
    a list of indices for each axis, or null for all of them, and asks for their combinations in one call. `append`
    lets the array grow by `rows` and writes them, `count` times. The other kinds are the patterns of `hyperslab bench`.
    """

    select: str
    operation: Literal["read", "write"] = "read"
    weight: PositiveInt = Field(default=1, description="how many times the access is made, one time after another")
    count: PositiveInt | None = Field(default=None, le=MOST_SELECTIONS, description="how many selections")
    shape: list[PositiveInt | None] | None = Field(
        default=None, description=("shape of a box; null means the whole axis")
    )
    within: list[PositiveInt | None] | None = Field(
        default=None, description=("boxes start within this many first elements")
    )
    step: PositiveInt | None = Field(default=None, description="take every step-th element")
    boxes: list[Box] | None = Field(default=None, min_length=1, description="the selections, for `select: list`")
    reopen: bool = Field(default=False, description="whether the file is closed and opened again before the access")
    compute_seconds: NonNegativeFloat = Field(
        default=0, le=MOST_COMPUTE_SECONDS, description="seconds that the program computes after each call"
    )
    points: list[list[NonNegativeInt]] | None = Field(
        default=None, min_length=1, max_length=MOST_LISTED, description="the elements of one call, for `select: points`"
    )
    lists: list[list[NonNegativeInt] | None] | None = Field(
        default=None, description="indices along each axis, ascending, for `select: lists`; null means all"
    )
    rows: Length | None = Field(default=None, description="how many rows a call appends, for `select: append`")

    @model_validator(mode="after")
    def _consistent(self) -> Access:
        if self.select not in (*OWN_SELECTS, *SELECTS):
            known = (*OWN_SELECTS, *SELECTS)
            raise ValueError(f"unknown selection {self.select!r}{meant_or_choose(self.select, known)}")
        for name, kind in (("boxes", "list"), ("lists", "lists"), ("rows", "append")):
            if (self.select == kind) != (getattr(self, name) is not None):
                raise ValueError(f"`select: {kind}` needs {name}, and other selections do not take any")
        if self.points is not None and (self.select != "points" or self.count is not None):
            raise ValueError("only `select: points` takes points, and then no count")
        if self.select == "append" and self.operation == "read":
            raise ValueError("`select: append` needs `operation: write`")
        return self

    def selections(self, array: WorkloadArray, seed: int) -> Sequence[Hyperslab | Points]:
        """The selections, one for each call of the library."""
        if self.boxes is not None:
            return [Hyperslab(box.start, box.step, box.shape, [1] * len(box.shape)) for box in self.boxes]
        if self.select == "points":
            drawn = np.random.default_rng([seed, *array.shape]).integers(
                0, np.array(array.shape), (self.count or 1000, len(array.shape))
            )
            return [Points(np.array(self.points, np.int64) if self.points is not None else drawn)]
        if self.lists is not None:
            along = [
                np.arange(length) if given is None else np.array(given, np.int64)
                for given, length in zip(self.lists, array.shape, strict=True)
            ]
            return [Points(np.stack(np.meshgrid(*along, indexing="ij"), axis=-1).reshape(-1, len(along)))]
        given = self.model_dump(include={"count", "shape", "within", "step"}, exclude_none=True)
        operation = Operation(name=f"read-{self.select}", **given)
        kind = OPERATIONS[operation.name]
        assert kind.pattern is not None  # SELECTS has no other
        selections = kind.pattern(tuple(array.shape), operation, np.random.default_rng([seed, *array.shape]))
        return selections * (self.count or 1) if kind.is_one else selections

    @property
    def call_count(self) -> int:
        """How many calls it makes at most, without drawing them."""
        if self.select in SELECTS:
            count = self.count or OPERATIONS[f"read-{self.select}"].usual_count
        else:
            count = len(self.boxes or [0]) if self.select != "append" else self.count or 1
        return count * self.weight

    @property
    def unused(self) -> str | None:
        """A key that is given although the selection does not depend on it."""
        if self.select in SELECTS:
            takes: tuple[str, ...] = ("count", *OPERATIONS[f"read-{self.select}"].takes)
        else:
            takes = ("count",) if self.select in ("points", "append") else ()
        return next((key for key in PARAMETERS if getattr(self, key) is not None and key not in takes), None)


class Step(NamedTuple):
    """One call of the library."""

    operation: Literal["read", "write"]
    selection: Hyperslab | Points
    # If the call gives a list of indices for each axis; nothing in it, if the selection only stands for the lists.
    lists: tuple[tuple[int, ...] | None, ...] | None = None
    length: int | None = None  # the length of axis 0 that the array grows to before the call
    reopens: bool = False  # whether the file is closed and opened again before the call
    compute_seconds: float = 0.0  # that the program does something else after the call
    reopens_array: bool = False  # whether the array is, in a file that stays open
    shared: float = (
        0.0  # 1 if its file, which was closed, was opened for another array before; of arrays alike, the mean
    )


class Stripe(Declared):
    """How a shared file is spread over data servers."""

    size: PositiveInt | None = Field(default=None, description="bytes of a stripe; by default those of a chunk")
    count: PositiveInt | None = Field(default=None, description="servers that the file uses; by default all of them")


class Workload(Declared):
    """The accesses to one array."""

    array: WorkloadArray
    accesses: list[Access] = Field(min_length=1)
    order: Literal["listed", "shuffled"] = "listed"
    hdf5: Hdf5Settings = Field(default=Hdf5Settings(), description="how HDF5 is set up; other libraries ignore it")
    seed: NonNegativeInt = 0
    repeat: PositiveInt = Field(default=1, description="how many times all accesses are made, one time after another")
    processes: PositiveInt = Field(default=1, description="processes that share the accesses, at the same time")
    partition: Literal["rows", "columns", "blocks", "round-robin", "random"] = Field(
        default="rows", description="which chunks each of the processes owns"
    )
    transfer: Literal["independent", "collective"] = Field(
        default="independent", description="whether HDF5's processes gather their requests (collective buffering)"
    )
    servers: PositiveInt | None = Field(default=None, description="data servers of the parallel file system")
    stripe: Stripe | None = Field(default=None, description="how a shared file is spread over data servers")
    threads: PositiveInt = Field(
        default=1, description=("threads that make the accesses at the same time; only 1 for now")
    )
    _openings: tuple[tuple[bool, float], ...] = PrivateAttr(())

    @field_validator("threads")
    @classmethod
    def _alone(cls, count: int, info: ValidationInfo) -> int:
        if count > 1:
            raise ValueError(f"{count} {info.field_name} cannot be priced yet; describe what one of them does alone")
        return count

    def in_file(self, openings: Sequence[tuple[bool, float]]) -> Workload:
        """The same accesses to one of several arrays of a file.

        Parameters
        ----------
        openings : Sequence[tuple[bool, float]]
            For each access, as often as all are repeated: whether the file was closed and opened again since the last
            access to this array, and `Step.shared`.
        """
        workload = self.model_copy()
        workload._openings = tuple(openings)
        return workload

    @property
    def is_parallel(self) -> bool:
        """Whether it describes several processes, or data servers: `hyperslab.parallel` prices it."""
        return self.processes > 1 or self.servers is not None or self.stripe is not None

    @model_validator(mode="after")
    def _inside(self) -> Workload:
        self._check_loops()
        if self.stripe is not None and self.stripe.count is not None and self.stripe.count > (self.servers or 1):
            servers = "servers are not given" if self.servers is None else f"there are {self.servers} servers"
            raise Misplaced(f"a stripe count of {self.stripe.count}, but {servers}", "stripe", "count")
        for position, access in enumerate(self.accesses):
            _check_boxes(position, access, self.array.shape)
            _check_listed(position, access, self.array.shape)
            if unused := access.unused:
                instead = "; `weight` repeats the access" if unused == "count" else ""
                raise Misplaced(f"`select: {access.select}` takes no {unused}{instead}", "accesses", position, unused)
            if access.select == "append":
                self._check_growth(position)
        return self

    def _check_growth(self, position: int) -> None:
        where = ("accesses", position)
        if self.order == "shuffled":
            raise Misplaced("what is appended has an order; leave out `order: shuffled`", *where)
        if self.array.max_shape is not None and self.array.max_shape[0] is not None:
            raise Misplaced("the array cannot grow: set the first of max_shape to null", *where)
        grown = sum((each.rows or 0) * each.call_count for each in self.accesses) * self.repeat
        _check_nbytes(self.array, self.array.shape[0] + grown, *where, "rows")

    def _check_loops(self) -> None:
        calls = 0
        for position, access in enumerate(self.accesses):
            made = access.call_count
            if made > MOST_SELECTIONS:
                message = f"it makes {made} calls, but at most {MOST_SELECTIONS} are counted; lower count or weight"
                raise Misplaced(message, "accesses", position)
            calls += made * self.repeat
            if access.reopen and self.order == "shuffled":
                raise Misplaced("shuffled accesses have no place to reopen the file", "accesses", position, "reopen")
        if calls > MOST_SELECTIONS:
            raise Misplaced(f"all accesses together make {calls} calls; at most {MOST_SELECTIONS}", "repeat")

    def steps(self) -> list[Step]:
        """The calls in the order of the workload. They are the same each time."""
        steps: list[Step] = []
        length = self.array.shape[0]
        for place, access in enumerate(self.accesses * self.repeat):
            if access.rows is not None:
                calls = (access.count or 1) * access.weight
                made = [self._append(length + k * access.rows, access.rows) for k in range(calls)]
                length += calls * access.rows
            else:
                lists = None
                if access.lists is not None:
                    lists = tuple(None if each is None else tuple(each) for each in access.lists)
                once = [Step(access.operation, each, lists) for each in access.selections(self.array, self.seed)]
                made = once * access.weight
            if access.compute_seconds:
                made = [step._replace(compute_seconds=access.compute_seconds) for step in made]
            reopens, shared = self._openings[place] if self._openings else (access.reopen, 0.0)
            made[0] = made[0]._replace(reopens=reopens, shared=shared)
            steps += made
        first = steps[0].shared
        if self.order == "shuffled":
            steps = [steps[position] for position in np.random.default_rng(self.seed).permutation(len(steps))]
        steps[0] = steps[0]._replace(reopens=False, shared=first)  # the file is open anyway
        return steps

    def _append(self, start: int, rows: int) -> Step:
        shape = [rows, *self.array.shape[1:]]
        box = Hyperslab([start, *[0] * (len(shape) - 1)], None, [1] * len(shape), shape)
        return Step("write", box, None, start + rows)

    @property
    def grows(self) -> bool:
        """Whether anything is appended."""
        return any(access.select == "append" for access in self.accesses)

    def largest_nbytes(self, steps: list[Step]) -> int:
        """The size of the largest selection of `steps`, in bytes."""
        return max(step.selection.size for step in steps) * self.array.element_nbytes


def _check_nbytes(array: WorkloadArray, length: int, *where: str | int) -> None:
    """Raise an error that names the key if an array with this many rows is larger than any file."""
    if length * prod(array.shape[1:]) * array.element_nbytes > MOST_LENGTH:
        raise Misplaced("the array would have more than 2^63 - 1 bytes, which no file holds", *where)


def _check_boxes(position: int, access: Access, shape: list[int]) -> None:
    """Raise an error that names the key if boxes do not fit an array."""
    ndim = len(shape)
    for name, axes in (("shape", access.shape), ("within", access.within)):
        if axes is not None and len(axes) != ndim:
            raise Misplaced(f"{name} has {len(axes)} axes, the array has {ndim}", "accesses", position, name)
    for number, box in enumerate(access.boxes or []):
        where = ("accesses", position, "boxes", number)
        if {len(box.start), len(box.shape), len(box.step or box.start)} != {ndim}:
            raise Misplaced(f"the box does not have {ndim} axes, as the array does", *where)
        step = box.step or [1] * ndim
        ends = [a + (n - 1) * s for a, n, s in zip(box.start, box.shape, step, strict=True)]
        if any(end >= length for end, length in zip(ends, shape, strict=True)):
            raise Misplaced(f"the box at {box.start} reaches outside {shape}", *where)


def _check_listed(position: int, access: Access, shape: list[int]) -> None:
    """Raise an error that names the key if listed points or indices do not fit an array."""
    ndim = len(shape)
    for number, point in enumerate(access.points or []):
        if len(point) != ndim or any(index >= length for index, length in zip(point, shape, strict=True)):
            message = f"the point {point} is not in an array of shape {shape}"
            raise Misplaced(message, "accesses", position, "points", number)
    if access.lists is None:
        return
    where = ("accesses", position, "lists")
    if len(access.lists) != ndim:
        raise Misplaced(f"lists has {len(access.lists)} axes, the array has {ndim}", *where)
    size = 1
    for axis, (given, length) in enumerate(zip(access.lists, shape, strict=True)):
        size *= length if given is None else len(given)
        if given is not None and (not given or given != sorted(set(given)) or given[-1] >= length):
            raise Misplaced(f"the list of axis {axis} must ascend, from 0 to {length - 1}", *where, axis)
    if size > MOST_LISTED:
        raise Misplaced(f"lists ask for {size} elements; at most {MOST_LISTED} are counted", *where)
