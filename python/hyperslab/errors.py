"""Every error that hyperslab raises on purpose.

Each class has a stable `code` for programs, and derives from the built-in exception that fits best. The message says
what happened, where, and what you can do. docs/errors.md lists the codes.

HyperslabError                 hyperslab-error       any of these
├── UsageError                 usage-error           ValueError: the request is wrong; change it (exit status 2)
│   ├── StudyError             study-error           a study file does not describe a valid experiment
│   ├── NotCombinable          not-combinable        files cannot form one archive; the message says how two differ
│   ├── TooLargeForMemory      too-large-for-memory  MemoryError: a selection has more bytes than there is memory
│   ├── NoSuchFile             no-such-file          FileNotFoundError: there is no local file at a path
│   ├── NoSuchGroup            no-such-group         KeyError, OSError: a file has no such group
│   ├── Refused                refused               a format cannot do what you ask; the message has the reason
│   ├── MergeConflict          merge-conflict        two versions changed the same thing in different ways
│   ├── NotAStoreProfile       not-a-store-profile   a file is not a store profile, or has another version
│   ├── NotATrace              not-a-trace           a file is not a trace, or has another version
│   ├── Untrained              untrained             a store profile does not cover a library, operation or codec
│   └── MissingLibrary         missing-library       ImportError: a library is not installed; the message says how to
├── RunError                   run-error             RuntimeError: the request was right, but it failed (exit status 1)
│   ├── TrialFailed            trial-failed          one trial failed; the run continues without it
│   ├── NoSpace                no-space              OSError: the disk is full; finished work is kept
│   ├── TooFewCells            too-few-cells         a model has more coefficients than its data can determine
│   └── InternalError          internal-error        a fault in hyperslab or in a library that it uses; report it
└── ReadError                  read-error            OSError: data of an archive could not be read
    ├── DamagedFile            damaged-file          the file contradicts itself or its format; get a good copy
    ├── StaleJournal           stale-journal         the journal beside a file does not match it; move one of them
    ├── MissingJournal         missing-journal       a commit was interrupted, and its journal is gone; put it back
    ├── FileChanged            file-changed          the file changed since it was opened or indexed; open it again
    │   └── FileReplaced       file-replaced         another file took the name of one that is open for writing
    ├── NotAllowed             not-allowed           PermissionError: a file leads to a location that you did not allow
    ├── RemoteError            remote-error          a server did not deliver the data, even after retries
    │   └── NoSuchRemoteFile   no-such-remote-file   FileNotFoundError: there is nothing at a URL
    └── Unsupported            unsupported           the file is good, but uses a feature that hyperslab cannot read
"""

from __future__ import annotations

import errno
import os
from typing import Any, ClassVar, Self


def printable(text: str) -> str:
    r"""Make text safe to print: escape line breaks, control characters and bidirectional marks, as `repr` does.

    Names and values come from the writer of a file, and a terminal obeys sequences that begin with `\x1b`.
    """
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


class HyperslabError(Exception):
    """Any error that hyperslab raises on purpose: its message says what happened, where, and what you can do."""

    code: ClassVar[str] = "hyperslab-error"

    def __str__(self) -> str:
        return printable(super().__str__())  # names from files are in messages; `args` holds the unescaped text


class UsageError(HyperslabError, ValueError):
    """The request is wrong: change it."""

    code = "usage-error"


class StudyError(UsageError):
    """A study file does not describe a valid experiment."""

    code = "study-error"


class NotCombinable(UsageError):
    """Files cannot be combined safely; the message names two of them, says how they differ, and what you can do."""

    code = "not-combinable"


class TooLargeForMemory(UsageError, MemoryError):
    """A selection does not fit in memory; the message says how many bytes it has. Select less."""

    code = "too-large-for-memory"


class NoSuchFile(UsageError, FileNotFoundError):
    """There is no local file at a path, or none that a pattern matches; check it."""

    code = "no-such-file"

    def __new__(cls, *message: object) -> Self:
        """Create the error with `OSError`'s constructor: `ValueError`'s comes first, and refuses this class."""
        return OSError.__new__(cls, *message)

    @classmethod
    def at(cls, path: str) -> Self:
        """The error for a path, as Python words it."""
        return cls(errno.ENOENT, os.strerror(errno.ENOENT), path)


class NoSuchGroup(UsageError, OSError, KeyError):
    """A file has no group of this name; the message has those that there are."""

    code = "no-such-group"

    def __new__(cls, *message: object) -> Self:
        """Create the error with `OSError`'s constructor: `ValueError`'s comes first, and refuses this class."""
        return OSError.__new__(cls, *message)


class Refused(UsageError):
    """A format cannot do what you ask; the message has the reason."""

    code = "refused"


class MergeConflict(UsageError):
    """Two versions changed the same thing in different ways; `conflicts` lists what. Say which of them counts."""

    code = "merge-conflict"
    conflicts: tuple[Any, ...] = ()


class NotAStoreProfile(UsageError):
    """A file is not a store profile, is truncated, or has another version; calibrate again."""

    code = "not-a-store-profile"


class NotATrace(UsageError):
    """A file is not a trace of a program, is damaged, or has another version; record the program again."""

    code = "not-a-trace"


class Untrained(UsageError):
    """A store profile does not cover a library, an operation or a codec."""

    code = "untrained"


class MissingLibrary(UsageError, ImportError):
    """A library is not installed; the message says how to install it."""

    code = "missing-library"


class RunError(HyperslabError, RuntimeError):
    """The request was right, but running it failed."""

    code = "run-error"


class TrialFailed(RunError):
    """One trial failed; the run continues without it."""

    code = "trial-failed"


class NoSpace(RunError, OSError):
    """The disk is full; files and trials that were finished before are kept."""

    code = "no-space"

    def __new__(cls, *message: object) -> Self:
        """Create the error with `OSError`'s constructor: `RuntimeError`'s comes first, and refuses this class."""
        return OSError.__new__(cls, *message)


class TooFewCells(RunError):
    """A model has more coefficients than its training data can determine; measure more cells."""

    code = "too-few-cells"


class InternalError(RunError):
    """A fault in hyperslab, or in a library that it uses; report it."""

    code = "internal-error"


class ReadError(HyperslabError, OSError):
    """Data of an archive could not be read."""

    code = "read-error"


class DamagedFile(ReadError):
    """The file contradicts itself or its format; get a good copy."""

    code = "damaged-file"


class StaleJournal(ReadError):
    """The journal beside a file does not match the file's present content. Nothing was changed; move one of them."""

    code = "stale-journal"


class MissingJournal(ReadError):
    """A commit was interrupted, and its journal is no longer beside the file. Nothing was changed; put it back."""

    code = "missing-journal"


class FileChanged(ReadError):
    """The file has changed since it was opened or indexed; open or index it again."""

    code = "file-changed"


class FileReplaced(FileChanged):
    """A file that is open for writing has lost its name to another file. Nothing was written; open the path again."""

    code = "file-replaced"


class NotAllowed(ReadError, PermissionError):
    """A file leads to a location that you did not allow; the message says what to pass as `allowed=`."""

    code = "not-allowed"


class RemoteError(ReadError):
    """A server did not deliver the data, even after retries; the message has the status and the remedy."""

    code = "remote-error"


class NoSuchRemoteFile(RemoteError, FileNotFoundError):
    """There is nothing at a URL."""

    code = "no-such-remote-file"


class Unsupported(ReadError):
    """The file is good, but uses a feature that hyperslab cannot read; its other arrays still open."""

    code = "unsupported"
