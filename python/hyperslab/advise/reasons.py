"""Why a layout is faster, in words that follow from counts alone."""

from __future__ import annotations

from collections.abc import Sequence

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand
from hyperslab.quantities import set_nbytes_text

CLEAR = 1.5


def reason_of(demands: Sequence[Demand], today: Candidate, other: Candidate, needed: str | None = None) -> str:
    """What changes for the calls, and what your program needs beside what it has."""
    said = [*_of_counts(demands, today, other), *_of_settings(today, other)]
    return "; ".join([*said, *([] if needed is None else [f"its readers need {needed}"])])


def _of_counts(demands: Sequence[Demand], today: Candidate, other: Candidate) -> list[str]:
    """The chunks that are touched, and the elements that are decoded."""
    said = []
    now, then = (touches_of(demands, one) for one in (today, other))
    if now[0] > CLEAR * then[0]:
        said.append(f"a call touches {_number(then[0])} instead of {_number(now[0])} chunks")
    elif then[0] > CLEAR * now[0]:
        said.append(f"a call touches {_number(then[0])} chunks, today {_number(now[0])}")
    if now[1] > CLEAR * then[1]:
        said.append(f"{_number(now[1] / then[1])} times fewer elements are decoded")
    elif then[1] > CLEAR * now[1]:
        said.append(f"{_number(then[1] / now[1])} times as many elements are decoded")
    return said


def _of_settings(today: Candidate, other: Candidate) -> list[str]:
    """The codec, the chunk cache, the reader, and what a program must do differently."""
    said = []
    is_zarr = other.format.startswith("zarr")
    if today.encoding != other.encoding:
        said.append(f"{other.encoding.text} instead of {today.encoding.text}")
    if other.cache_nbytes is not None and other.cache_nbytes != today.cache_nbytes:
        said.append(f"a chunk cache of {set_nbytes_text(other.cache_nbytes)}")
    if other.reader == "hyperslab" != today.reader:
        said.append("our engine decodes with all cores")
    if other.order is not None:
        said.append("your program must name its dimensions, because their order changes")
    if is_zarr and not today.format.startswith("zarr"):
        said.append("your program must open Zarr")
    return said


def touches_of(demands: Sequence[Demand], one: Candidate) -> tuple[float, float]:
    """The chunks that a call touches on average, and the elements in them; runs if the array is in one piece."""
    chunk = one.layout.chunk_shape
    if one.order is not None:
        chunk = tuple(chunk[one.order.index(axis)] for axis in range(len(chunk)))
    calls = touched = elements = 0.0
    for demand in demands:
        expected = float(demand.touches(chunk).sum()) * demand.weight
        size = 1.0
        for length, part in zip(demand.shape, chunk, strict=True):
            size *= min(length, part)
        calls += len(demand.steps) * demand.weight
        touched += expected
        elements += demand.asked_nbytes / demand.element_nbytes * demand.weight if one.layout.contiguous else (
            expected * size
        )  # fmt: skip
    return touched / max(calls, 1e-9), max(elements, 1e-9)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 9.5 else f"{value:.2g}"
