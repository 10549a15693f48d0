"""How every command ends: an error prints one line, and the exit status says what kind of error it was."""

from __future__ import annotations

import codecs
import errno
import io
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NoReturn

from hyperslab.cli.signals import STOPPED, as_signalled, end_by_signals
from hyperslab.errors import HyperslabError, InternalError, NoSpace, UsageError, printable
from hyperslab.needed import EXTRA_OF, missing
from hyperslab.panics import is_panic

# What a terminal that only has ASCII shows of our own signs, one for one so that tables stay straight.
ASCII = {ord(sign): like for sign, like in zip("├└│─–—×…µ≈·→↓", "|`|---x~u~.>v", strict=True)}
_LIKENESS = "hyperslab-likeness"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def _like(error: UnicodeError) -> tuple[str, int]:
    """The nearest ASCII signs for what a terminal does not have; "?" for letters of other alphabets."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = error.object[error.start : error.end].translate(ASCII)
    return text.encode("ascii", "replace").decode(), error.end


codecs.register_error(_LIKENESS, _like)


def guarded(work: Callable[[], object]) -> None:
    """Do the work of a command. The exit status is 2 for a wrong request, 1 for a failure."""
    try:
        end_by_signals()
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors=_LIKENESS)
        with as_signalled():
            _flushed(work)
    except HyperslabError as error:
        _end(error)
    except KeyboardInterrupt:
        _say("interrupted")
        sys.exit(130)
    except SystemExit as stopped:
        if stopped.code in STOPPED:
            _say(STOPPED[stopped.code])
        raise
    except BaseException as error:
        _end_by_others(error)


def _end_by_others(error: BaseException) -> None:
    """End after an error that is not ours. Raises it again if it is a fault, which needs its traceback."""
    if isinstance(error, OSError):
        _end_by_system(error)
    if isinstance(error, ImportError) and (library := (error.name or "").partition(".")[0]) in EXTRA_OF:
        _end(missing(library))
    if is_panic(error):
        _end(InternalError(f"a fault in a library: {error}; please report it"))
    raise error


def _end(error: HyperslabError) -> NoReturn:
    _say(f"{error} [{error.code}]")
    sys.exit(2 if isinstance(error, UsageError) else 1)


def _end_by_system(error: OSError) -> NoReturn:
    """End after an error of the operating system, as of `run/log.csv: Permission denied`."""
    if isinstance(error, BrokenPipeError):
        _discard_output()
        sys.exit(141)
    if error.filename is None and error.errno == errno.EBADF:
        _discard_output()
        _say("standard output is closed, so nothing can be written to it")
        sys.exit(1)
    said = error.strerror or str(error)
    if is_full(error):
        _say(f"nothing more can be written: {said} [{NoSpace.code}]")
        os._exit(1)  # Python would try to write the rest again
    _say(said if error.filename is None else f"{error.filename}: {said}")
    sys.exit(1)


def _discard_output() -> None:
    """Let Python write the rest at its end: otherwise it would complain."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _flushed(work: Callable[[], object]) -> None:
    """Do the work and write its output, so that errors of the output come here and not at Python's end."""
    try:
        work()
    finally:
        sys.stdout.flush()


def is_full(error: OSError) -> bool:
    """Whether an error says that standard output is full: errors of a file that has a name say that name."""
    return error.filename is None and error.errno in FULL


def _say(text: str) -> None:
    with suppress(OSError):  # the exit status says it too
        print(f"hyperslab: {printable(text)}", file=sys.stderr)
