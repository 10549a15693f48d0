"""The consoles that commands print to: as wide as the terminal, and readable in logs and pipes."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any, Literal

from hyperslab.errors import printable

if TYPE_CHECKING:
    from rich.console import Console
    from rich.text import Text

WIDTH_WITHOUT_TERMINAL = 132


class NotFinite(str):
    """The name of a number that JSON cannot express: `nan`, `inf` or `-inf`."""


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


def _json_in(text: bytes) -> tuple[Any] | None:
    """What a nested attribute of Zarr, which comes as its JSON, contains. None for other opaque bytes."""
    if text[:1] not in (b"{", b"[") and text != b"null":
        return None
    try:
        return (json.loads(text),)
    except ValueError:
        return None


def _near(value: Any) -> Any:
    """A long double as a double, or as text if no double is near it."""
    from hyperslab.archive.tree.attributes import as_python

    try:
        return as_python(value)
    except OverflowError:
        return str(value)


def plain(value: Any) -> Any:
    """A value that JSON can express: NaN and infinities become their names, bytes text, complex numbers pairs.

    A float32 keeps its own shortest digits: 0.1, not the 0.10000000149011612 that a float64 makes of it.
    """
    if hasattr(value, "tolist") and value.dtype.kind == "f" and value.dtype.itemsize < 8:
        return plain(value.astype(str).astype(float))
    if hasattr(value, "tolist") and value.dtype.kind == "M":
        return plain(value.astype(str))  # ISO 8601
    if type(value).__name__ == "void" and (nested := _json_in(value.tobytes())) is not None:
        return nested[0]
    if hasattr(value, "tolist"):
        return plain(_near(value[()]) if value.ndim == 0 and value.dtype.char in "gG" else value.tolist())
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, float) and not math.isfinite(value):
        return NotFinite(value)
    if isinstance(value, complex):
        return [plain(value.real), plain(value.imag)]
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return value if isinstance(value, str | int | float | bool) or value is None else str(value)
