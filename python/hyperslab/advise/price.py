"""What a candidate costs, and how many times as long one takes as another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hyperslab.model.predict import Prediction
    from hyperslab.model.terms import Phase


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
    phases: Mapping[Phase, float] = field(default_factory=dict)
    predictions: tuple[Prediction, ...] = field(default=(), repr=False)  # of each demand, in their order
    # Of the seconds, those that no trace times: the array and its file are opened and closed, and a library that calls
    # HDF5 does its own work.
    opening_seconds: float = 0.0
    own_seconds: float = 0.0

    @property
    def known_seconds(self) -> float | None:
        """Predicted seconds; None if they are unknown."""
        return None if self.unknown else self.seconds

    @property
    def call_seconds(self) -> float:
        """Predicted seconds of the calls themselves, which a trace times."""
        return self.seconds - self.opening_seconds - self.own_seconds

    @property
    def rank(self) -> tuple[bool, float]:
        """The fastest first; what has no price, last."""
        return bool(self.unknown), self.seconds

    @classmethod
    def without(cls, reason: str) -> Price:
        """That there is no price, and why."""
        return cls(0.0, 0.0, float("inf"), 0.0, (reason,))


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

    def to_dict(self) -> dict[str, float | bool]:
        """A dictionary for JSON."""
        return {"factor": self.factor, "low": self.low, "high": self.high, "is_sure": self.is_sure}
