"""Progress of a long command: a bar with the time left in a terminal, or a line every 15 seconds in a log."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from hyperslab.cli.output import line
from hyperslab.errors import printable
from hyperslab.progress import progress_text

LOG_EVERY_SECONDS = 15.0


@contextmanager
def live(console: Console, unit: str = "trials") -> Iterator[Callable[[str, int, int], None]]:
    """Give a function (what, done, expected) that shows progress, counted in `unit`, until the context ends.

    Nobody knows how much there is if 0 is expected.
    """
    if not console.is_terminal:
        yield _log(console, unit)
        return
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn(unit),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=None)

        def show(what: str, done: int, expected: int) -> None:
            bar.update(task, description=printable(what), completed=done, total=expected or None)

        yield show


def after(seconds: float, show: Callable[[str, int, int], None]) -> Callable[[str, int, int], None]:
    """Show progress only once the work has taken so long."""
    started = time.monotonic()

    def later(what: str, done: int, expected: int) -> None:
        if time.monotonic() - started >= seconds:
            show(what, done, expected)

    return later


def _log(console: Console, unit: str) -> Callable[[str, int, int], None]:
    started = said = time.monotonic()

    def show(what: str, done: int, expected: int) -> None:
        nonlocal said
        now = time.monotonic()
        if now - said >= LOG_EVERY_SECONDS:
            said = now
            console.print(line(progress_text(what, done, expected, unit, now - started)), soft_wrap=True)

    return show
