"""The published studies by their own method: their boundaries, defaults and order, their faults included.

A `Replay` is used only under `--method published`, where it stands in for the fair trial. It is code of its own,
not the formats table, because where the published timers stood is what is being repeated.
"""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

from hyperslab.bench.operations import Operation
from hyperslab.bench.records import Phases
from hyperslab.errors import StudyError


@dataclass(frozen=True)
class PublishedArrays:
    """The arrays of a published trial."""

    shape: tuple[int, ...]
    count: int
    dtype: np.dtype[Any]
    properties: int | None = None  # of a compound array
    compressed: bool = False  # with the compression that the study used


class Replay(ABC):
    """How one published study wrote and read, with the faults that its figures contain."""

    name: ClassVar[str]
    source: ClassVar[str]
    formats: ClassVar[tuple[str, ...]]
    trials: ClassVar[int]  # how many the study made
    dropped: ClassVar[int]  # of the first ones, how many never reached its figures
    statistic: ClassVar[Literal["mean", "min"]]
    faults: ClassVar[Mapping[str, str]]  # B-number of the research note -> one sentence

    @abstractmethod
    def write(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> Phases:
        """Write as the study did; the phases hold what its timers held, summed over the arrays."""

    @abstractmethod
    def read(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> Phases:
        """Read, from what `write` left at `path`, as the study did."""


REPLAYS: dict[str, str] = {
    "seed0-basic": "hyperslab.bench.published.seed0:Basic",
    "seed0-csv": "hyperslab.bench.published.seed0:WithCsv",
    "seed0-compound": "hyperslab.bench.published.compound:Compound",
    "seed2": "hyperslab.bench.published.seed2:Seed2",
}


def make_replay(name: str) -> Replay:
    """The replay of a name in the table; raises StudyError with the known names."""
    if name not in REPLAYS:
        raise StudyError(f"unknown replay {name!r}; the known ones are {', '.join(REPLAYS)}")
    module, _, attribute = REPLAYS[name].partition(":")
    found: type[Replay] = getattr(importlib.import_module(module), attribute)
    return found()
