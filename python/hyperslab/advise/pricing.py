"""What candidates cost: seconds of all demands together, requests, and the interval of a gain."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log, prod, sqrt

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import HyperslabError
from hyperslab.model.calibrate import caches_of
from hyperslab.model.cells import CellCache, ModelCell
from hyperslab.model.codec_sample import MeasuredCodec
from hyperslab.model.costs import DEVIATIONS, CodecRate, Cost, computing, price
from hyperslab.model.counting import Variables, count_operations
from hyperslab.model.predict import why_not
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.workload import Step
from hyperslab.storage.chain import CodecChain

# Chunk touches that are simulated for one price. Our own engine is simulated about ten times as slowly.
SEARCH_TOUCHES, FINAL_TOUCHES = 3000.0, 50_000.0
SLOWER = {"hyperslab": 10.0}
SHARDS_SLOWER = ORDERS_SLOWER = 5.0
MOST_CHUNKS = 4_000_000
# What happens once however many calls there are, and bytes that cannot be more than the array has.
ONCE = ("n_array", "n_made", "s_kept")
AT_MOST_STORED = ("s_unique", "s_dirty", "s_grown")
LEAST_PAIRS = 12
LEAST_SPREAD = 0.05  # of the logarithm of a ratio: no calibration knows better than this
DEVICE = ("n_rdisk", "s_rdisk", "n_rseek", "s_rseek", "s_rshort", "s_covered", "s_exposed", "n_rindex", "s_rindex")


@dataclass(frozen=True)
class Price:
    """What a candidate costs for all demands together."""

    seconds: float
    low: float
    high: float
    requests: float
    unknown: tuple[str, ...] = ()
    extrapolating: tuple[str, ...] = ()
    is_sampled: bool = False

    @property
    def rank(self) -> tuple[bool, float]:
        """The fastest first; what has no price, last."""
        return bool(self.unknown), self.seconds


Measured = Mapping[tuple[str, CodecChain], MeasuredCodec]  # by library


@dataclass
class Pricer:
    """Prices candidates for some demands, by one store profile. Each candidate is priced once for each effort."""

    profile: StoreProfile
    demands: Sequence[Demand]
    measured: Measured = field(default_factory=dict)
    known: dict[tuple[object, float], Price] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return self.demands[0].shape

    @property
    def element_nbytes(self) -> int:
        """The width of an element."""
        return self.demands[0].element_nbytes

    def price(self, candidate: Candidate, touches: float = FINAL_TOUCHES) -> Price:
        """The price of a candidate. `unknown` says why there is none."""
        key = (candidate.key, touches)
        if key not in self.known:
            parts = [self._part(demand, candidate, touches) for demand in self.demands]
            self.known[key] = _sum(parts, [demand.weight for demand in self.demands])
        return self.known[key]

    def reordered(self, candidate: Candidate, steps: Mapping[int, Sequence[Step]]) -> Price:
        """The price if the calls of some demands, by their position, were made in another order."""
        demands = [
            replace(demand, steps=list(steps.get(place, demand.steps))) for place, demand in enumerate(self.demands)
        ]
        return Pricer(self.profile, demands, self.measured).price(candidate)

    def _part(self, demand: Demand, candidate: Candidate, touches: float) -> Price:
        layout = candidate.layout
        shape = self.shape if candidate.order is None else tuple(self.shape[axis] for axis in candidate.order)
        chunks = prod(ceil_div(n, c) for n, c in zip(shape, layout.chunk_shape, strict=True))
        if chunks > MOST_CHUNKS:
            return _without(f"{chunks:,} chunks are too many to price")
        chunk = _in_order(layout.chunk_shape, candidate.order)
        slower = SLOWER.get(candidate.reader, 1.0)
        slower *= SHARDS_SLOWER if layout.shard_shape is not None else 1.0
        slower *= ORDERS_SLOWER if candidate.order is not None else 1.0
        steps, factor = demand.sample(chunk, touches / slower)
        workload = demand.workload(steps, candidate.order)
        library = candidate.library(shape, far=self.profile.is_far)
        cell = ModelCell(workload, layout, library, _cache_of(demand, candidate, workload.grows))
        try:
            if reason := why_not(cell):
                return _without(reason)
            return self._counted(cell, candidate, factor)
        except (HyperslabError, ValueError) as error:
            return _without(str(error))

    def _counted(self, cell: ModelCell, candidate: Candidate, factor: float) -> Price:
        counted = count_operations(cell, caches_of(self.profile.environment))
        rate = self.rate_of(candidate)
        costs: list[Cost] = []
        requests = 0.0
        for operation, each in counted.items():
            stored = candidate.stored_nbytes(tuple(cell.workload.array.shape), self.element_nbytes)
            made = each if factor == 1 else multiplied(each, factor, stored)
            coefficients = self.profile.coefficients(cell.library.name, operation)
            costs.append(price(made, coefficients, cell.layout.codec, rate))
            requests += made.n_rdisk
        between = sum(step.compute_seconds for step in cell.workload.steps()) * factor
        total = sum(costs[1:], costs[0])
        total = total + computing(between) if between else total
        return Price(
            total.seconds, total.low, total.high, requests, total.unknown, total.extrapolating, is_sampled=factor != 1
        )

    def rate_of(self, candidate: Candidate) -> CodecRate | None:
        """What the candidate's codec costs its reader on the data, if that was measured."""
        found = self.measured.get((candidate.reader, candidate.encoding))
        return None if found is None else found.rate


def _cache_of(demand: Demand, candidate: Candidate, grows: bool) -> CellCache:
    if demand.cache == "new" and candidate.is_today and grows:
        return "cold"
    return demand.cache


def _in_order(chunk_shape: tuple[int, ...], order: tuple[int, ...] | None) -> tuple[int, ...]:
    """The chunk shape along the axes of today."""
    if order is None:
        return chunk_shape
    found = [0] * len(order)
    for place, axis in enumerate(order):
        found[axis] = chunk_shape[place]
    return tuple(found)


def multiplied(each: Variables, factor: float, stored_nbytes: int) -> Variables:
    """The variables of `factor` times as many calls. What the page cache then holds is not read again."""
    values = {name: value * factor for name, value in each._asdict().items()}
    values |= {name: getattr(each, name) for name in ONCE}
    values |= {name: min(values[name], max(getattr(each, name), stored_nbytes)) for name in AT_MOST_STORED}
    if values["s_rdisk"] > stored_nbytes > 0:
        kept = stored_nbytes / values["s_rdisk"]
        values["n_cache"] += (values["n_rdisk"] + values["n_rindex"]) * (1 - kept)
        values["s_cache"] += (values["s_rdisk"] + values["s_rindex"]) * (1 - kept)
        values |= {name: values[name] * kept for name in DEVICE}
    return Variables(**values)


def _without(reason: str) -> Price:
    return Price(0.0, 0.0, float("inf"), 0.0, (reason,))


def _sum(parts: Sequence[Price], weights: Sequence[float]) -> Price:
    pairs = list(zip(parts, weights, strict=True))
    return Price(
        sum(one.seconds * weight for one, weight in pairs),
        sum(one.low * weight for one, weight in pairs),
        sum(one.high * weight for one, weight in pairs),
        sum(one.requests * weight for one, weight in pairs),
        tuple(dict.fromkeys(reason for one in parts for reason in one.unknown)),
        tuple(dict.fromkeys(reason for one in parts for reason in one.extrapolating)),
        any(one.is_sampled for one in parts),
    )


@dataclass(frozen=True)
class Gain:
    """How many times as long one candidate takes as another, with a 95 % interval."""

    factor: float
    low: float
    high: float

    @property
    def is_sure(self) -> bool:
        """Whether the other candidate is faster, beyond the interval."""
        return self.low > 1


def gain(profile: StoreProfile, now: Price, then: Price, readers: tuple[str, str]) -> Gain | None:
    """How many times as long `now` takes as `then`; None if either has no price.

    Both prices come from the same calibration, so their errors resemble each other. The interval is that of ratios of
    the calibration's own cells: the same accesses in two layouts, predicted and measured.
    """
    if now.unknown or then.unknown or then.seconds <= 0 or now.seconds <= 0:
        return None
    spread = ratio_spread(profile, readers)
    factor = now.seconds / then.seconds
    return Gain(factor, factor / exp(DEVIATIONS * spread), factor * exp(DEVIATIONS * spread))


def ratio_spread(profile: StoreProfile, readers: tuple[str, str]) -> float:
    """The standard deviation of log(predicted ratio / measured ratio), over pairs of layouts with the same accesses."""
    errors = _errors_of(profile)
    first, second = (errors.get(name, {}) for name in readers)
    found = []
    for asked, mine in first.items():
        for layout, error in mine:
            others = second.get(asked, [])
            found += [error - other for one, other in others if (readers[0], layout) != (readers[1], one)]
    if len(found) < LEAST_PAIRS:
        spreads = [each.spread for name in readers for each in profile.fits if each.library == name][:2] or [1.0]
        return sqrt(sum(one**2 for one in spreads))
    return max(LEAST_SPREAD, sqrt(sum(one**2 for one in found) / len(found)))


Errors = dict[str, dict[tuple[str, str, str], list[tuple[str, float]]]]
_ERRORS: dict[int, tuple[StoreProfile, Errors]] = {}


def _errors_of(profile: StoreProfile) -> Errors:
    """For each library and access: the layouts with log(predicted / measured)."""
    if id(profile) in _ERRORS:
        return _ERRORS[id(profile)][1]
    found: Errors = defaultdict(lambda: defaultdict(list))
    for cell in profile.cells:
        if cell.asked and cell.cache != "library-warm":
            coefficients = profile.coefficients(cell.library, cell.operation)
            predicted = price(cell.variables, coefficients, cell.codec).seconds
            if predicted > 0 and cell.seconds > 0:
                key = (cell.operation, cell.cache, cell.asked)
                found[cell.library][key].append((cell.layout, log(predicted / cell.seconds)))
    _ERRORS.clear()
    _ERRORS[id(profile)] = (profile, found)
    return found


def threads() -> int:
    """The threads that our engine uses."""
    return os.cpu_count() or 1
