"""Recognize files that hyperslab reads by their first bytes."""

from __future__ import annotations

import os
from typing import Any

from hyperslab.archive.tree.locating import ZARR_METADATA

# HDF5, NetCDF-3 in its three variants, FITS, HDF4, and our own references.
SIGNATURES = (
    b"\x89HDF\r\n\x1a\n", b"CDF\x01", b"CDF\x02", b"CDF\x05", b"SIMPLE  ", b"\x0e\x03\x13\x01", b"\x89HSR\r\n\x1a\n",
)  # fmt: skip
MOST_NBYTES = max(map(len, SIGNATURES))


def begins_like_a_file(source: Any) -> bool:
    """Whether `source` is a file that hyperslab reads, judged by its first bytes.

    Parameters
    ----------
    source : str, PathLike, bytes-like, or file object
        A local path, the bytes of a file, or an open file, whose position stays the same. A folder counts if it
        contains Zarr metadata. Anything else gives False.
    """
    if isinstance(source, bytes | bytearray | memoryview):
        return bytes(source[:MOST_NBYTES]).startswith(SIGNATURES)
    if isinstance(source, str | os.PathLike):
        return _is_ours(os.fspath(source))
    if callable(getattr(source, "read", None)) and callable(getattr(source, "seek", None)):
        before = source.tell()
        source.seek(0)
        head = source.read(MOST_NBYTES)
        source.seek(before)
        return isinstance(head, bytes) and head.startswith(SIGNATURES)
    return False


def _is_ours(path: Any) -> bool:
    try:
        if os.path.isdir(path):  # noqa: PTH112
            return any(os.path.exists(os.path.join(path, name)) for name in ZARR_METADATA)  # noqa: PTH110, PTH118
        if not os.path.isfile(path):  # noqa: PTH113 -- opening a pipe would wait for a writer
            return False
        with open(path, "rb") as file:
            return file.read(MOST_NBYTES).startswith(SIGNATURES)
    except (OSError, ValueError):
        return False
