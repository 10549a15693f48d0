"""What a YAML file declares: strict models, and errors that name the file and the key."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from hyperslab.errors import StudyError

M = TypeVar("M", bound=BaseModel)


class Declared(BaseModel):
    """A frozen model that accepts no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def one_of(name: str, known: Collection[str], what: str) -> str:
    """The name itself. Raises ValueError with the known names if it is not one of them."""
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}; choose from {', '.join(known)}")
    return name


def read(path: Path) -> dict[str, Any]:
    """The content of a file, unchecked. Raises StudyError with the file and the reason."""
    try:
        given = yaml.safe_load(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise StudyError(
            f"{path}: cannot be read ({error.strerror}); `hyperslab studies` lists the studies that are included"
        ) from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise StudyError(f"{path}: not a YAML file: {' '.join(str(error).split())}") from error
    if not isinstance(given, dict):
        raise StudyError(f"{path}: the file must be a mapping of keys to values")
    return given


def checked(path: Path, given: dict[str, Any], kind: type[M]) -> M:
    """The content of a file as a model. Raises StudyError with the file and the key."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = error.errors()[0]
        where = [str(path), *([str(given["name"])] if "name" in given else [])]
        where.append(".".join(str(part) for part in first["loc"]) or "the file")
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            message = f"unknown key; choose from {', '.join(kind.model_fields)}"
        raise StudyError(f"{': '.join(where)}: {message}") from error
