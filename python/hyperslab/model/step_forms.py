"""Calls by their forms: those of one form differ only in where they begin, so most of what follows from a call is said
once for its form. A list of calls that is priced in many layouts is taken apart once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab._core import Points
from hyperslab.cached import cached_property
from hyperslab.model.workload import Step

Mask = npt.NDArray[np.bool_]


class StepForms(NamedTuple):
    """One call of each form; and for all calls which form they have, and where they begin (points: nowhere)."""

    different: list[Step]
    places: npt.NDArray[np.intp]
    starts: npt.NDArray[np.int64]


class StepColumns(NamedTuple):
    """The other fields of all calls, each as an array with an entry for every call."""

    is_write: Mask
    reopens: Mask
    reopens_array: Mask
    grows: Mask  # whether the array grows before the call
    compute_seconds: npt.NDArray[np.float64]
    shared: npt.NDArray[np.float64]

    def take(self, positions: npt.NDArray[np.intp]) -> StepColumns:
        """Those of some of the calls."""
        is_write, reopens, reopens_array, grows, compute_seconds, shared = self
        return StepColumns(
            is_write[positions], reopens[positions], reopens_array[positions], grows[positions],
            compute_seconds[positions], shared[positions],
        )  # fmt: skip


class StepList(list[Step]):
    """Calls that are taken apart once."""

    @cached_property
    def forms(self) -> StepForms:
        """Their forms."""
        return _forms(self)

    @cached_property
    def columns(self) -> StepColumns:
        """Their other fields."""
        return _columns(self)

    @property
    def kinds(self) -> list[tuple[str, bool]]:
        """The operations of boxes and of lists of points (True), in the order in which they come first."""
        is_points = np.array([isinstance(step.selection, Points) for step in self.forms.different], bool)
        codes = 2 * self.columns.is_write + is_points[self.forms.places]
        found, first = np.unique(codes, return_index=True)
        return [(("read", "write")[code >> 1], bool(code & 1)) for code in found[np.argsort(first)].tolist()]

    def take(self, positions: npt.NDArray[np.intp]) -> StepList:
        """Some of the calls."""
        made = StepList([self[place] for place in positions.tolist()])
        used, places = np.unique(self.forms.places[positions], return_inverse=True)
        different = [self.forms.different[place] for place in used.tolist()]
        vars(made)["forms"] = StepForms(different, places.reshape(-1), self.forms.starts[positions])
        vars(made)["columns"] = self.columns.take(positions)
        return made


def taken_apart(steps: Sequence[Step]) -> StepList:
    """The same calls as a list that is taken apart once."""
    return steps if isinstance(steps, StepList) else StepList(steps)


def forms_of(steps: Sequence[Step]) -> StepForms:
    """The forms of calls."""
    return taken_apart(steps).forms


def columns_of(steps: Sequence[Step]) -> StepColumns:
    """The other fields of calls."""
    return taken_apart(steps).columns


def _columns(steps: Sequence[Step]) -> StepColumns:
    fields = zip(*steps, strict=True) if steps else ((),) * len(Step._fields)
    column = dict(zip(Step._fields, fields, strict=True))
    return StepColumns(
        np.array([one == "write" for one in column["operation"]], bool),
        np.array(column["reopens"], bool),
        np.array(column["reopens_array"], bool),
        np.array([one is not None for one in column["length"]], bool),
        np.array(column["compute_seconds"], np.float64),
        np.array(column["shared"], np.float64),
    )


def _forms(steps: Sequence[Step]) -> StepForms:
    forms: dict[Any, int] = {}
    form: Any
    different: list[Step] = []
    places, starts = [], []
    for step in steps:
        selection = step.selection
        if isinstance(selection, Points):
            form, start = (id(selection), step.lists), (0,) * selection.ndim
        else:
            form, start = (selection.stride, selection.count, selection.block, step.lists), selection.start
        place = forms.setdefault(form, len(forms))
        if place == len(different):
            different.append(step)
        places.append(place)
        starts.append(start)
    ndim = steps[0].selection.ndim if steps else 0
    return StepForms(different, np.array(places, np.intp), np.array(starts, np.int64).reshape(len(starts), ndim))
