"""What candidates cost: seconds of all demands together, requests, and the interval of a gain."""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import exp, log, prod, sqrt

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand
from hyperslab.advise.price import Gain, Price
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import HyperslabError
from hyperslab.model.cells import CellCache, ModelCell
from hyperslab.model.codec_sample import MeasuredCodec
from hyperslab.model.costs import DEVIATIONS, CodecRate, price
from hyperslab.model.hdf5_settings import Hdf5Settings
from hyperslab.model.libraries import Library
from hyperslab.model.predict import predict_cell, why_not
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.terms import Phase
from hyperslab.model.workload import Step
from hyperslab.storage.chain import CodecChain

# Chunk touches that are simulated for one price. Our own engine is simulated about ten times as slowly.
SEARCH_TOUCHES, FINAL_TOUCHES = 3000.0, 50_000.0
SLOWER = {"hyperslab": 10.0}
SHARDS_SLOWER = ORDERS_SLOWER = 5.0
MOST_CHUNKS = 4_000_000
NO_PROFILE = "run `hyperslab calibrate` once"
LEAST_PAIRS = 12
LEAST_SPREAD = 0.05  # of the logarithm of a ratio: no calibration knows better than this


Measured = Mapping[tuple[str, CodecChain], MeasuredCodec]  # by library


@dataclass
class Pricer:
    """Prices candidates for some demands, by one store profile. Each candidate is priced once for each effort."""

    profile: StoreProfile | None
    demands: Sequence[Demand]
    measured: Measured = field(default_factory=dict)
    obstacle: str = ""  # why nothing has a price
    hdf5: Hdf5Settings = field(default_factory=Hdf5Settings)  # what the user says of HDF5
    most_chunks: float = MOST_CHUNKS
    known: dict[tuple[object, float], Price] = field(default_factory=dict)

    @property
    def shape(self) -> tuple[int, ...]:
        """The array's shape."""
        return self.demands[0].shape

    @property
    def element_nbytes(self) -> int:
        """The width of an element."""
        return self.demands[0].element_nbytes

    @property
    def is_far(self) -> bool:
        """Whether the file will be on a server."""
        return self.profile is not None and self.profile.is_far

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
        return replace(self, demands=demands, known={}).price(candidate)

    def _part(self, demand: Demand, candidate: Candidate, touches: float) -> Price:
        if self.profile is None or self.obstacle:
            return Price.without(self.obstacle or NO_PROFILE)
        demand = demand.in_boxes if candidate.reader == "hyperslab" else demand
        layout = candidate.layout
        shape = self.shape if candidate.order is None else tuple(self.shape[axis] for axis in candidate.order)
        chunks = prod(ceil_div(n, c) for n, c in zip(shape, layout.chunk_shape, strict=True))
        if chunks > self.most_chunks:
            return Price.without(f"{chunks:,} chunks are too many to price")
        chunk = _in_order(layout.chunk_shape, candidate.order)
        slower = SLOWER.get(candidate.reader, 1.0)
        slower *= SHARDS_SLOWER if layout.shard_shape is not None else 1.0
        slower *= ORDERS_SLOWER if candidate.order is not None else 1.0
        steps, factor = demand.sample(chunk, touches / slower)
        workload = demand.workload(steps, candidate.order)
        try:
            library = self._library(candidate, shape)
            cell = ModelCell(workload, layout, library, _cache_of(demand, candidate, workload.grows))
            if reason := why_not(cell):
                return Price.without(reason)
            stored = candidate.stored_nbytes(tuple(workload.array.shape), self.element_nbytes)
            by_netcdf = candidate.reader == "hdf5" and candidate.calling_library == "netCDF4"
            prediction = predict_cell(
                cell,
                self.profile,
                rate=self.rate_of(candidate),
                beyond=self.profile.netcdf4 if by_netcdf else None,
                factor=factor,
                stored_nbytes=stored,
                computes=False,
            )
        except (HyperslabError, ValueError) as error:
            return Price.without(str(error))
        cost, requests = prediction.cost, sum(each.n_rdisk for each in prediction.variables.values())
        said = (cost.unknown, cost.extrapolating, factor != 1)
        return Price(
            cost.seconds, cost.low, cost.high, requests, *said, cost.phases, (prediction,), cost.opening, cost.own
        )

    def _library(self, candidate: Candidate, shape: tuple[int, ...]) -> Library:
        """The candidate's library, as the user has set up HDF5."""
        asked = self.hdf5
        if candidate.reader != "hdf5" or asked == Hdf5Settings():
            return candidate.library(shape, far=self.is_far)
        nbytes, slots = candidate.cache_nbytes, candidate.cache_slots
        settings = Hdf5Settings(rdcc_nbytes=nbytes, rdcc_nslots=slots).updated(asked)
        return settings.library().with_file(asked.libver, shape, candidate.layout, is_before_2=settings.is_before_2)

    def rate_of(self, candidate: Candidate) -> CodecRate | None:
        """What the candidate's codec costs its reader on the data, if that was measured: by the library that calls."""
        measured = self.measured.get((candidate.reader, candidate.encoding))
        if candidate.reader == "hdf5":
            measured = self.measured.get((candidate.calling_library, candidate.encoding), measured)
        return None if measured is None else measured.rate


def _cache_of(demand: Demand, candidate: Candidate, grows: bool) -> CellCache:
    if demand.cache == "new" and candidate.is_today and grows:
        return "cold"
    return demand.cache


def _in_order(chunk_shape: tuple[int, ...], order: tuple[int, ...] | None) -> tuple[int, ...]:
    """The chunk shape along the axes of today."""
    if order is None:
        return chunk_shape
    lengths = [0] * len(order)
    for place, axis in enumerate(order):
        lengths[axis] = chunk_shape[place]
    return tuple(lengths)


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
        _phases(pairs),
        tuple(prediction for one in parts for prediction in one.predictions),
        sum(one.opening_seconds * weight for one, weight in pairs),
        sum(one.own_seconds * weight for one, weight in pairs),
    )


def _phases(pairs: Sequence[tuple[Price, float]]) -> dict[Phase, float]:
    summed: dict[Phase, float] = {}
    for one, weight in pairs:
        for phase, seconds in one.phases.items():
            summed[phase] = summed.get(phase, 0.0) + seconds * weight
    return summed


def gain(profile: StoreProfile | None, now: Price, then: Price, readers: tuple[str, str]) -> Gain | None:
    """How many times as long `now` takes as `then`; None if either has no price.

    Both prices come from the same calibration, so their errors resemble each other. The interval is that of ratios of
    the calibration's own cells: the same accesses in two layouts, predicted and measured.
    """
    if profile is None or now.unknown or then.unknown or then.seconds <= 0 or now.seconds <= 0:
        return None
    spread = ratio_spread(profile, readers)
    factor = now.seconds / then.seconds
    return Gain(factor, factor / exp(DEVIATIONS * spread), factor * exp(DEVIATIONS * spread))


def ratio_spread(profile: StoreProfile, readers: tuple[str, str]) -> float:
    """The standard deviation of log(predicted ratio / measured ratio), over pairs of layouts with the same accesses."""
    errors = _errors_of(profile)
    first, second = (errors.get(name, {}) for name in readers)
    errors_apart = []
    for asked, mine in first.items():
        for layout, error in mine:
            others = second.get(asked, [])
            errors_apart += [error - other for one, other in others if (readers[0], layout) != (readers[1], one)]
    if len(errors_apart) < LEAST_PAIRS:
        spreads = [each.spread for name in readers for each in profile.fits if each.library == name][:2] or [1.0]
        return sqrt(sum(one**2 for one in spreads))
    return max(LEAST_SPREAD, sqrt(sum(one**2 for one in errors_apart) / len(errors_apart)))


Errors = dict[str, dict[tuple[str, str, str], list[tuple[str, float]]]]
_ERRORS: dict[int, tuple[StoreProfile, Errors]] = {}


def _errors_of(profile: StoreProfile) -> Errors:
    """For each library and access: the layouts with log(predicted / measured)."""
    if id(profile) in _ERRORS:
        return _ERRORS[id(profile)][1]
    errors: Errors = defaultdict(lambda: defaultdict(list))
    for cell in profile.cells:
        if cell.asked and cell.cache != "library-warm":
            coefficients = profile.coefficients(cell.library, cell.operation)
            predicted = price(cell.variables, coefficients, cell.codec).seconds
            if predicted > 0 and cell.seconds > 0:
                key = (cell.operation, cell.cache, cell.asked)
                errors[cell.library][key].append((cell.layout, log(predicted / cell.seconds)))
    _ERRORS.clear()
    _ERRORS[id(profile)] = (profile, errors)
    return errors


def threads() -> int:
    """The threads that our engine uses."""
    return os.cpu_count() or 1
