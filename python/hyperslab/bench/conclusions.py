"""The conclusions of the published studies as data: what was claimed, and which figures it is judged by here.

`studies/conclusions.yaml` holds them. A claim is one of five kinds: an extreme (fastest, slowest), an order, a ratio of
speeds, an effect, or a limit. `hyperslab.bench.verdicts` judges them.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from hyperslab.bench.operations import OPERATIONS
from hyperslab.bench.records import METRICS
from hyperslab.bench.study import STUDIES_DIRECTORY
from hyperslab.declared import Declared, checked, one_of, read
from hyperslab.errors import StudyError
from hyperslab.formats import FORMATS

Axis = Literal["format", "conditions", "operation", "count"]


class Extreme(Declared):
    """One format takes the least, or the most, time of all formats."""

    kind: Literal["fastest", "slowest"]
    format: str
    among: list[str] = Field(min_length=2)


class Order(Declared):
    """Formats in order, the fastest first."""

    kind: Literal["order"]
    order: list[str] = Field(min_length=2)


class Ratio(Declared):
    """How many times as fast one format is as another: the numerator's speed over the denominator's, as published.

    A range around 1 claims likeness; any other range claims a direction. Without `high`, `low` is a least value.
    """

    kind: Literal["ratio"]
    numerator: str
    denominator: str
    low: float = Field(gt=0)
    high: float | None = None

    @property
    def claims_likeness(self) -> bool:
        """Whether the range includes 1 or comes close from below, as 80-100 % does."""
        return self.high is not None and self.low >= 0.7 and (self.high <= 1.05 or self.low <= 1)


class Effect(Declared):
    """What `of` costs against `against`, two points on one axis.

    On the axis `count`, it compares most with fewest arrays.
    """

    kind: Literal["effect"]
    axis: Axis
    of: str
    against: str
    expected: Literal["slower", "faster", "none"]
    tolerance: float = Field(default=0.25, ge=0, description="a difference of up to this much counts as no effect")

    @model_validator(mode="after")
    def _counts_are_extremes(self) -> Effect:
        if self.axis == "count" and (self.of, self.against) != ("most", "fewest"):
            raise ValueError("on the axis count, `of` must be most and `against` must be fewest")
        return self


class Within(Declared):
    """One format takes at most this many seconds."""

    kind: Literal["within"]
    format: str
    seconds: float = Field(gt=0)


Claim = Annotated[Extreme | Order | Ratio | Effect | Within, Field(discriminator="kind")]


class Metrics(Declared):
    """Which seconds are compared: those that the study timed, and those that answer its question fairly."""

    published: str
    fair: str

    @field_validator("published", "fair")
    @classmethod
    def _known(cls, name: str) -> str:
        return one_of(name, METRICS, "metric")


class Conclusion(Declared):
    """One published conclusion."""

    id: str
    study: str
    cases: list[str] = Field(min_length=1, description="names of the cases it is judged by; * and [] as in a shell")
    conclusion: str
    source: str
    published: str = Field(description="the figures as published, in words")
    claim: Claim
    metrics: Metrics
    operations: list[str] = Field(min_length=1)
    fair_operations: list[str] | None = Field(default=None, description="for the fair side, if they differ")
    formats: list[str] | None = Field(default=None, description="for effects: the formats to judge")
    conditions: list[str] | None = Field(default=None, description="for the fair side; a published method has its own")
    caches: list[str] | None = Field(default=None, description="for the fair side")
    counts: Literal["all", "largest"] = "all"

    @field_validator("operations")
    @classmethod
    def _known_operations(cls, names: list[str]) -> list[str]:
        return [one_of(name, OPERATIONS, "operation") for name in names]

    @model_validator(mode="after")
    def _known_formats(self) -> Conclusion:
        for name in (*formats_of(self.claim), *(self.formats or ())):
            one_of(name, FORMATS, "format")
        return self


def formats_of(claim: Extreme | Order | Ratio | Effect | Within) -> list[str]:
    """The formats in a claim."""
    if isinstance(claim, Extreme):
        return claim.among
    if isinstance(claim, Within):
        return [claim.format]
    if isinstance(claim, Order):
        return claim.order
    if isinstance(claim, Ratio):
        return [claim.numerator, claim.denominator]
    return [claim.of, claim.against] if claim.axis == "format" else []


class PublishedRatios(Declared):
    """A published table of speed ratios: one conclusion for each row."""

    first: int = Field(gt=0, description="number of the first row's conclusion; the next rows follow")
    study: str
    cases: list[str]
    what: str = Field(description="what was timed, as in 'writes (total time, IRIX)'")
    source: str
    numerator: str
    rows: dict[str, tuple[float, float | None]] = Field(description="denominator -> lowest and highest ratio")
    metrics: Metrics
    operations: list[str]
    counts: Literal["all", "largest"] = "all"

    def conclusions(self) -> Iterator[Conclusion]:
        """The conclusions of the rows."""
        for number, (denominator, (low, high)) in enumerate(self.rows.items(), self.first):
            times = _range(low, high)
            yield Conclusion(
                id=f"S2-{number:02}",
                study=self.study,
                cases=self.cases,
                conclusion=f"{self.numerator} {self.what} {times} times as fast as {denominator}",
                source=self.source,
                published=f"{self.numerator}/{denominator} {times}",
                claim=Ratio(kind="ratio", numerator=self.numerator, denominator=denominator, low=low, high=high),
                metrics=self.metrics,
                operations=self.operations,
                counts=self.counts,
            )


def _range(low: float, high: float | None) -> str:
    if high is None:
        return f"at least {low:g}"
    return f"{low:g}" if low == high else f"{low:g}-{high:g}"


class _File(Declared):
    conclusions: list[Conclusion]
    ratio_tables: list[PublishedRatios] = Field([])


def load(path: Path = STUDIES_DIRECTORY / "conclusions.yaml") -> list[Conclusion]:
    """Load the conclusions of a file, in order. Raises StudyError with the file and the key."""
    declared = checked(path, read(path), _File)
    every = [*declared.conclusions, *(row for table in declared.ratio_tables for row in table.conclusions())]
    identities = [conclusion.id for conclusion in every]
    for identity in identities:
        if identities.count(identity) > 1:
            raise StudyError(f"{path}: {identity} is the ID of two conclusions; change one of them")
    return every
