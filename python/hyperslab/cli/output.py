"""The consoles that commands print to: as wide as the terminal, and readable in logs and pipes."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Literal

from hyperslab.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH_WITHOUT_TERMINAL = 132


def console(stderr: bool = False) -> Console:
    """A console; logs and pipes get a fixed width instead of rich's eighty columns."""
    from rich.console import Console

    made = Console(stderr=stderr, markup=False, emoji=False)  # a name in a file may look like "[red]"
    if not made.is_terminal:
        made.width = WIDTH_WITHOUT_TERMINAL
    return made


def line(text: str, overflow: Literal["fold"] | None = None) -> Text:
    """Text for one line or table cell, with control characters from names in files escaped."""
    from rich.text import Text

    return Text(printable(text), overflow=overflow)


def lines(text: str) -> str:
    """Several lines of text, with control characters other than line ends escaped."""
    return "\n".join(map(printable, text.split("\n")))


def plain(value: Any) -> Any:
    """A value that JSON can express: NaN and infinities become their names, bytes text, complex numbers pairs.

    A float32 keeps its own shortest digits: 0.1, not the 0.10000000149011612 that a float64 makes of it.
    """
    if hasattr(value, "tolist") and value.dtype.kind == "f" and value.dtype.itemsize < 8:
        return plain(value.astype(str).astype(float))
    if hasattr(value, "tolist") and value.dtype.kind == "M":
        return plain(value.astype(str))  # ISO 8601
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
