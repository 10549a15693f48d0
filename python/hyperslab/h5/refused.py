"""The errors of methods that write: the classes that h5py raises for a read-only file, with what to do instead."""

from __future__ import annotations

from typing import NoReturn

INSTEAD = "hyperslab.h5 only reads: write with h5py or hyperslab.VersionedFile"


def refuse(what: str, kind: type[Exception] = ValueError) -> NoReturn:
    """Raise the error that h5py raises for a file that is open for reading.

    Parameters
    ----------
    what : str
        The operation, for the message.
    kind : type[Exception]
        The class of h5py's error.
    """
    raise kind(f"Unable to {what} (no write intent on file): {INSTEAD}")
