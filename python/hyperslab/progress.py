"""`Progress`: the callback that long-running work reports to, and the words and the display that show it.

A command shows it in the terminal (`cli.progress`). In a notebook, functions that are `watched` show it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from html import escape
from inspect import signature
from typing import Any, ParamSpec, TypeAlias, TypeVar

from hyperslab.errors import printable

# Called with the name of the present item, the number of parts that are done, and the (largest possible) number of all.
Progress: TypeAlias = Callable[[str, int, int], None]
P = ParamSpec("P")
T = TypeVar("T")

SHOWN_AFTER_SECONDS, DRAWN_EVERY_SECONDS = 2.0, 0.5


def progress_text(what: str, done: int, expected: int, unit: str, seconds: float) -> str:
    """How far the work has come after these seconds, and how long the rest takes, if anything is expected."""
    if not expected:
        return f"{done} {unit}: {printable(what)}" if done else printable(what)
    left = f", about {seconds / done * (expected - done):.0f} s left" if done else ""
    return f"{done} of at most {expected} {unit}{left}: {printable(what)}"


def watched(unit: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Let a function with a parameter `progress` show it in notebooks, if its caller gives none.

    Parameters
    ----------
    unit : str
        What is counted.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        parameters = signature(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            display = _notebook()
            if display is None or parameters.bind(*args, **kwargs).arguments.get("progress") is not None:
                return function(*args, **kwargs)
            with _shown(display, unit) as progress:
                kwargs["progress"] = progress
                return function(*args, **kwargs)

        return call

    return decorate


def _notebook() -> Any:
    """IPython's `display` if a notebook's kernel runs this program; otherwise None."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return None if ipython is None or getattr(shell, "kernel", None) is None else ipython.display.display


@contextmanager
def _shown(display: Any, unit: str) -> Iterator[Progress]:
    """Draw progress in a notebook, from a thread: the work may report nothing for long. Short work shows nothing."""
    said: tuple[str, int, int] = ("starting", 0, 0)
    started, has_ended = time.monotonic(), threading.Event()

    def draw() -> None:
        handle, wait = None, SHOWN_AFTER_SECONDS
        while not has_ended.wait(wait):
            drawn = _bundle(*said, unit, time.monotonic() - started)
            if handle is None:
                handle, wait = display(drawn, raw=True, display_id=True), DRAWN_EVERY_SECONDS
            else:
                handle.update(drawn, raw=True)
        if handle is not None:
            handle.update({"text/plain": "", "text/html": ""}, raw=True)

    def show(what: str, done: int, expected: int) -> None:
        nonlocal said
        said = what, done, expected

    thread = threading.Thread(target=draw, name="hyperslab-progress", daemon=True)
    thread.start()
    try:
        yield show
    finally:
        has_ended.set()
        thread.join()


def _bundle(what: str, done: int, expected: int, unit: str, seconds: float) -> dict[str, str]:
    text = f"{progress_text(what, done, expected, unit, seconds)} ({seconds:.0f} s)"
    share = f' value="{done}" max="{expected}"' if expected else ""
    return {"text/plain": text, "text/html": f"<progress{share}></progress> {escape(text)}"}
