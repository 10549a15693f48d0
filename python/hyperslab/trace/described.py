"""Check what a trace says in JSON: types of another kind than ours would fail somewhere far from the file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields
from typing import Any

MOST = 1 << 62  # of any number; only damage makes them larger


def check_fields(described: Any) -> None:
    """Check that the fields of a dataclass have the types that it declares.

    Raises
    ------
    ValueError
        One has not. The message names it.
    """
    for one in fields(described):
        name, _, optional = str(one.type).partition(" | ")
        value = getattr(described, one.name)
        if not (value is None and optional == "None") and not _ARE[name](value):
            raise ValueError(f"{one.name} is {str(value)[:60]!r}, which is not {_WORDS[name]}")


def checked_texts(said: Any, name: str) -> list[str]:
    """A list of texts.

    Raises
    ------
    ValueError
        It is something else.
    """
    if not isinstance(said, list) or not _are_texts(said):
        raise ValueError(f"{name} is not a list of texts")
    return said


def checked_program(said: Any) -> dict[str, Any]:
    """What is known of a program; what we do not know of is left out.

    Raises
    ------
    ValueError
        Something has another type.
    """
    if not isinstance(said, dict):
        raise ValueError("what is said of the program is not an object")
    program = {name: said[name] for name in _PROGRAM if said.get(name) is not None}
    for name, value in program.items():
        if not _PROGRAM[name](value):
            raise ValueError(f"the program's {name} is {str(value)[:60]!r}")
    return program


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < MOST


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < MOST  # which NaN is not


def _are_texts(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(map(_is_text, value))


def _are_counts(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_is_count, value))


def _is_stamp(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(map(_is_count, value))


_ARE: dict[str, Callable[[Any], bool]] = {
    "str": _is_text, "int": _is_count, "float": _is_number, "tuple[int, ...]": _are_counts,
    "tuple[str, ...]": _are_texts,
}  # fmt: skip
_WORDS = {
    "str": "text", "int": "a count", "float": "a number", "tuple[int, ...]": "a list of counts",
    "tuple[str, ...]": "a list of texts",
}  # fmt: skip
_PROGRAM: dict[str, Callable[[Any], bool]] = {
    "arguments": lambda value: isinstance(value, list) and _are_texts(value),
    "directory": _is_text,
    "seconds": lambda value: _is_number(value) and value >= 0,
    "exit_status": lambda value: isinstance(value, int) and abs(value) < MOST,
    "begun_ns": lambda value: isinstance(value, int) and abs(value) < MOST,
    "files": lambda value: isinstance(value, dict) and all(map(_is_stamp, value.values())),
    "machine": _is_text,
}
