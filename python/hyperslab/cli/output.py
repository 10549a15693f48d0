"""Where commands print: as wide as the terminal, and readable where there is none."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console

WIDTH_WITHOUT_TERMINAL = 132


def console(stderr: bool = False) -> Console:
    """A console; logs and pipes get a fixed width instead of rich's eighty columns."""
    made = Console(stderr=stderr)
    return made if made.is_terminal else Console(stderr=stderr, width=WIDTH_WITHOUT_TERMINAL)


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
