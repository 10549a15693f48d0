"""What writing raises: the classes of h5py's errors for a file that is open for reading, with what to do instead."""

from __future__ import annotations

from typing import NoReturn

INSTEAD = "hyperslab.h5 reads only: write with h5py, or with hyperslab.VersionedFile"


def refuse(what: str, kind: type[Exception] = ValueError) -> NoReturn:
    """Raise what h5py raises for a file that is open for reading."""
    raise kind(f"Unable to {what} (no write intent on file): {INSTEAD}")
