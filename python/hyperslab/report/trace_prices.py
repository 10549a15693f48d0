"""What the accesses to an array of a trace should take, by the cost model and by what its codec costs on its data."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from hyperslab.errors import HyperslabError
from hyperslab.model.cells import CellCache, ModelCell
from hyperslab.model.codec_sample import codec_rates
from hyperslab.model.costs import CodecRate, Cost
from hyperslab.model.libraries import Hdf5, HyperslabEngine, Layout, Library, Zarr
from hyperslab.model.predict import predict_cell
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.terms import Phase
from hyperslab.model.traced import LIBRARY_OF, TracedWorkload, layout_of_traced, workload_of
from hyperslab.trace.summaries import ArraySummary
from hyperslab.trace.table import TracedArray
from hyperslab.trace.trace import Trace

STATE: CellCache = "page-warm"
"""What the predictions assume: the file is in the page cache, so that they differ by what the program can change."""
MOST_SAMPLED = 8
"""Of so many arrays, those that took the most time, a sample is decoded: each takes about a second."""
MOST_PRICED = 20_000
"""Of an array: later accesses are not priced, because each takes some 20 µs."""
PARTS: dict[str, tuple[Phase, ...]] = {
    "device": ("device_read", "device_write", "cache_read"),
    "decoding": ("codec",),
    "copying": ("memory_copy",),
    "library": ("per_chunk", "per_call"),
}
"""The parts into which predicted seconds are split. The page cache stands for the device."""


class ArrayPrices:
    """Predicted seconds of the accesses to one array."""

    def __init__(self, trace: Trace, one: ArraySummary, trained: StoreProfile | None, is_sampled: bool = False) -> None:
        self.trace, self.one, self.trained = trace, one, trained
        self.library = library_of(one.array)
        self.is_sampled = is_sampled
        self._workload: TracedWorkload | None = None
        self._layout: Layout | None = None
        self._rates: dict[tuple[str, str], CodecRate] = {}

    def cost(self, library: Library | None, rows: Sequence[int] | None = None) -> Cost | None:
        """What a library takes, perhaps in another order; None if that is not known."""
        if self.trained is None or library is None or library.name not in self.trained.libraries or self.is_elsewhere:
            return None
        try:
            if self._workload is None:
                self._prepare()
            assert self._workload is not None
            assert self._layout is not None
            asked = self._workload if rows is None else workload_of(self.trace, self.one.array, self._priced(rows))
            rate = self._rates.get((library.name, self._layout.codec or ""))
            found = predict_cell(ModelCell(asked, self._layout, library, STATE), self.trained, rate=rate).cost
        except (HyperslabError, ValueError):
            return None  # the profile does not cover this
        return None if found.unknown else found

    @property
    def is_elsewhere(self) -> bool:
        """Whether the file is not on a disk of this machine, while the store profile says what that disk costs."""
        return self.trained is not None and not self.one.array.is_local and not self.trained.is_far

    @property
    def access_count(self) -> int:
        """How many accesses are priced: the first ones."""
        return min(self.one.analysed_count, MOST_PRICED)

    @property
    def first_count(self) -> int | None:
        """The same, if there are more accesses."""
        return self.access_count if self.access_count < len(self.one.rows) else None

    def _priced(self, rows: Sequence[int]) -> Sequence[int]:
        """The accesses that are priced, in the order of these rows."""
        if len(rows) <= self.access_count:
            return rows
        last = self.one.rows[self.access_count - 1]
        return [row for row in rows if row <= last]

    def _prepare(self) -> None:
        array = self.one.array
        workload = workload_of(self.trace, array, self.one.rows[: self.access_count])
        self._layout = layout_of_traced(array, workload)
        if self.is_sampled and self._layout.codec is not None:
            self._rates = _rates(array, self._layout)
        self._workload = workload

    def seconds(self, library: Library | None, rows: Sequence[int] | None = None) -> float | None:
        """The seconds of that."""
        found = self.cost(library, rows)
        return None if found is None else found.seconds

    def parts(self) -> dict[str, float] | None:
        """The predicted seconds of what the program did, by `PARTS`; None if they are not known."""
        found = self.cost(self.library)
        if found is None:
            return None
        return {name: sum(found.phases[phase] for phase in phases) for name, phases in PARTS.items()}


def prices_of(trace: Trace, summaries: Sequence[ArraySummary], trained: StoreProfile | None) -> list[ArrayPrices]:
    """The prices of each array. The files of those that took the most time are sampled, if they are still there."""
    return [ArrayPrices(trace, one, trained, place < MOST_SAMPLED) for place, one in enumerate(summaries)]


def _rates(array: TracedArray, layout: Layout) -> dict[tuple[str, str], CodecRate]:
    if array.library == "zarr" or not Path(array.file).is_file() or layout.codec is None:
        return {}
    try:
        return codec_rates(f"{array.file}:{array.array}", layout, [layout.codec])
    except (HyperslabError, OSError, ValueError, TypeError):
        return {}  # it has changed, or our engine cannot read it: the trained price stands


def library_of(array: TracedArray) -> Library | None:
    """The library of the cost model that stands for the recorded one, with the cache that the array had."""
    name = LIBRARY_OF.get(array.library)
    if name == "hdf5":
        if array.cache_nbytes is None or array.cache_slots is None:
            return Hdf5()
        return Hdf5(chunk_cache_nbytes=array.cache_nbytes, chunk_cache_slots=array.cache_slots)
    if name == "zarr":
        return Zarr()
    return HyperslabEngine() if name == "hyperslab" else None
