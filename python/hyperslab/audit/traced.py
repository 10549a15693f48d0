"""What a traced program's accesses to each file take: the calls that it made, in place of usual ones."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.advise.counsel import counsel_on
from hyperslab.advise.demand import Demand
from hyperslab.advise.stored import StoredArray, stored_arrays
from hyperslab.advise.traced_demands import open_trace, summaries_by_name, traced_demand
from hyperslab.audit.accesses import cost_of, wished_chunks
from hyperslab.audit.distance import Distance
from hyperslab.audit.facts import ArrayFacts, FileFacts
from hyperslab.audit.file_audit import AccessCost
from hyperslab.errors import HyperslabError
from hyperslab.model.store_profile import StoreProfile

# Of so many calls to an array, each is planned; of more, as many from all over.
MOST_PLANNED = 1000


class TracedFiles:
    """A trace, and the files that its program read.

    Parameters
    ----------
    path : Path
        What `hyperslab trace -o` wrote.
    """

    def __init__(self, path: Path) -> None:
        self._one = open_trace(path)
        self._files = {os.path.realpath(one.array.file) for one in self._one.summaries}

    def costs(
        self,
        facts: FileFacts,
        options: Mapping[str, Any],
        distance: Distance,
        profile: StoreProfile | None,
        notes: list[str],
    ) -> Iterator[AccessCost]:
        """What the program's accesses to each array of a file take."""
        if os.path.realpath(facts.name) not in self._files:
            notes.append("the traced program did not read it")
            return
        try:
            by_name = summaries_by_name(self._one, facts.name)
        except HyperslabError as error:
            notes.append(str(error))
            return
        for name, summaries in by_name.items():
            found = facts.array(name.strip("/"))
            for summary in summaries if found is not None else []:
                try:
                    (stored,) = stored_arrays(facts.name, [name], options, notes, samples=False)
                    demand = traced_demand(self._one, summary, stored)
                    assert found is not None
                    yield from _priced(found, stored, demand, distance, profile)
                except (HyperslabError, ValueError) as error:
                    notes.append(f"{name} is left out: {error}")


def _priced(
    facts: ArrayFacts, stored: StoredArray, demand: Demand, distance: Distance, profile: StoreProfile | None
) -> Iterator[AccessCost]:
    steps = demand.steps
    chosen = np.unique(np.linspace(0, len(steps) - 1, min(len(steps), MOST_PLANNED)).astype(int))
    name = f"{demand.access_count or len(steps):,} accesses of {demand.name}"
    wish = wished_chunks(facts)
    planned = [cost_of(name, facts, steps[place].selection, distance, wish) for place in chosen]
    costs = [one for one in planned if one is not None]
    if not costs:
        return
    times = (demand.access_count or len(steps)) / len(costs)
    summed = AccessCost(
        facts.name, name, round(sum(one.nbytes for one in costs) * times),
        round(sum(one.request_count for one in costs) * times), round(sum(one.fetched_nbytes for one in costs) * times),
        sum(one.far_seconds for one in costs) * times, sum(one.remedied_seconds for one in costs) * times,
    )  # fmt: skip
    local = None
    if profile is not None and not profile.is_far:
        local = counsel_on(stored, [demand], profile, measured={}).now.known_seconds
    yield replace(summed, local_seconds=local)
