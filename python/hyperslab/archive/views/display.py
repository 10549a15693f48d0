"""What people read of an archive: sizes, counts and elements in words, and a tree for a group."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

from hyperslab.errors import printable
from hyperslab.quantities import nbytes_text

MOST_LINES = 60


class Branch(NamedTuple):
    """What is shown of one name in a group; what draws it knows neither groups nor arrays."""

    name: str
    said: str  # follows the name
    attributes: Callable[[], Mapping[str, Any]] | None = None
    below: Callable[[], Iterator[Branch]] | None = None


def tree(head: str, branches: Iterator[Branch]) -> str:
    """A line and a tree below it, of at most `MOST_LINES` lines."""
    lines = [head]
    _draw(branches, "", lines)
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], "…"]
    return "\n".join(lines)


def _draw(branches: Iterator[Branch], margin: str, lines: list[str]) -> None:
    later = next(branches, None)
    while later is not None and len(lines) <= MOST_LINES:
        branch, later = later, next(branches, None)
        start, inner = ("└── ", "    ") if later is None else ("├── ", "│   ")
        name = printable(branch.name) or "''"
        lines.append(f"{margin}{start}{name}{printable(branch.said)}")
        if branch.below is not None:
            _draw(branch.below(), margin + inner, lines)


def element(dtype: np.dtype[Any]) -> str:
    """The dtype in a short form."""
    metadata: Mapping[str, Any] = dtype.metadata or {}
    vlen = metadata.get("vlen")
    if vlen is not None:
        return "str" if vlen is str else f"vlen {vlen}"
    return f"compound of {len(dtype.names)} fields" if dtype.names else str(dtype)


def shape(lengths: tuple[int, ...], dims: tuple[str, ...] | None) -> str:
    """The shape, with the names of the dimensions if there are any."""
    if not dims or len(dims) != len(lengths):
        return str(lengths)
    return f"({', '.join(f'{printable(name)}: {length}' for name, length in zip(dims, lengths, strict=True))})"


def size(whole: int | None, stored: int | None, *, is_encoded: bool) -> str:
    """The size in memory if it is known, and the stored size if it differs."""
    if whole is None:
        return "" if stored is None else f"{nbytes_text(stored)} stored"
    if stored is None or stored == whole or not is_encoded:
        return nbytes_text(whole)
    return f"{nbytes_text(whole)} stored in {nbytes_text(stored)}"


def counted(count: int, one: str, more: str) -> str:
    """A count with its noun, such as `1 access` or `21 accesses`."""
    return f"{count:,} {one if count == 1 else more}"
