"""What advice says of one array: a ranking, tips and a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil
from typing import Any

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.conversion import ConversionCost
from hyperslab.advise.demand import Demand
from hyperslab.advise.limits import Limits
from hyperslab.advise.price import Gain, Price
from hyperslab.advise.pricing import Measured, Pricer
from hyperslab.advise.stored import StoredArray
from hyperslab.advise.tip import Tip
from hyperslab.archive.views import display_html
from hyperslab.errors import printable


@dataclass(frozen=True)
class Option:
    """One row of the ranking."""

    candidate: Candidate
    price: Price
    gain: Gain | None  # over today's layout and library
    stored_nbytes: int
    file_count: int
    conversion: ConversionCost | None = None  # None: nothing is rewritten
    measured_seconds: float | None = None
    measured_interval: tuple[float, float] | None = None
    request_price: float | None = None
    reason: str = ""
    breaks: str | None = None  # a limit: libraries' defaults are shown for comparison even then
    needs: str | None = None  # what the program must have to read it, beside what it has
    refused: str | None = None  # why it is never advised, though it has a price
    by_run: Candidate | None = None  # the same file under `hyperslab run`; None if that does not serve the calls
    run_price: Price | None = None
    run_gain: Gain | None = None  # over today's layout and library
    measured_run_seconds: float | None = None

    @property
    def seconds(self) -> float | None:
        """Predicted seconds by the program's own library; None if they are unknown."""
        return None if self.price.unknown else self.price.seconds

    @property
    def run_seconds(self) -> float | None:
        """Predicted seconds under `hyperslab run`; None if they are unknown, or if it does not serve the calls."""
        return None if self.run_price is None else self.run_price.known_seconds

    @property
    def conversion_seconds(self) -> float | None:
        """What it takes to convert; None if nothing is rewritten."""
        return None if self.conversion is None else self.conversion.seconds

    @property
    def is_possible(self) -> bool:
        """Whether it is another layout, within all limits, that `convert` can write."""
        return not self.candidate.is_today and self.breaks is None and self.refused is None

    @property
    def can_be_advised(self) -> bool:
        """Whether it is possible, and has a price by the program's own library."""
        return self.seconds is not None and self.is_possible

    def runs_until_it_pays(self, today: Option, *, with_run: bool = False) -> int | None:
        """After how many runs the conversion has paid; None if never. With `run`, both are started by it."""
        mine, now = self.seconds, today.seconds
        if with_run:  # which leaves what it does not serve to the program's own library
            mine, now = self.run_seconds, now if today.run_seconds is None else today.run_seconds
        if self.conversion is None or mine is None or now is None:
            return None
        return ceil(self.conversion.seconds / (now - mine)) if now > mine else None


@dataclass
class Counsel:
    """One array, what is asked of it and takes today, and what helps without rewriting: the same for all commands."""

    array: StoredArray
    demands: list[Demand]
    pricer: Pricer
    limits: Limits
    today: Candidate
    now: Price
    tips: list[Tip] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)  # why the price of today may be wrong, in sentences
    is_borne_out: bool | None = None  # whether a trace measured about as much; None: none did

    @property
    def file(self) -> str:
        """The file, as the traced program named it."""
        traced = [one.summary.array.file for one in self.demands if one.summary is not None]
        return traced[0] if traced else self.array.file

    @property
    def memory_nbytes(self) -> int:
        """The memory of the machine that will read."""
        profile = self.pricer.profile
        return (None if profile is None else profile.environment.memory_nbytes) or 1 << 33

    @property
    def cache(self) -> str:
        """What is cached beforehand, in every price."""
        return self.demands[0].cache

    @property
    def access_count(self) -> int:
        """How many accesses the programs make."""
        return sum(one.access_count or len(one.steps) for one in self.demands)

    @property
    def priced_count(self) -> int:
        """For how many of them the prices are."""
        return sum(one.priced_count or len(one.steps) for one in self.demands)

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON: the same from every command."""
        return {
            "file": self.file,
            "array": self.array.name,
            "cache": self.cache,
            "accesses": self.access_count,
            "priced_accesses": self.priced_count,
            "seconds_now": self.now.known_seconds,
            "opening_seconds": None if self.now.unknown else self.now.opening_seconds,
            "own_seconds": None if self.now.unknown else self.now.own_seconds,
            "low": self.now.low,
            "high": None if self.now.unknown else self.now.high,
            "unknown": list(self.now.unknown),
            "borne_out": self.is_borne_out,
            "doubts": self.doubts,
            "tips": [self.tip_dict(tip) for tip in self.tips],
        }

    def tip_dict(self, tip: Tip) -> dict[str, Any]:
        """A tip as a dictionary for JSON, with the seconds of today."""
        gain = tip.gain
        return {
            "array": self.array.title,
            "what": tip.what,
            "call": tip.call,
            "decoded_now": None if tip.decoded is None else tip.decoded[0],
            "decoded_then": None if tip.decoded is None else tip.decoded[1],
            "seconds_now": self.now.known_seconds,
            "seconds_then": tip.price.known_seconds,
            "low": tip.price.low,
            "high": None if tip.price.unknown else tip.price.high,
            "unknown": list(tip.price.unknown),
            "gain": None if gain is None else gain.to_dict(),
            "priced_count": self.priced_count if self.priced_count < self.access_count else None,
        }


@dataclass(frozen=True)
class RunAdvice:
    """What to do in order to be still faster, if the program is started with `hyperslab run`."""

    option: Option  # the layout: the one that is advised without `run`, today's, or a third one
    verdict: str


@dataclass
class ArrayAdvice:
    """All that is advised for one array."""

    array: StoredArray
    demands: list[Demand]
    today: Option
    tips: list[Tip]
    options: list[Option]  # the fastest by the program's own library first; today's is among them
    chosen: Option
    verdict: str
    considered: int
    refused: dict[str, int]
    measured: Measured = field(default_factory=dict, repr=False)
    notes: list[str] = field(default_factory=list)
    verified: list[str] = field(default_factory=list)  # what verification found, in words
    append_axis: int | None = None  # that must be able to grow
    tip: Tip | None = None  # the one that is advised; then the file is kept
    needs_run: bool = False  # whether what is advised helps under `hyperslab run` only
    with_run: RunAdvice | None = None  # what is better still under `hyperslab run`
    counsel: Counsel | None = field(default=None, repr=False)  # what the tips and the verdict follow from

    @property
    def keeps(self) -> bool:
        """Whether the advice is to leave the file as it is."""
        return self.chosen.candidate.is_today

    @property
    def advised(self) -> Candidate:
        """The layout that is advised, opened as it is advised."""
        by_run = self.chosen.by_run if self.needs_run else None
        return (self.tip and self.tip.candidate) or by_run or self.chosen.candidate

    def __repr__(self) -> str:
        return f"<hyperslab.ArrayAdvice {printable(self.array.title)}: {printable(self.verdict)}>"

    def _repr_html_(self) -> str:
        return display_html.drawn("advice", [self])


class Advice(list[ArrayAdvice]):
    """The advice on each array, those that took most time first: a list that notebooks draw."""

    def _repr_html_(self) -> str:
        return display_html.drawn("advice", self)
