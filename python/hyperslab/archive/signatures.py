"""Whether something looks like a file that we read, by its first bytes."""

from __future__ import annotations

import os
from typing import Any

from hyperslab.archive.open_file import ZARR_METADATA

# Of HDF5, the classic formats of NetCDF, FITS, HDF4, and our own references.
SIGNATURES = (
    b"\x89HDF\r\n\x1a\n", b"CDF\x01", b"CDF\x02", b"CDF\x05", b"SIMPLE  ", b"\x0e\x03\x13\x01", b"\x89HSR\r\n\x1a\n",
)  # fmt: skip
MOST_NBYTES = max(map(len, SIGNATURES))


def begins_like_a_file(source: Any) -> bool:
    """Whether a path of this machine, bytes, or an open file begins as our files do; or is a folder of Zarr."""
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
        if not os.path.isfile(path):  # noqa: PTH113 -- a pipe would wait for its other end
            return False
        with open(path, "rb") as file:
            return file.read(MOST_NBYTES).startswith(SIGNATURES)
    except (OSError, ValueError):
        return False
