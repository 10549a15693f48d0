"""Prove advice by running: the best layouts and today's are written and the calls are made on each of them.

The lab's rounds make the passes in random order, each library in a process of its own. A pass counts only if its cache
state is proved.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.pricing import Pricer
from hyperslab.advise.replaying import Calls, Replay, WriteFile, reader_of, spec_of
from hyperslab.advise.results import ArrayAdvice, Option
from hyperslab.advise.sampling import Sample, sample_for
from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.errors import HyperslabError, TrialFailed, UsageError
from hyperslab.lab import cache
from hyperslab.lab.environment import observe
from hyperslab.lab.room import check_room, says_if_full
from hyperslab.lab.rounds import Rounds, StopRule, Tally, trial_count
from hyperslab.lab.statistics import interval_of_median
from hyperslab.lab.worker import LocalWorkers
from hyperslab.model.store_profile import StoreProfile
from hyperslab.progress import Progress
from hyperslab.scratch import remove, scratch_below

MOST_NBYTES = 256 << 20
RULE = StopRule(6, 15, 1.0)  # six passes tell apart what differs much; short ones cost little, so there are more
TIMEOUT_SECONDS = 300.0


@dataclass
class Verified:
    """One option with its measured seconds, and what was predicted for the same calls on the same elements."""

    option: Option
    predicted: float
    low: float
    high: float
    passes: dict[int, list[float]] = field(default_factory=dict)  # of each demand
    rejected: dict[int, int] = field(default_factory=dict)
    reason: str | None = None  # why it was not measured
    last_rejection: str | None = None  # why a pass did not count

    def seconds(self, weights: list[float]) -> float | None:
        """The sum of the medians over all demands; None if one was not measured."""
        if len(self.passes) < len(weights) or not all(self.passes.get(place) for place in range(len(weights))):
            return None
        return sum(weight * float(np.median(self.passes[place])) for place, weight in enumerate(weights))

    def trials(self, weights: list[float]) -> list[float]:
        """The sums of the first passes of all demands, of the second ones, and so on."""
        made = [self.passes.get(place, []) for place in range(len(weights))]
        return [sum(w * s for w, s in zip(weights, each, strict=True)) for each in zip(*made, strict=False)]

    def interval(self, weights: list[float]) -> tuple[float, float] | None:
        """The 95 % interval of the sum; the ends of the demands are added."""
        ends = [interval_of_median(self.passes.get(place, [])) for place in range(len(weights))]
        if any(one is None for one in ends):
            return None
        pairs = [(one, weight) for one, weight in zip(ends, weights, strict=True) if one is not None]
        return sum(one[0] * weight for one, weight in pairs), sum(one[1] * weight for one, weight in pairs)


@dataclass
class Verification:
    """What was measured, on which elements, and what follows."""

    words: str
    each: list[Verified]
    weights: list[float]

    @property
    def ranked(self) -> list[Verified]:
        """The fastest first; what was not measured, last."""
        return sorted(self.each, key=lambda one: (one.seconds(self.weights) is None, one.seconds(self.weights) or 0.0))

    @property
    def first_predicted(self) -> Option | None:
        """The measured option with the least prediction for the same calls; None if none was measured."""
        known = [one for one in self.each if one.seconds(self.weights) is not None]
        return min(known, key=lambda one: one.predicted).option if known else None

    def of(self, candidate: Candidate) -> Verified | None:
        """What is known of one layout; None if it was not to be measured."""
        return next((one for one in self.each if one.option.candidate.key == candidate.key), None)

    def regret(self, candidate: Candidate) -> float | None:
        """How much longer a layout took than the best one: 0.1 is 10 %."""
        mine = self.of(candidate)
        took = None if mine is None else mine.seconds(self.weights)
        best = self.ranked[0].seconds(self.weights) if self.each else None
        return None if took is None or not best else took / best - 1


def verify(
    advice: ArrayAdvice,
    profile: StoreProfile,
    count: int,
    directory: Path,
    *,
    most_nbytes: int = MOST_NBYTES,
    storage_options: Mapping[str, Any] | None = None,
    progress: Progress = lambda *_: None,
    say: Callable[[str], None] = lambda _: None,
) -> Verification:
    """Measure the best `count` options, what needs no rewriting, and today's layout.

    Parameters
    ----------
    advice : ArrayAdvice
        The advice to prove.
    profile : StoreProfile
        By which the same calls are predicted.
    count : int
        How many of the best options to measure.
    directory : Path
        Files are written below it, and removed at the end.
    most_nbytes : int
        Of a larger array, a part is taken.
    storage_options : Mapping[str, Any] | None
        How to reach the file, as in `open`.
    progress : Progress
        Called before each pass.
    say : Callable[[str], None]
        Called with what could not be measured.

    Returns
    -------
    Verification
        Measured and predicted seconds.

    Raises
    ------
    UsageError
        The disk or the memory is too small.
    """
    chunk = advice.today.candidate.layout.chunk_shape
    sample = sample_for(advice.demands, chunk, most_nbytes)
    options = measured_options(advice, count)
    nbytes = int(np.prod(sample.shape, dtype=np.int64)) * advice.array.dtype.itemsize
    check_room("verifying", nbytes * (len(options) + 2), nbytes, directory, observe(directory, []).memory_nbytes,
               "verify fewer layouts, or give another --scratch")  # fmt: skip
    pricer = Pricer(profile, list(sample.demands), advice.measured)
    verified = [_predicted(option, pricer) for option in options]
    with says_if_full(directory, "verifying"), scratch_below(directory) as scratch, ExitStack() as ended:
        workers = LocalWorkers(TIMEOUT_SECONDS)
        ended.callback(workers.close)
        elements = scratch / "elements.npy"
        np.save(elements, _elements(advice, sample, storage_options))
        session = _Session(advice, sample, scratch, elements, workers, say)
        session.write(verified)
        session.measure(verified, progress)
    return Verification(sample.words, verified, [demand.weight for demand in sample.demands])


def measured_options(advice: ArrayAdvice, count: int) -> list[Option]:
    """Today's layout, what needs no rewriting, and the best options, each once."""
    today = advice.today
    tips = [replace(today, candidate=tip.candidate, price=tip.price, gain=tip.gain) for tip in advice.tips
            if tip.candidate is not None]  # fmt: skip
    best = [one for one in advice.options if one.can_be_advised and not one.candidate.label][:count]
    mine = [] if advice.chosen.candidate.is_today else [advice.chosen]
    usual = [one for one in advice.options if one.candidate.label and one.candidate.format == today.candidate.format]
    listed = [today, *tips, *mine, *_by_run(advice), *best, *(one for one in usual if one.seconds is not None)]
    return list({one.candidate.key: one for one in listed}.values())


def _by_run(advice: ArrayAdvice) -> list[Option]:
    """What is advised for `hyperslab run`, as that reads it."""
    asked = [advice.chosen, *([] if advice.with_run is None else [advice.with_run.option])]
    return [
        replace(one, candidate=one.by_run, price=one.run_price, gain=one.run_gain)
        for one in asked
        if one.by_run is not None and one.run_price is not None
    ]


def _predicted(option: Option, pricer: Pricer) -> Verified:
    """The option with its price for the sample."""
    layout = option.candidate.layout
    chunk = tuple(min(pair) for pair in zip(layout.chunk_shape, _stored_shape(option, pricer.shape), strict=True))
    cut = replace(layout, chunk_shape=chunk, manifest=None, index=None, max_shape=None)
    price = pricer.price(replace(option.candidate, layout=cut))
    return Verified(option, price.seconds, price.low, price.high, reason="; ".join(price.unknown) or None)


def _stored_shape(option: Option, shape: tuple[int, ...]) -> tuple[int, ...]:
    order = option.candidate.order
    return shape if order is None else tuple(shape[axis] for axis in order)


def _elements(advice: ArrayAdvice, sample: Sample, options: Mapping[str, Any] | None) -> np.ndarray[Any, Any]:
    with open_archive(advice.array.file, storage_options=options) as archive:
        array = archive[advice.array.name]
        if not isinstance(array, Array):
            raise UsageError(f"{advice.array.title} is not an array any more")
        taken = np.ascontiguousarray(array[sample.slices])
        return taken.astype(taken.dtype.newbyteorder("="), copy=False)


class _Session:
    """The files of a verification, and its passes."""

    def __init__(
        self,
        advice: ArrayAdvice,
        sample: Sample,
        scratch: Path,
        elements: Path,
        workers: LocalWorkers,
        say: Callable[[str], None],
    ) -> None:
        self.advice, self.sample, self.scratch, self.elements = advice, sample, scratch, elements
        self.workers, self.say = workers, say
        self.paths: dict[Any, Path] = {}
        self.dtype = advice.array.dtype.newbyteorder("=")

    def write(self, verified: list[Verified]) -> None:
        """Write the file of each option; those that are the same file share it."""
        for one in verified:
            candidate = one.option.candidate
            if candidate.file_key in self.paths or one.reason is not None:
                continue
            extension = {"hdf5": ".h5", "netcdf4": ".nc"}.get(str(candidate.format), ".zarr")
            path = self.scratch / f"layout-{len(self.paths)}{extension}"
            try:
                spec = spec_of(candidate, self.sample.shape, self.dtype)
                self.workers.worker("writing").ask(WriteFile(candidate, spec, self.elements, path))
            except HyperslabError as error:
                one.reason = f"not written: {error}"
                self.say(f"{candidate.title}: {one.reason}")
                continue
            self.paths[candidate.file_key] = path

    def measure(self, verified: list[Verified], progress: Progress) -> None:
        """Make the passes of all options and demands, in random order."""
        points = [
            (one, place)
            for one in verified
            for place in range(len(self.sample.demands))
            if one.option.candidate.file_key in self.paths
        ]
        rounds = Rounds(RULE, 0, progress, trial_count(len(points), RULE))
        rounds.run(
            points,
            self._pass,
            lambda point: Tally(
                point[0].passes.get(point[1], ()), point[0].rejected.get(point[1], 0), point[0].reason is not None
            ),
            warm_up=lambda point: self._pass(point, checks=True),
            name=lambda point: point[0].option.candidate.title,
            is_cold=lambda point: self.sample.demands[point[1]].cache == "cold",
        )

    def _pass(self, point: tuple[Verified, int], *, checks: bool = False) -> None:
        one, place = point
        demand, candidate = self.sample.demands[place], one.option.candidate
        path = self.paths[candidate.file_key]
        is_new = demand.cache == "new"
        if is_new:
            path = path.with_name(f"new-{path.name}")
            remove(path)
        spec = spec_of(candidate, self.sample.shape, self.dtype)
        calls = Calls.of(demand.steps, candidate.order)
        state = "cold" if demand.cache == "cold" else "warm"
        resident = None if is_new or checks else cache.bring_about(state, cache.files_below(path))
        task = Replay(candidate, spec, path, self.elements, calls, is_new, checks)
        try:
            timing = self.workers.worker(reader_of(candidate)[0]).ask(task)
        except (HyperslabError, TrialFailed) as error:
            one.reason = str(error)
            self.say(f"{candidate.title}: not measured: {error}")
            return
        finally:
            if is_new:
                remove(path)
        if checks:
            return
        wrote = "write" in calls.operations
        reason = None if is_new else cache.why_not(state, resident, timing.device_read_nbytes, 0 if wrote else 1)
        if reason is not None:
            one.rejected[place], one.last_rejection = one.rejected.get(place, 0) + 1, reason
            return
        one.passes.setdefault(place, []).append(sum(timing.seconds.values()))
