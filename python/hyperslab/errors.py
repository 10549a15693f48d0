"""Every error that hyperslab raises on purpose.

HyperslabError                 a message for a person: what happened, where, what to do
├── UsageError                 the request is wrong; change it (exit status 2)
│   ├── StudyError             a study file that does not say a valid experiment
│   ├── NotCombinable          files that cannot be one archive; the message names two and what differs
│   ├── TooLargeForMemory      a selection of more bytes than there is memory for; a MemoryError too
│   ├── Refused                a format cannot do what is asked, with the reason
│   ├── NotAStoreProfile       a file that is no store profile, or one of another version
│   ├── Untrained              a store profile that says nothing of a library, an operation or a codec
│   └── MissingLibrary         a format's library is not installed, with how to install it
├── RunError                   the request was right but running it failed (exit status 1)
│   ├── TrialFailed            one trial failed; the run goes on without it
│   ├── NoSpace                the disk filled up; what was finished is kept
│   └── TooFewCells            a model has more coefficients than its training can tell apart
└── ReadError                  bytes of an archive could not be read
    ├── DamagedFile            the file contradicts itself or its format; get a good copy
    ├── StaleJournal           what lies beside a file as its journal is not of it as it is now; move one of them
    ├── FileChanged            the file is not the one that was opened any more; open it again
    ├── NotAllowed             a document leads to where it may not; the message says what to pass if you trust it
    ├── RemoteError            a server did not give what was asked for, however often it was asked
    │   └── NoSuchRemoteFile   there is nothing at a URL; a FileNotFoundError too
    └── Unsupported            the file is good, but uses something that we cannot read
"""


def printable(text: str) -> str:
    r"""Text as a terminal may show it: on one line, with what would steer the terminal or turn the text round escaped.

    As `repr` does: names and values in files are whatever their writers chose, and `\x1b` begins what terminals obey.
    """
    return text if text.isprintable() else "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)


class HyperslabError(Exception):
    """A message for a person: what happened, where, and what to do."""

    def __str__(self) -> str:
        return printable(super().__str__())  # it names what is in files; `args` has it as it is


class UsageError(HyperslabError):
    """The request is wrong; change it."""


class StudyError(UsageError):
    """A study file that does not say a valid experiment."""


class NotCombinable(UsageError):
    """Files that cannot be combined safely; the message names two of them, what differs, and what can be done."""


class TooLargeForMemory(UsageError, MemoryError):
    """A selection that no memory holds; the message says how many bytes it takes. Select less."""


class Refused(UsageError):
    """A format cannot do what is asked, with the reason."""


class NotAStoreProfile(UsageError):
    """A file that is no store profile, is cut off, or is of another version; calibrate again."""


class Untrained(UsageError):
    """A store profile that says nothing of a library, an operation or a codec."""


class MissingLibrary(UsageError):
    """A format's library is not installed; the message says how to install it."""


class RunError(HyperslabError):
    """The request was right, but running it failed."""


class TrialFailed(RunError):
    """One trial failed; the run goes on without it."""


class NoSpace(RunError):
    """The disk filled up; what was finished before, files and trials, is kept."""


class TooFewCells(RunError):
    """A model has more coefficients than its training can tell apart; measure more cells."""


class ReadError(HyperslabError):
    """Bytes of an archive could not be read."""


class DamagedFile(ReadError):
    """The file contradicts itself or its format; get a good copy."""


class StaleJournal(ReadError):
    """What lies beside a file as its journal is not of it as it is now; nothing was changed; move one of them."""


class MissingJournal(ReadError):
    """A commit was cut short, and its journal is not beside the file any more; nothing was changed; put it back."""


class FileChanged(ReadError):
    """The file is not the one that was opened any more; open it again."""


class NotAllowed(ReadError):
    """A file leads to a place that is not allowed; the message says what to pass as `allowed=` (docs/security.md)."""


class RemoteError(ReadError):
    """A server did not give what was asked for, however often it was asked; the message has status and remedy."""


class NoSuchRemoteFile(RemoteError, FileNotFoundError):
    """There is nothing at a URL."""


class Unsupported(ReadError):
    """The file is good, but uses something that we cannot read; other arrays of it still open."""
