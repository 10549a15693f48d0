"""Where commands print: as wide as the terminal, and readable where there is none."""

from __future__ import annotations

import math
from typing import Any, Literal

from rich.console import Console
from rich.text import Text

from hyperslab.errors import printable

WIDTH_WITHOUT_TERMINAL = 132


def console(stderr: bool = False) -> Console:
    """A console; logs and pipes get a fixed width instead of rich's eighty columns."""
    made = Console(stderr=stderr, markup=False, emoji=False)  # what looks like "[red]" is somebody's name
    if not made.is_terminal:
        made.width = WIDTH_WITHOUT_TERMINAL
    return made


def line(text: str, overflow: Literal["fold"] | None = None) -> Text:
    """What a command says in one line or one cell, with whatever names in files hold escaped."""
    return Text(printable(text), overflow=overflow)


def lines(text: str) -> str:
    """Lines of values, with whatever else steers a terminal escaped."""
    return "\n".join(map(printable, text.split("\n")))


def plain(value: Any) -> Any:
    """A value as JSON can say it: without NaN and infinities (their names), bytes, complex numbers (pairs)."""
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
