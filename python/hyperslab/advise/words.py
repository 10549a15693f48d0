"""Accesses in words, for people without a trace: `maps 3 and series 1`.

A word stands for a number of calls at random places; the number behind it multiplies them. The axis of time is the
dimension with such a name, and the first axis if there is none. Maps are planes of the last two other axes.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import islice, repeat

import numpy as np

from hyperslab._core import Hyperslab
from hyperslab.advise.demand import Demand
from hyperslab.errors import UsageError
from hyperslab.meant import meant
from hyperslab.model.workload import Step

CALLS = 20
MOST_CALLS = 20_000
BATCH = 32
BOX_SHARE = 0.1  # of each axis
TIMES = ("time", "t", "date", "datetime", "valid_time", "frame", "step", "month", "day", "year")
Box = tuple[list[int], list[int]]  # start, lengths
Random = np.random.Generator


def demand_of(text: str, shape: Sequence[int], dtype: str, dims: Sequence[str] | None = None) -> list[Demand]:
    """What the words ask of an array: one `Demand` for what is read, and one for what is appended.

    Raises
    ------
    UsageError
        A word is unknown, or the array has too few axes for it. The message has the known words.
    """
    asked = parse(text)
    random = np.random.default_rng(len(shape))
    reads: list[Step] = []
    writes: list[Step] = []
    for word, weight in asked:
        boxes = KINDS[word](tuple(shape), dims, random, max(1, round(CALLS * weight)))
        left = MOST_CALLS - len(reads) - len(writes)
        steps = [Step("write" if word == "appends" else "read", _hyperslab(box)) for box in islice(boxes, left + 1)]
        if len(steps) > left:
            raise UsageError(f"--like {text!r} makes more than {MOST_CALLS} calls; use smaller numbers")
        (writes if word == "appends" else reads).extend(steps)
    demands = []
    if reads:
        mixed = [reads[place] for place in random.permutation(len(reads))]
        demands.append(Demand(text if not writes else f"{text}: reads", tuple(shape), dtype, mixed))
    if writes:
        demands.append(Demand("appends", tuple(shape), dtype, writes, cache="new"))
    return demands


def parse(text: str) -> list[tuple[str, float]]:
    """The words with their weights: `maps 3 and series` gives maps 3, series 1."""
    words = []
    for part in re.split(r"\s*(?:\band\b|,|\+)\s*", text.strip().lower()):
        matched = re.fullmatch(r"(\d+(?:\.\d+)?)?\s*([a-z ]+?)\s*(\d+(?:\.\d+)?)?", part)
        word = None if matched is None else SYNONYMS.get(matched[2], matched[2])
        if matched is None or word not in KINDS or (matched[1] and matched[3]):
            near = meant("" if matched is None else matched[2], KINDS)
            said = f"--like {text!r}: {part!r} is not known{near}"
            raise UsageError(f"{said}; combine {', '.join(KINDS)} with `and`, each perhaps with a number: maps 3 and "
                             "series 1")  # fmt: skip
        weight = float(matched[1] or matched[3] or 1)
        if weight <= 0:
            raise UsageError(f"--like {text!r}: the number behind {word} must be larger than 0")
        if not math.isfinite(CALLS * weight):
            raise UsageError(f"--like {text!r} makes more than {MOST_CALLS} calls; use smaller numbers")
        words.append((word, weight))
    return words


def time_axis(shape: Sequence[int], dims: Sequence[str] | None) -> int:
    """The axis along which series run."""
    names = [] if dims is None else [name.lower() for name in dims]
    return next((axis for axis, name in enumerate(names) if name in TIMES), 0) if len(shape) > 1 else 0


def _hyperslab(box: Box) -> Hyperslab:
    start, lengths = box
    return Hyperslab(start, [1] * len(start), lengths, [1] * len(start))


def _placed(lengths: Sequence[int], shape: Sequence[int], random: Random) -> Box:
    pairs = zip(shape, lengths, strict=True)
    return [int(random.integers(0, length - part + 1)) for length, part in pairs], list(lengths)


def _maps(shape: tuple[int, ...], dims: Sequence[str] | None, random: Random, count: int) -> Iterator[Box]:
    time = time_axis(shape, dims)
    others = [axis for axis in range(len(shape)) if axis != time]
    plane = set(others[-2:])
    lengths = [length if axis in plane else 1 for axis, length in enumerate(shape)]
    return (_placed(lengths, shape, random) for _ in range(count))


def _series(shape: tuple[int, ...], dims: Sequence[str] | None, random: Random, count: int) -> Iterator[Box]:
    time = time_axis(shape, dims)
    return (_placed([n if axis == time else 1 for axis, n in enumerate(shape)], shape, random) for _ in range(count))


def _boxes(shape: tuple[int, ...], dims: Sequence[str] | None, random: Random, count: int) -> Iterator[Box]:  # noqa: ARG001
    lengths = [max(1, round(length * BOX_SHARE)) for length in shape]
    return (_placed(lengths, shape, random) for _ in range(count))


def _rows(shape: tuple[int, ...], dims: Sequence[str] | None, random: Random, count: int) -> Iterator[Box]:  # noqa: ARG001
    return (_placed([1, *shape[1:]], shape, random) for _ in range(count))


def _columns(shape: tuple[int, ...], dims: Sequence[str] | None, random: Random, count: int) -> Iterator[Box]:  # noqa: ARG001
    return (_placed([*shape[:-1], 1], shape, random) for _ in range(count))


def _points(shape: tuple[int, ...], dims: Sequence[str] | None, random: Random, count: int) -> Iterator[Box]:  # noqa: ARG001
    return (_placed([1] * len(shape), shape, random) for _ in range(count))


def _batches(shape: tuple[int, ...], dims: Sequence[str] | None, random: Random, count: int) -> Iterator[Box]:  # noqa: ARG001
    return (_placed([1, *shape[1:]], shape, random) for _ in range(count * BATCH))


def _appends(shape: tuple[int, ...], dims: Sequence[str] | None, random: Random, count: int) -> Iterator[Box]:  # noqa: ARG001
    """The array as it is written from the first row to the last, in several times as many calls as of other words."""
    calls = min(shape[0], count * 10)
    zeros = [0] * (len(shape) - 1)
    edges = ((shape[0] * at // calls, shape[0] * (at + 1) // calls) for at in range(calls))
    return (([a, *zeros], [b - a, *shape[1:]]) for a, b in edges if b > a)


def _whole(shape: tuple[int, ...], dims: Sequence[str] | None, random: Random, count: int) -> Iterator[Box]:  # noqa: ARG001
    return repeat(([0] * len(shape), list(shape)), max(1, count // CALLS))


KINDS: dict[str, Callable[[tuple[int, ...], Sequence[str] | None, Random, int], Iterator[Box]]] = {
    "maps": _maps, "series": _series, "boxes": _boxes, "rows": _rows, "columns": _columns, "points": _points,
    "random batches": _batches, "appends": _appends, "everything": _whole,
}  # fmt: skip
SYNONYMS = {
    "map": "maps", "time series": "series", "box": "boxes", "row": "rows", "column": "columns", "point": "points",
    "batches": "random batches", "append": "appends", "all": "everything", "whole": "everything",
}  # fmt: skip
