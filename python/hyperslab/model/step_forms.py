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


class StepForms(NamedTuple):
    """One call of each form; and for all calls which form they have, and where they begin (points: nowhere)."""

    different: list[Step]
    places: npt.NDArray[np.intp]
    starts: npt.NDArray[np.int64]


class StepList(list[Step]):
    """Calls that are taken apart once."""

    @cached_property
    def forms(self) -> StepForms:
        """Their forms."""
        return _forms(self)

    def take(self, positions: npt.NDArray[np.intp]) -> StepList:
        """Some of the calls."""
        made = StepList([self[place] for place in positions.tolist()])
        used, places = np.unique(self.forms.places[positions], return_inverse=True)
        different = [self.forms.different[place] for place in used.tolist()]
        vars(made)["forms"] = StepForms(different, places.reshape(-1), self.forms.starts[positions])
        return made


def forms_of(steps: Sequence[Step]) -> StepForms:
    """The forms of calls."""
    return steps.forms if isinstance(steps, StepList) else _forms(steps)


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
