"""`embed` writes an index to the end of an HDF5 file, where every libhdf5 passes over it.

A reader afar then opens the file with two requests, wherever its metadata are. Nothing that the file holds is touched:
the index stands behind the end that the superblock tells, so a kill leaves the file whole, with an index or without.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from hyperslab._core import embedded_index
from hyperslab.archive.opening import open as open_archive
from hyperslab.errors import NoSpace, Refused, UsageError
from hyperslab.journal.locks import without_writers
from hyperslab.regular_files import open_regular
from hyperslab.replacing import FULL, followed
from hyperslab.versions.layout.names import DATA

SIGNATURE = b"\x89HSE\r\n\x1a\n"


@dataclass(frozen=True)
class EmbeddedIndex:
    """What was written: the file, the bytes of its index, and whether the same index was there already."""

    path: str
    nbytes: int
    was_there: bool


def embed(source: str | os.PathLike[str]) -> EmbeddedIndex:
    """Write an index to the end of an HDF5 or NetCDF4 file on this machine; an older one is replaced.

    Whatever libhdf5 writes to the file later removes the index, so embed it again afterwards.

    Parameters
    ----------
    source : str | os.PathLike[str]
        The file.

    Returns
    -------
    EmbeddedIndex
        The file and the bytes of its index.

    Raises
    ------
    Refused
        The file holds versions, has other bytes behind its end, or too many metadata.
    UsageError
        The file cannot be written, or another program has it open.
    NoSpace
        The disk is full; the file is as it was, without an index.
    """
    path = followed(Path(os.fspath(source)))
    open_regular(path).close()  # refuses pipes and devices by name
    with open_archive(str(path)) as group:
        if group.format != "hdf5":
            raise Refused(f"{path} is no HDF5 or NetCDF4 file: save its references with -o NAME.hs instead")
        if DATA in group or f"/{DATA}" in group:
            raise Refused(
                f"{path} holds versions, and each commit would remove its index: save references with -o NAME.hs"
            )
    with without_writers(path, writes=True) as descriptor:
        made = embedded_index(str(path))
        if made is None:
            raise Refused(f"{path} has more than 64 MiB of metadata, or no end: save its references with -o NAME.hs")
        end, index = made
        behind = os.pread(descriptor, len(index) + 1, end)
        if behind == index:
            return EmbeddedIndex(str(path), len(index), was_there=True)
        if not (behind.startswith(SIGNATURE) or SIGNATURE.startswith(behind)):
            raise Refused(f"{path} has bytes behind its end that are not ours: save its references with -o NAME.hs")
        _append(path, descriptor, end, index)
    return EmbeddedIndex(str(path), len(index), was_there=False)


def _append(path: Path, descriptor: int, end: int, index: bytes) -> None:
    """Put the index behind the end of the file. Its last bytes make it one, so they come last."""
    try:
        os.ftruncate(descriptor, end)
        done = 0
        while done < len(index):
            done += os.pwrite(descriptor, index[done:], end + done)
        os.fsync(descriptor)
    except OSError as error:
        os.ftruncate(descriptor, end)
        if error.errno in FULL:
            raise NoSpace(f"{path}: {error.strerror}: the file is as it was, without an index; make room") from error
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error
