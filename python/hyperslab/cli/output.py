"""Where commands print: as wide as the terminal, and readable where there is none."""

from __future__ import annotations

from rich.console import Console

WIDTH_WITHOUT_TERMINAL = 132


def console(stderr: bool = False) -> Console:
    """A console; logs and pipes get a fixed width instead of rich's eighty columns."""
    made = Console(stderr=stderr)
    return made if made.is_terminal else Console(stderr=stderr, width=WIDTH_WITHOUT_TERMINAL)
