"""What advice says of one array: a ranking, tips and a verdict."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil

from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand
from hyperslab.advise.pricing import Gain, Measured, Price
from hyperslab.advise.stored import StoredArray


@dataclass(frozen=True)
class Option:
    """One row of the ranking."""

    candidate: Candidate
    price: Price
    gain: Gain | None  # over today's layout and library
    stored_nbytes: int
    file_count: int
    conversion_seconds: float | None = None  # None: unknown, or nothing is rewritten
    measured_seconds: float | None = None
    measured_interval: tuple[float, float] | None = None
    request_price: float | None = None
    reason: str = ""
    breaks: str | None = None  # a limit: libraries' defaults are shown for comparison even then
    needs: str | None = None  # what the program must have to read it, beside what it has
    refused: str | None = None  # why it is never advised, though it has a price

    @property
    def seconds(self) -> float | None:
        """Predicted seconds; None if they are unknown."""
        return None if self.price.unknown else self.price.seconds

    @property
    def can_be_advised(self) -> bool:
        """Whether it is another layout with a price, within all limits, that `convert` can write."""
        is_possible = self.breaks is None and self.refused is None
        return self.seconds is not None and not self.candidate.is_today and is_possible

    def runs_until_it_pays(self, today: Option) -> int | None:
        """After how many runs the conversion has paid; None if never, or if it is unknown."""
        if self.conversion_seconds is None or self.seconds is None or today.seconds is None:
            return None
        saved = today.seconds - self.seconds
        return ceil(self.conversion_seconds / saved) if saved > 0 else None


@dataclass(frozen=True)
class Tip:
    """Something that helps without rewriting any data."""

    what: str
    call: str
    price: Price
    gain: Gain | None
    candidate: Candidate | None = None  # None: another order of the calls


@dataclass
class ArrayAdvice:
    """All that is advised for one array."""

    array: StoredArray
    demands: list[Demand]
    today: Option
    tips: list[Tip]
    options: list[Option]  # the fastest first; today's is among them
    chosen: Option
    verdict: str
    considered: int
    refused: dict[str, int]
    measured: Measured = field(default_factory=dict, repr=False)
    notes: list[str] = field(default_factory=list)
    verified: list[str] = field(default_factory=list)  # what verification found, in words
    append_axis: int | None = None  # that must be able to grow
    tip: Tip | None = None  # the one that is advised; then the file is kept

    @property
    def keeps(self) -> bool:
        """Whether the advice is to leave the file as it is."""
        return self.chosen.candidate.is_today

    @property
    def advised(self) -> Candidate:
        """The layout that is advised, opened as it is advised."""
        return (self.tip and self.tip.candidate) or self.chosen.candidate
