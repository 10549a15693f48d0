"""What a YAML file declares: strict models, and errors that name the file and the key."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, TypeVar

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

from hyperslab.errors import StudyError
from hyperslab.meant import meant

M = TypeVar("M", bound=BaseModel)


class Declared(BaseModel):
    """A frozen model that accepts no unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True)


def one_of(name: str, known: Collection[str], what: str) -> str:
    """The name itself. Raises ValueError with the known names if it is not one of them."""
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}{meant(name, known)}; choose from {', '.join(known)}")
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
        loc = loc_of(first)
        if line := _line_of(path, loc):
            where.append(f"line {line}")
        where.append(".".join(map(str, loc)) or "the file")
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden" and len(first["loc"]) == 1:
            near = meant(str(loc[-1]), kind.model_fields)
            message = f"unknown key{near}; choose from {', '.join(kind.model_fields)}"
        elif first["type"] == "extra_forbidden":
            message = "unknown key"
        raise StudyError(f"{': '.join(where)}: {message}") from error


class Misplaced(ValueError):
    """A rule about several keys is broken. `loc` leads from the model that checks the rule to the key that is wrong."""

    def __init__(self, message: str, *loc: str | int) -> None:
        super().__init__(message)
        self.loc = loc


def loc_of(error: Any) -> tuple[str | int, ...]:
    """The keys and positions that lead to an error."""
    raised = error.get("ctx", {}).get("error")
    return (*error["loc"], *(raised.loc if isinstance(raised, Misplaced) else ()))


def _line_of(path: Path, loc: tuple[str | int, ...]) -> int | None:
    """The line of a YAML file where the last key of `loc` that the file has begins. None if it has none of them."""
    try:
        node = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return None
    line: int | None = None
    for part in loc:
        found = next(_below(node, part), None)
        if found is None:
            return line
        mark, node = found
        line = mark.line + 1
    return line


def _below(node: Any, part: str | int) -> Iterator[tuple[Any, Any]]:
    """Where a key or a position of a YAML node begins, and its value."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == str(part):
                yield key.start_mark, value
    elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
        yield node.value[part].start_mark, node.value[part]
