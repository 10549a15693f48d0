"""The published studies by their own methods: their timer boundaries, defaults and order, including their faults.

A `Replay` is used only with `--method published`, instead of the fair trial. It has its own code and does not use the
formats table, because it repeats where the published timers began and ended.
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
from hyperslab.errors import StudyError


@dataclass(frozen=True)
class PublishedArrays:
    """The arrays of a published trial."""

    shape: tuple[int, ...]
    count: int
    dtype: np.dtype[Any]
    properties: int | None = None  # of a compound array
    compressed: bool = False  # with the compression of the study


class Replay(ABC):
    """How one published study wrote and read, with the faults that are part of its figures."""

    name: ClassVar[str]
    source: ClassVar[str]
    formats: ClassVar[tuple[str, ...]]
    trials: ClassVar[int]  # how many trials the study made
    dropped: ClassVar[int]  # how many of the first trials never reached its figures
    statistic: ClassVar[Literal["mean", "min"]]
    faults: ClassVar[Mapping[str, str]]  # B-number of the research note -> one sentence

    @abstractmethod
    def write(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> dict[str, float]:
        """Write as the study did. Returns what its timers measured: seconds by phase, summed over the arrays."""

    @abstractmethod
    def read(self, format_name: str, path: Path, arrays: PublishedArrays, operation: Operation) -> dict[str, float]:
        """Read as the study did, from the files that `write` left at `path`."""


REPLAYS: dict[str, str] = {
    "common-io-basic": "hyperslab.bench.published.common_io:Basic",
    "common-io-csv": "hyperslab.bench.published.common_io:WithCsv",
    "common-io-compound": "hyperslab.bench.published.compound:Compound",
    "formats-2002": "hyperslab.bench.published.formats_2002:Formats2002",
}


def make_replay(name: str) -> Replay:
    """The replay with a name. Raises StudyError with the known names."""
    if name not in REPLAYS:
        raise StudyError(f"unknown replay {name!r}; choose from {', '.join(REPLAYS)}")
    module, _, attribute = REPLAYS[name].partition(":")
    kind: type[Replay] = getattr(importlib.import_module(module), attribute)
    return kind()
