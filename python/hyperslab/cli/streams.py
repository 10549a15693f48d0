"""Standard streams that are closed (`>&-`): a file that is opened later must not take their numbers."""

from __future__ import annotations

import os
import sys


def open_closed_streams() -> None:
    """Open the null device for each closed standard stream.

    Nothing can be written to standard output then, as before, so that whoever wants output learns of it. Messages to
    standard error are lost: the exit status says what happened.
    """
    modes = {"stdin": os.O_WRONLY, "stdout": os.O_RDONLY, "stderr": os.O_WRONLY}
    for number, (name, mode) in enumerate(modes.items()):
        if getattr(sys, name) is not None or _is_open(number):
            continue
        opened = os.open(os.devnull, mode)
        if opened != number:
            os.dup2(opened, number)
            os.close(opened)
        if number:
            setattr(sys, name, os.fdopen(number, "w", encoding="utf-8", closefd=False))


def _is_open(number: int) -> bool:
    try:
        os.fstat(number)
    except OSError:
        return False
    return True
