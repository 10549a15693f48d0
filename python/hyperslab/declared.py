"""What a YAML file declares: strict models, and errors that name the file and the key."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, ClassVar, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError
from yaml.composer import ComposerError

from hyperslab.errors import StudyError
from hyperslab.meant import meant_or_choose
from hyperslab.regular_files import read_regular

M = TypeVar("M", bound=BaseModel)


class Declared(BaseModel):
    """A frozen model that accepts no unknown keys."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", frozen=True)


def one_of(name: str, known: Collection[str], what: str) -> str:
    """The name itself. Raises ValueError with the known names if it is not one of them."""
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}{meant_or_choose(name, known)}")
    return name


class _Loader(yaml.SafeLoader):
    """Refuses a key that a mapping has twice: YAML itself would keep the last one without a word."""

    def compose_mapping_node(self, anchor: Any) -> Any:
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode) and key.value != "<<":
                if key.value in seen:
                    said = f"the key {key.value!r} is there twice"
                    raise ComposerError(None, None, said, key.start_mark)
                seen.add(key.value)
        return node


def read(path: Path, hint: str = "") -> dict[str, Any]:
    """The content of a file, unchecked. Raises StudyError with the file and the reason.

    `hint` says what to do if there is no such file.
    """
    try:
        given = yaml.load(read_regular(path).decode(), Loader=_Loader)
    except OSError as error:
        raise StudyError(f"{path}: cannot be read ({error.strerror or error}){hint}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        line = "" if mark is None else f"line {mark.line + 1}: "
        raise StudyError(f"{path}: {line}not a YAML file: {error.problem or error.context}") from error
    except (yaml.YAMLError, UnicodeDecodeError, ValueError) as error:
        raise StudyError(f"{path}: not a YAML file: {' '.join(str(error).split())}") from error
    except RecursionError as error:
        raise StudyError(f"{path}: not a YAML file: its lists are nested too deeply") from error
    if not isinstance(given, dict):
        raise StudyError(f"{path}: the file must be a mapping of keys to values")
    return given


def checked(path: Path, given: dict[str, Any], kind: type[M]) -> M:
    """The content of a file as a model. Raises StudyError with the file and the key."""
    try:
        return kind.model_validate(given)
    except ValidationError as error:
        first = _most_telling(error)
        where = [str(path), *([str(given["name"])] if "name" in given else [])]
        loc = loc_of(first)
        if line := _line_of(path, loc):
            where.append(f"line {line}")
        where.append(".".join(map(str, loc)) or "the file")
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            known = _keys_beside(kind, loc)
            message = f"unknown key{meant_or_choose(str(loc[-1]), known)}"
        elif first["type"] == "missing":
            message = "this key is missing"
        raise StudyError(f"{': '.join(where)}: {message}") from error


def _most_telling(error: ValidationError) -> Any:
    """The first error; or the unknown key beside a missing one, because a misspelled key seems to be missing too."""
    every = error.errors()
    first = every[0]
    if first["type"] != "missing":
        return first
    beside = (one for one in every if one["type"] == "extra_forbidden" and one["loc"][:-1] == first["loc"][:-1])
    return next(beside, first)


def _keys_beside(kind: type[BaseModel], loc: tuple[str | int, ...]) -> list[str]:
    """The keys that may be where `loc` leads to."""
    kinds = [kind]
    for part in loc[:-1]:
        fields = [one.model_fields[str(part)].annotation for one in kinds if str(part) in one.model_fields]
        # Other parts are positions in lists, keys of mappings, and pydantic's names for the members of a union.
        kinds = [inner for annotation in fields for inner in _models_in(annotation)] or kinds
    return list(dict.fromkeys(key for one in kinds for key in one.model_fields))


def _models_in(annotation: Any) -> Iterator[type[BaseModel]]:
    """The models in an annotation such as `dict[str, Conditions | None]`."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for inner in get_args(annotation):
        yield from _models_in(inner)


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
        node = yaml.compose(read_regular(path).decode(), Loader=yaml.SafeLoader)
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
