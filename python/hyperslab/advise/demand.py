"""What is asked of one array: the calls of a program in order, with their weight.

Long lists of calls are priced by samples: stretches of neighbouring calls, so that what a cache keeps from one call to
the next is seen. Their counts are multiplied.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice, product

import numpy as np
import numpy.typing as npt
from pydantic import PrivateAttr

from hyperslab._core import Hyperslab, Points
from hyperslab.model.cells import CellCache
from hyperslab.model.step_forms import StepList, taken_apart
from hyperslab.model.workload import Step, Workload
from hyperslab.trace.chunk_touches import Touches, all_touched
from hyperslab.trace.recording.log import HYPERSLAB, POINTS
from hyperslab.trace.selection import runs
from hyperslab.trace.summaries import ArraySummary
from hyperslab.trace.table import AccessTable

# Calls that list elements stand for at most so many boxes.
MOST_BOXES = 20_000
# A sample consists of at most so many stretches.
STRETCHES = 16


class GivenSteps(Workload):
    """A workload whose calls are given one by one."""

    _steps: StepList = PrivateAttr(default_factory=StepList)

    def steps(self) -> list[Step]:
        """The calls in order."""
        return self._steps

    @classmethod
    def of(cls, shape: Sequence[int], dtype: str, steps: Sequence[Step], max_shape: object = None) -> GivenSteps:
        """A workload with these calls. Its accesses only say what kinds of calls there are."""
        listed = taken_apart(steps)
        accesses: list[dict[str, object]] = [
            {"select": "points", "count": 1, "operation": name} if points else {"select": "all", "operation": name}
            for name, points in listed.kinds
        ]
        if listed.columns.grows.any():
            accesses.append({"select": "append", "rows": 1, "operation": "write"})
        array: dict[str, object] = {"shape": list(shape), "dtype": dtype}
        if max_shape is not None:
            array["max_shape"] = max_shape
        workload = cls.model_validate({"array": array, "accesses": accesses})
        workload._steps = listed
        return workload


@dataclass(frozen=True)
class Boxes:
    """The boxes around the selections of all calls, one row per call: first index, length, steps taken."""

    starts: npt.NDArray[np.int64]
    lengths: npt.NDArray[np.int64]
    counts: npt.NDArray[np.int64]  # elements along each axis: fewer than the length if there are gaps


@dataclass(frozen=True)
class RecordedProgram:
    """A program as `hyperslab trace` started it."""

    arguments: tuple[str, ...] = ()
    directory: str | None = None  # in which it ran; None: nobody knows
    exit_status: int | None = None
    seconds: float = 0.0
    writes_file: bool = False  # whether it wrote to the file of the demand


@dataclass(frozen=True)
class Demand:
    """The calls of one program, or of one description in words, to one array."""

    name: str
    shape: tuple[int, ...]
    dtype: str
    steps: list[Step] = field(repr=False)
    weight: float = 1.0
    cache: CellCache = "cold"
    library: str | None = None  # that made the calls, by the cost model's name
    caller: str = ""  # the same as the trace names it: h5py, netCDF, PyTables, or HDF5 for any program
    cache_nbytes: int | None = None  # the chunk cache that the program gave it
    cache_slots: int | None = None
    notes: tuple[str, ...] = ()
    decodes: frozenset[int] | None = None  # filters that the program's own libhdf5 has; None: nobody asked it
    program: str = "python your_program.py"  # that made the calls, as one starts it
    access_count: int | None = None  # that the program made; of very many, `steps` has stretches from all over
    priced_count: int | None = None  # of them, how many `steps` stands for
    measured_seconds: float | None = None  # that these took the program
    summary: ArraySummary | None = field(default=None, repr=False, compare=False)  # what the trace says of them
    served_share: float | None = None  # of their time, that of reads which `hyperslab run` serves; None: nobody knows
    starts: frozenset[int] = frozenset()  # the calls that are the first of another process
    recorded: RecordedProgram | None = field(default=None, compare=False)  # how the program was started

    @property
    def writes(self) -> bool:
        """Whether anything is written."""
        return any(step.operation == "write" for step in self.steps)

    @property
    def only_writes(self) -> bool:
        """Whether nothing is read."""
        return all(step.operation == "write" for step in self.steps)

    @property
    def is_opened_again(self) -> bool:
        """Whether a process opens the array more than once."""
        return any(
            (step.reopens or step.reopens_array) and place not in self.starts
            for place, step in enumerate(self.steps[1:], 1)
        )

    @property
    def shared(self) -> float:
        """The share of the openings of its file in which the file was opened for another array before."""
        return float(np.mean([step.shared for place, step in enumerate(self.steps) if place == 0 or step.reopens]))

    def sharing(self, share: float) -> Demand:
        """The same calls, if this is the share."""
        if share == self.shared:
            return self
        steps = [
            step._replace(shared=share if place == 0 or step.reopens else 0.0) for place, step in enumerate(self.steps)
        ]
        return replace(self, steps=steps)

    def kept_open(self) -> list[Step]:
        """The calls of a program that opens the array once in each process."""
        return [
            step._replace(
                reopens=place in self.starts,
                reopens_array=False,
                shared=step.shared if place == 0 or place in self.starts else 0.0,
            )
            for place, step in enumerate(self.steps)
        ]

    @cached_property
    def in_boxes(self) -> Demand:
        """The same, but a call that lists its elements counts as one for each box: our engine has a price for those.

        Unchanged if there are too many boxes.
        """
        if not any(isinstance(step.selection, Points) for step in self.steps):
            return self
        steps: list[Step] = []
        starts = set()
        for place, step in enumerate(self.steps):
            if place in self.starts:
                starts.add(len(steps))
            first, *rest = islice(_boxes_of(step), MOST_BOXES + 1)
            if len(steps) + 1 + len(rest) > MOST_BOXES:
                return self
            steps.append(step._replace(selection=first, lists=None))
            steps += [Step(step.operation, each) for each in rest]
        return replace(self, steps=steps, starts=frozenset(starts))

    @cached_property
    def listed(self) -> StepList:
        """The calls, taken apart once for all prices."""
        return StepList(self.steps)

    @cached_property
    def boxes(self) -> Boxes:
        """The boxes around the selections."""
        forms, ndim = self.listed.forms, len(self.shape)
        starts = forms.starts.copy()
        for place, step in enumerate(forms.different):
            if isinstance(step.selection, Points):
                starts[forms.places == place] = step.selection.coordinates.min(axis=0)
        table = self._lengths_of_forms[forms.places]
        return Boxes(starts.reshape(len(starts), ndim), table[:, 0], table[:, 1])

    @cached_property
    def _lengths_of_forms(self) -> npt.NDArray[np.int64]:
        """For each form: the lengths of its box, and the elements along each axis."""
        lengths = [_lengths(step.selection) for step in self.listed.forms.different]
        return np.array(lengths, np.int64).reshape(len(lengths), 2, len(self.shape))

    @cached_property
    def sizes(self) -> npt.NDArray[np.int64]:
        """The elements that each call selects."""
        forms = self.listed.forms
        return np.array([int(step.selection.size) for step in forms.different], np.int64)[forms.places]

    @cached_property
    def element_nbytes(self) -> int:
        """The width of an element."""
        return np.dtype(self.dtype).itemsize

    @property
    def asked_nbytes(self) -> int:
        """The bytes that all calls ask for."""
        return int(self.sizes.sum()) * self.element_nbytes

    def touches(self, chunk_shape: Sequence[int]) -> npt.NDArray[np.float64]:
        """The expected number of chunks that each call touches, wherever it begins."""
        chunk = np.array(chunk_shape, np.float64)
        kinds, places = self.kinds
        lengths, counts = np.split(kinds, 2, axis=1)
        along = np.minimum(1 + (lengths - 1) / chunk, np.maximum(counts, 1))
        expected: npt.NDArray[np.float64] = np.minimum(along, np.ceil(np.array(self.shape) / chunk)).prod(axis=1)
        return expected[places]

    @cached_property
    def kinds(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The distinct lengths and counts of all calls, and which of them each call has."""
        table, forms = self._lengths_of_forms, self.listed.forms
        kinds, kind_of = np.unique(table.reshape(len(table), -1), axis=0, return_inverse=True)
        return kinds, kind_of.reshape(-1)[forms.places]

    def with_cache(self, cache: CellCache) -> Demand:
        """The same calls with something else cached beforehand."""
        changed = replace(self, cache=cache)
        # What follows from the calls alone is known already.
        vars(changed).update(
            {name: vars(self)[name] for name in ("listed", "boxes", "kinds", "sizes") if name in vars(self)}
        )
        return changed

    def workload(self, steps: Sequence[Step] | None = None, order: Sequence[int] | None = None) -> GivenSteps:
        """The calls, or some of them, as a workload; with `order`, of the array with its axes in that order."""
        mine = self.listed if steps is None else steps
        if order is None:
            return GivenSteps.of(self.shape, self.dtype, mine)
        return GivenSteps.of([self.shape[axis] for axis in order], self.dtype, [permuted(step, order) for step in mine])

    def sample(self, chunk_shape: Sequence[int], most_touches: float) -> tuple[StepList, float]:
        """Stretches of calls that touch about `most_touches` chunks at most, and how many times as many there are."""
        touches = self.touches(chunk_shape)
        total = float(touches.sum())
        if total <= most_touches or len(self.steps) == 1:
            return self.listed, 1.0
        count = int(max(1, min(len(self.steps), len(self.steps) * most_touches / total)))
        if count >= len(self.steps):
            return self.listed, 1.0
        stretches = min(STRETCHES, count)
        length = max(1, count // stretches)
        firsts = np.linspace(0, len(self.steps) - length, stretches).astype(int)
        positions = np.unique((firsts[:, None] + np.arange(length)).ravel())
        # Calls differ in size, so the sample stands for as many touches, not for as many calls.
        factor = total / max(float(touches[positions].sum()), 1e-9)
        return self.listed.take(positions), factor


def _lengths(selection: Hyperslab | Points) -> tuple[list[int], list[int]]:
    """The lengths of the box around a selection, and the elements along each axis."""
    if isinstance(selection, Points):
        points = selection.coordinates
        return (points.max(axis=0) - points.min(axis=0) + 1).tolist(), [len(np.unique(axis)) for axis in points.T]
    counts, blocks = selection.count, selection.block
    lengths = [(n - 1) * s + b for n, s, b in zip(counts, selection.stride, blocks, strict=True)]
    return lengths, [n * b for n, b in zip(counts, blocks, strict=True)]


def _boxes_of(step: Step) -> Iterator[Hyperslab]:
    """The boxes that a call selects: one for each point, or for each run of neighbours in the lists of its axes."""
    selection = step.selection
    if isinstance(selection, Hyperslab):
        yield selection
        return
    points, ones = selection.coordinates, [1] * selection.ndim
    if step.lists is None:
        yield from (Hyperslab(point, ones, ones, ones) for point in points.tolist())
    else:
        yield from (Hyperslab(*zip(*each, strict=True)) for each in product(*map(runs, points.T)))


def permuted(step: Step, order: Sequence[int]) -> Step:
    """The same call for an array whose axes are stored in another order."""
    selection = step.selection
    if isinstance(selection, Points):
        lists = None if step.lists is None else tuple(step.lists[axis] for axis in order)
        return step._replace(selection=Points(selection.coordinates[:, list(order)]), lists=lists)
    parts = (selection.start, selection.stride, selection.count, selection.block)
    return step._replace(selection=Hyperslab(*([part[axis] for axis in order] for part in parts)))


def in_chunk_order(demand: Demand, chunk_shape: Sequence[int]) -> list[Step]:
    """The same calls, so that those which begin in the same chunk follow each other."""
    first = demand.boxes.starts // np.array(chunk_shape, np.int64)
    return [demand.steps[position] for position in np.lexsort(first.T[::-1]).tolist()]


def chunk_touches(demand: Demand, chunk_shape: Sequence[int]) -> Touches:
    """The chunks that the calls touch, one call after the other."""
    kinds, numbers = [], []
    for step in demand.steps:
        selection = step.selection
        if isinstance(selection, Points):
            kinds.append(POINTS)
            numbers.append(selection.coordinates.astype(np.int64).ravel())
        else:
            kinds.append(HYPERSLAB)
            numbers.append(
                np.array((selection.start, selection.stride, selection.count, selection.block), np.int64).T.ravel()
            )
    offsets = np.concatenate([[0], np.cumsum([len(each) for each in numbers])]).astype(np.int64)
    joined = np.concatenate([*numbers, np.empty(0, np.int64)]).astype(np.int64)
    table = AccessTable(columns={"kind": np.array(kinds, np.uint8)}, offsets=offsets, numbers=joined)
    return all_touched(table, range(len(kinds)), demand.shape, chunk_shape)
