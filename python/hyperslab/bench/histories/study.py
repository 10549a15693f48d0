"""A study of histories: edits, numbers of versions, and layouts. Its YAML file has `kind: histories`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, PositiveInt, field_validator

from hyperslab.bench.histories.contenders import COMPRESSIONS, HISTORY_FORMATS
from hyperslab.bench.histories.edits import EDIT_PATTERNS
from hyperslab.bench.study import STUDIES_DIRECTORY, Scale
from hyperslab.declared import Declared, checked, one_of, read

KIND = "histories"


class HistoryCase(Declared):
    """A complete study of histories. Its trials are all combinations, for each contender in turn."""

    kind: Literal["histories"]
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$")
    title: str = ""
    source: str = ""
    family: str = ""
    formats: list[str] = Field(list(HISTORY_FORMATS), min_length=1, description="contenders")
    edits: list[str] = Field(list(EDIT_PATTERNS), min_length=1, description="what versions do to their arrays")
    counts: list[PositiveInt] = Field(min_length=1, description="of versions")
    chunk_lengths: list[PositiveInt] = Field(min_length=1)
    dense_chunk_lengths: list[PositiveInt] = Field(min_length=1, description="for arrays with two axes")
    conditions: list[str] = Field(list(COMPRESSIONS), min_length=1, description="compressions")
    scales: dict[Scale, dict[str, Any]] = Field({})

    @field_validator("formats", "edits", "conditions")
    @classmethod
    def _known(cls, names: list[str], info: Any) -> list[str]:
        known = {"formats": [*HISTORY_FORMATS], "edits": [*EDIT_PATTERNS], "conditions": [*COMPRESSIONS]}[
            info.field_name
        ]
        return [one_of(name, known, info.field_name) for name in names]

    def scaled(self, scale: Scale) -> HistoryCase:
        """The study at a scale, which says what differs."""
        return HistoryCase.model_validate({**self.model_dump(), **self.scales.get(scale, {})})


def load(path: Path, given: dict[str, Any]) -> HistoryCase:
    """Load a study from its file. Raises StudyError with the file, the key and what is expected."""
    return checked(path, {"name": path.stem, "family": path.stem, **given}, HistoryCase)


def shipped() -> Iterable[HistoryCase]:
    """All studies of histories that hyperslab includes."""
    return [load(path, read(path)) for path in sorted((STUDIES_DIRECTORY / KIND).glob("*.yaml"))]
