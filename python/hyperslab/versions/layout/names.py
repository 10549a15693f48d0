"""Where versioned-hdf5 keeps what (its DATA_VERSION 4), and how it writes times and hashes.

```text
/_version_data/versions          @current_version, @data_version
/_version_data/versions/V        one group a version: @prev_version, @committed, @timestamp
/_version_data/versions/V/PATH   virtual array: one mapping a stored chunk, into
/_version_data/PATH/raw_data     all chunks that any version of the array ever had, stacked along axis 0
/_version_data/PATH/hash_table   SHA-256 of each of them, and its rows in raw_data; @largest_index: how many count
```
"""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np

from hyperslab.errors import Unsupported, UsageError

Array: TypeAlias = np.ndarray[Any, Any]
Time: TypeAlias = "dt.datetime | np.datetime64"

DATA = "_version_data"
VERSIONS = "_version_data/versions"
FIRST_VERSION = "__first_version__"
DATA_VERSION = 4
DEFAULT_CHUNK_LENGTH = 4096
TIME_FORMAT = "%Y-%m-%d %H:%M:%S.%f%z"
TIME_LENGTH = len("2024-03-01 12:00:00.000000+0000")
HASH_TABLE_DTYPE = np.dtype([("hash", "u1", (32,)), ("shape", "<i8", (2,))])
HASH_TABLE_CHUNK_LENGTH = 512  # each commit writes the last chunk of the table anew, in another place
# Attributes that the layout wants: of every version, and of each of its arrays.
VERSION_BOOKKEEPING = ("prev_version", "committed", "timestamp")
ARRAY_BOOKKEEPING = ("raw_data", "chunks")


def bookkeeping(name: str, *, is_array: bool) -> tuple[str, ...]:
    """The attributes of a group or array, by its name in the file, that the layout wants: none outside of versions."""
    depth = len(name.removeprefix(f"/{VERSIONS}/").split("/")) if name.startswith(f"/{VERSIONS}/") else 0
    if is_array:
        return ARRAY_BOOKKEEPING if depth > 1 else ()
    return VERSION_BOOKKEEPING if depth == 1 else ()


def raw_path(array: str) -> str:
    """Where the chunks of an array are, by its path in a version."""
    return f"/{DATA}/{array}/raw_data"


def path_in_version(name: str) -> str:
    """The path of a version's array in that, by its name in the file."""
    return name.rsplit(f"/{VERSIONS}/", 1)[-1].split("/", 1)[1]


def stored_time(time: Time | None) -> str:
    """A time, or now, as it is stored.

    Raises
    ------
    ValueError
        The time is not in UTC.
    TypeError
        It is no time.
    """
    return as_datetime(dt.datetime.now(dt.UTC) if time is None else time).strftime(TIME_FORMAT)


def parsed_time(stored: str) -> dt.datetime:
    """A time as it is stored.

    Raises
    ------
    ValueError
        It is no time.
    """
    if len(stored) == TIME_LENGTH and stored[10] == " ":  # as all are: forty times as fast
        with suppress(ValueError):
            time = dt.datetime.fromisoformat(stored)
            if time.tzinfo is not None:
                return time
    return dt.datetime.strptime(stored, TIME_FORMAT)


def as_datetime(time: Time) -> dt.datetime:
    """A time with its zone, which is UTC."""
    if isinstance(time, np.datetime64):
        return time.astype("datetime64[us]").astype(dt.datetime).replace(tzinfo=dt.UTC)  # type: ignore[no-any-return]
    if not isinstance(time, dt.datetime):
        raise TypeError(f"{time!r} is no time: give a datetime.datetime in UTC, or a numpy.datetime64")
    if time.utcoffset() != dt.timedelta(0):
        raise ValueError(f"{time} is not in UTC: use datetime.datetime.now(datetime.timezone.utc)")
    return time


def check_name(name: str) -> str:
    """A name that a new version can have.

    Raises
    ------
    ValueError
        It cannot.
    """
    if not isinstance(name, str) or not name or "/" in name or name in (".", FIRST_VERSION):
        raise ValueError(f"{name!r} cannot name a version: use text without '/'")
    return name


def check_array_path(path: str) -> None:
    """Refuse names of arrays that the layout needs for itself.

    Raises
    ------
    ValueError
        The name is one of those.
    """
    first = path.split("/", 1)[0]
    if first == "versions":
        raise ValueError(
            f"{path!r}: 'versions' is a forbidden dataset or group name: versions themselves are kept there"
        )


def check_data_version(number: int, path: str, *, to_write: bool) -> None:
    """Refuse files that a later versioned-hdf5 wrote, and writing to those of an earlier one.

    Raises
    ------
    Unsupported
        The file is of such a version.
    UsageError
        It can only be read.
    """
    if number > DATA_VERSION:
        raise Unsupported(f"{path} has data_version {number}, and {DATA_VERSION} is the last we know: update hyperslab")
    if to_write and number < DATA_VERSION:
        raise UsageError(
            f"{path} has data_version {number}: it can be read; to add versions, open it once for writing with"
            f" versioned-hdf5 2.6, which makes it {DATA_VERSION}"
        )


def chunk_hash(chunk: Array) -> bytes:
    """SHA-256 of the valid part of a chunk, and of its shape."""
    if chunk.dtype.kind != "O":
        digest = sha256(np.ascontiguousarray(chunk).view(np.uint8).data if chunk.size else b"")
    else:
        digest = sha256()
        for element in chunk.flat:
            stored = element.encode() if isinstance(element, str) else element
            digest.update(len(stored).to_bytes(8, "little"))
            digest.update(stored)
    digest.update(str(chunk.shape).encode())
    return digest.digest()
