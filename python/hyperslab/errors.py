"""Every error that hyperslab raises on purpose.

HyperslabError                 a message for the user: what happened, where, and what to do
├── UsageError                 the request is wrong; change it (exit status 2)
│   ├── StudyError             a study file does not describe a valid experiment
│   ├── NotCombinable          files cannot form one archive; the message names two files and the difference
│   ├── TooLargeForMemory      a selection has more bytes than there is memory; also a MemoryError
│   ├── NoSuchGroup            a file has no such group; also an OSError and a KeyError
│   ├── Refused                a format cannot do what you ask; the message has the reason
│   ├── NotAStoreProfile       a file is not a store profile, or has another version
│   ├── Untrained              a store profile does not cover a library, an operation or a codec
│   └── MissingLibrary         a library is not installed; the message says how to install it
├── RunError                   the request was right, but running it failed (exit status 1)
│   ├── TrialFailed            one trial failed; the run continues without it
│   ├── NoSpace                the disk is full; finished work is kept
│   └── TooFewCells            a model has more coefficients than its training data can determine
└── ReadError                  data of an archive could not be read
    ├── DamagedFile            the file contradicts itself or its format; get a good copy
    ├── StaleJournal           the journal beside a file does not match the file's present content; move one of them
    ├── MissingJournal         a commit was interrupted, and its journal is gone; put it back
    ├── FileChanged            the file has changed since it was opened or indexed; open or index it again
    ├── NotAllowed             a document leads to a place that is not allowed; the message says how to allow it
    ├── RemoteError            a server did not deliver the data, even after retries
    │   └── NoSuchRemoteFile   there is nothing at a URL; also a FileNotFoundError
    └── Unsupported            the file is good, but uses a feature that hyperslab cannot read
"""


def printable(text: str) -> str:
    r"""Text that is safe to print: on one line, with control and bidirectional characters escaped as in `repr`.

    The writer of a file chooses its names and values, and a terminal obeys sequences that begin with `\x1b`.
    """
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


class HyperslabError(Exception):
    """A message for the user: what happened, where, and what to do."""

    def __str__(self) -> str:
        return printable(super().__str__())  # messages contain names from files; `args` holds the unescaped text


class UsageError(HyperslabError):
    """The request is wrong; change it."""


class StudyError(UsageError):
    """A study file does not describe a valid experiment."""


class NotCombinable(UsageError):
    """Files cannot be combined safely; the message names two of them, the difference, and what you can do."""


class TooLargeForMemory(UsageError, MemoryError):
    """A selection does not fit in memory; the message says how many bytes it has. Select less."""


class NoSuchGroup(UsageError, OSError, KeyError):
    """A file has no group of this name; the message has those that there are."""


class Refused(UsageError):
    """A format cannot do what you ask; the message has the reason."""


class NotAStoreProfile(UsageError):
    """A file is not a store profile, is truncated, or has another version; calibrate again."""


class Untrained(UsageError):
    """A store profile does not cover a library, an operation or a codec."""


class MissingLibrary(UsageError):
    """A library is not installed; the message says how to install it."""


class RunError(HyperslabError):
    """The request was right, but running it failed."""


class TrialFailed(RunError):
    """One trial failed; the run continues without it."""


class NoSpace(RunError):
    """The disk is full; files and trials that were finished before are kept."""


class TooFewCells(RunError):
    """A model has more coefficients than its training data can determine; measure more cells."""


class ReadError(HyperslabError):
    """Data of an archive could not be read."""


class DamagedFile(ReadError):
    """The file contradicts itself or its format; get a good copy."""


class StaleJournal(ReadError):
    """The journal beside a file does not match the file's present content. Nothing was changed; move one of them."""


class MissingJournal(ReadError):
    """A commit was interrupted, and its journal is no longer beside the file. Nothing was changed; put it back."""


class FileChanged(ReadError):
    """The file has changed since it was opened or indexed; open or index it again."""


class NotAllowed(ReadError):
    """A file leads to a place that is not allowed; the message says what to pass as `allowed=` (docs/security.md)."""


class RemoteError(ReadError):
    """A server did not deliver the data, even after retries; the message has the status and the remedy."""


class NoSuchRemoteFile(RemoteError, FileNotFoundError):
    """There is nothing at a URL."""


class Unsupported(ReadError):
    """The file is good, but uses a feature that hyperslab cannot read; its other arrays still open."""
