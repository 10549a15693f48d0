"""The command line. Each command is one file; `commands.py` lists them."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # `typing` takes a while to import
if TYPE_CHECKING:
    from typing import Any

# What `info` takes without typer, whose import takes longer than all that `info` does.
INFO_FLAGS = {"--json": "as_json", "-v": "every", "--verbose": "every", "--advise": "advise"}

OBJECTS_OF_A_LOOK = 50_000
"""So many new objects, and Python looks for garbage among them."""


def main() -> None:
    """Run the command line. An error prints one line; the exit status is 2 for a wrong request, 1 for a failure."""
    line = os.environ.get("_HYPERSLAB_COMPLETE")
    if line is not None:
        from hyperslab.cli.completing import answer

        sys.stdout.write(answer(line))
        return
    from hyperslab.cli.guarded import guarded

    guarded(lambda: _run(sys.argv[1:]))


def _run(words: list[str]) -> None:
    if _is_plain_info(words):
        from hyperslab.cli.contents import show

        flags = {INFO_FLAGS[word]: True for word in words[1:] if word in INFO_FLAGS}
        show([word for word in words[1:] if word not in INFO_FLAGS], **flags)  # type: ignore[arg-type]
        return
    import gc

    # Nearly all that a command makes, its imports first of all, lives until it ends: Python would look for garbage in
    # it dozens of times, which takes a tenth of a second of the commands that answer from a long trace.
    gc.set_threshold(OBJECTS_OF_A_LOOK)
    from hyperslab.cli.program import run

    run()


def _is_plain_info(words: list[str]) -> bool:
    """Whether `info` is asked for with files and flags only."""
    files = [word for word in words[1:] if word not in INFO_FLAGS]
    return words[:1] == ["info"] and bool(files) and not any(word.startswith("-") for word in files)


def __getattr__(name: str) -> Any:
    """`app`, which needs typer, on first use."""
    if name != "app":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from hyperslab.cli.program import app

    return app
