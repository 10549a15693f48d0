"""How a deletion by versioned-hdf5 numbered the chunks of an array anew, found from mappings that are still old.

The chunks that stay keep their order: the new slot of each is the number of chunks before it that stay. An old mapping
tells which chunks its version shows. It is not known which versions were to be deleted, and which of the other chunks
stay. So we try, and fingerprints say whether an attempt is right.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab.versions.layout.slots import MISSING, Slots

MOST_WORK = 20_000_000  # for one array: chunks looked at
STEP_WORK = 100
MOST_IN_PAIRS = 32  # versions of which any two may be those that were to be deleted

Fits = Callable[[str, Slots], bool]


def renumbered(
    old: Mapping[str, Slots], taken: npt.NDArray[np.bool_], fits: Fits, guesses: Iterable[frozenset[str]] = ()
) -> dict[str, Slots]:
    """The new mappings of versions that have their old ones; none if no way to number the chunks fits.

    Parameters
    ----------
    old : Mapping[str, Slots]
        The old mappings, by version.
    taken : npt.NDArray[np.bool_]
        For each slot that exists now, whether a version that is not in `old` may show it.
    fits : Fits
        Whether slots are the right mapping of a version.
    guesses : Iterable[frozenset[str]]
        Versions that may be those that were to be deleted.
    """
    search = _Search(old, taken, fits)
    for deleted in _deleted(list(old), guesses):
        found = search.among([name for name in old if name not in deleted])
        if found or search.work > MOST_WORK:
            return found
    return {}


def _deleted(names: list[str], guesses: Iterable[frozenset[str]]) -> Iterator[frozenset[str]]:
    yield frozenset()
    yield from guesses
    for count in (1, 2) if len(names) <= MOST_IN_PAIRS else (1,):
        yield from map(frozenset, combinations(names, count))


class _Runs(NamedTuple):
    """Old slots in order, in runs of consecutive ones: where each begins in `olds`, its length, the gap before it."""

    olds: Slots
    starts: Slots
    lengths: list[int]
    gaps: list[int]

    @classmethod
    def of(cls, olds: Slots) -> _Runs:
        starts = np.flatnonzero(np.diff(olds, prepend=-2) > 1)
        lengths = np.diff(starts, append=len(olds))
        stops = olds[starts] + lengths
        gaps = olds[starts] - np.concatenate([[0], stops[:-1]])
        return cls(olds, starts, lengths.tolist(), gaps.tolist())

    def news(self, firsts: list[int]) -> Slots:
        """The new slots, as far as the first new slots of the runs are known."""
        known = len(firsts)
        lengths = self.lengths[:known]
        count = sum(lengths)
        return np.arange(count) + np.repeat(np.asarray(firsts) - self.starts[:known], lengths)


@dataclass
class _Search:
    old: Mapping[str, Slots]
    taken: npt.NDArray[np.bool_]
    fits: Fits
    work: int = 0
    used: dict[str, Slots] = field(init=False)
    untaken: Slots = field(init=False)

    def __post_init__(self) -> None:
        self.used = {name: np.unique(slots[slots != MISSING]) for name, slots in self.old.items()}
        self.untaken = np.append(np.flatnonzero(~self.taken), len(self.taken))

    def among(self, kept: list[str]) -> dict[str, Slots]:
        """The new mappings, if these versions stay."""
        olds = np.unique(np.concatenate([np.empty(0, np.int64), *(self.used[name] for name in kept)]))
        self.work += STEP_WORK + len(olds)
        if not 0 < len(olds) <= len(self.taken):
            return {}
        runs = _Runs.of(olds)
        for firsts in self._ways(runs, self._complete(runs, kept)):
            news = runs.news(firsts)
            known = [name for name in self.old if np.isin(self.used[name], olds).all()]
            moved = {name: _moved(self.old[name], olds, news) for name in known}
            return {name: slots for name, slots in moved.items() if self.fits(name, slots)}
        return {}

    def _complete(self, runs: _Runs, kept: list[str]) -> dict[int, list[str]]:
        """The versions of which all chunks are known as soon as a run is, by its number."""
        complete: dict[int, list[str]] = {}
        for name in kept:
            last = np.searchsorted(runs.olds, self.used[name][-1:])
            number = int(np.searchsorted(runs.starts, last, side="right")[0]) - 1 if len(last) else 0
            complete.setdefault(number, []).append(name)
        return complete

    def _ways(self, runs: _Runs, complete: Mapping[int, list[str]]) -> Iterator[list[int]]:
        """The first new slots of all runs, in each way that fits."""
        firsts: list[int] = []
        waiting = [self._choices(runs, 0, 0)]
        while waiting and self.work <= MOST_WORK:
            first = next(waiting[-1], None)
            if first is None:
                waiting.pop()
                if firsts:
                    firsts.pop()
                continue
            number, stop = len(firsts), first + runs.lengths[len(firsts)]
            self.work += STEP_WORK
            firsts.append(first)
            if stop > len(self.taken) or not self._fit(runs, firsts, complete.get(number, ())):
                firsts.pop()
            elif number + 1 < len(runs.lengths):
                waiting.append(self._choices(runs, number + 1, stop))
            else:
                if self._next_untaken(stop) == len(self.taken):
                    yield list(firsts)
                firsts.pop()

    def _choices(self, runs: _Runs, number: int, start: int) -> Iterator[int]:
        """Where a run may begin: in the gap before it stay as many chunks as others show."""
        return iter(range(start, min(start + runs.gaps[number], self._next_untaken(start)) + 1))

    def _next_untaken(self, start: int) -> int:
        return int(self.untaken[np.searchsorted(self.untaken, start)])

    def _fit(self, runs: _Runs, firsts: list[int], names: Iterable[str]) -> bool:
        for name in names:
            self.work += len(runs.olds) + len(self.old[name])
            news = runs.news(firsts)
            if not self.fits(name, _moved(self.old[name], runs.olds[: len(news)], news)):
                return False
        return True


def _moved(slots: Slots, olds: Slots, news: Slots) -> Slots:
    """A mapping with new slots instead of old ones."""
    moved = slots.copy()
    is_stored = slots != MISSING
    moved[is_stored] = news[np.searchsorted(olds, slots[is_stored])]
    return moved
