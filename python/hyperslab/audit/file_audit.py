"""`FileAudit`: what an audit found in one file, in plain numbers and words that JSON can hold."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from hyperslab.archive.views import display_html
from hyperslab.quantities import nbytes_text, seconds_text

Grade = Literal["good", "fair", "slow", "poor", "unreadable"]
GRADES: tuple[Grade, ...] = ("good", "fair", "slow", "poor", "unreadable")


@dataclass(frozen=True)
class AccessCost:
    """What an access takes: requests to a server, and predicted seconds."""

    array: str
    access: str
    nbytes: int  # that you ask for
    request_count: int
    fetched_nbytes: int
    far_seconds: float
    remedied_seconds: float  # at the same distance, if the array has the chunks that it should have
    local_seconds: float | None = None  # by the cost model, with the library of the format; None if it is unknown

    @property
    def saved_seconds(self) -> float:
        """What the right chunks save."""
        return max(0.0, self.far_seconds - self.remedied_seconds)


@dataclass(frozen=True)
class Fault:
    """Something that makes a file slow or hard to read."""

    kind: str
    said: str  # a sentence without its end
    saved_seconds: float = 0.0  # at the distance, if it is remedied


@dataclass(frozen=True)
class Remedy:
    """The commands that remedy a file's faults, what that saves each time that it is read, and what it costs once."""

    commands: tuple[str, ...]
    saved_seconds: float
    seconds: float  # an estimate
    read_nbytes: int
    written_nbytes: int


@dataclass(frozen=True)
class FileAudit:
    """One file, judged from its metadata."""

    name: str
    grade: Grade
    reason: str
    format: str = ""
    nbytes: int | None = None
    request_count: int | None = None  # to open it
    round_count: int | None = None
    fetched_nbytes: int | None = None
    metadata_nbytes: int | None = None
    place_count: int | None = None
    open_seconds: float | None = None
    array_count: int = 0
    tiny_array_count: int = 0
    decoded_nbytes: int = 0
    stored_nbytes: int = 0
    chunk_count: int = 0
    stored_chunk_count: int = 0
    missing_chunk_count: int = 0
    codecs: tuple[str, ...] = ()
    foreign_filters: tuple[str, ...] = ()
    main_array: str | None = None  # the largest
    main_shape: tuple[int, ...] | None = None
    main_chunks: tuple[int, ...] | None = None
    main_chunk_nbytes: float | None = None  # of a stored chunk, on average
    accesses: tuple[AccessCost, ...] = ()
    seconds: float | None = None  # to open it and make all accesses, at the distance
    local_seconds: float | None = None
    faults: tuple[Fault, ...] = ()
    remedy: Remedy | None = None
    unmet: tuple[str, ...] = ()  # what the file lacks of what was required
    notes: tuple[str, ...] = ()
    error: str | None = None
    code: str | None = None

    @property
    def saved_seconds(self) -> float:
        """What the remedy saves each time that the file is opened and read."""
        return 0.0 if self.remedy is None else self.remedy.saved_seconds

    @property
    def rank(self) -> float:
        """The larger, the worse: first by grade, then by the seconds that could be saved."""
        return GRADES.index(self.grade) * 1e12 + min(self.saved_seconds, 9e11)

    def to_dict(self) -> dict[str, Any]:
        """A dictionary for JSON."""
        return asdict(self)

    def _repr_html_(self) -> str:
        known = [("size", nbytes_text(self.nbytes)), ("arrays", f"{self.array_count:,}")]
        if self.request_count is not None:
            known.append(("to open", f"{self.request_count:,} requests, {seconds_text(self.open_seconds)}"))
        known += [
            (f"{one.access} of {one.array}", f"{one.request_count:,} requests, {seconds_text(one.far_seconds)}")
            for one in self.accesses
        ]
        known += [(one.kind, one.said) for one in self.faults]
        known += [] if self.remedy is None else [("remedy", command) for command in self.remedy.commands]
        known += [("required, but not met", said) for said in self.unmet]
        return display_html.facts(
            "hyperslab.FileAudit", f"{self.name}: {self.grade}", known, [self.reason, *self.notes]
        )

    @classmethod
    def from_dict(cls, made: dict[str, Any]) -> FileAudit:
        """What `to_dict` made."""
        lists = {name: tuple(value) for name, value in made.items() if isinstance(value, list)}
        remedy = made["remedy"]
        if remedy is not None:
            remedy = Remedy(**{**remedy, "commands": tuple(remedy["commands"])})
        accesses = tuple(AccessCost(**one) for one in made["accesses"])
        faults = tuple(Fault(**one) for one in made["faults"])
        return cls(**{**made, **lists, "remedy": remedy, "accesses": accesses, "faults": faults})
