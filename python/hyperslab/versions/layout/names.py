"""The names that versioned-hdf5 uses in a file (its DATA_VERSION 4), and how it writes times and hashes.

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
from collections.abc import Mapping
from contextlib import suppress
from hashlib import sha256
from typing import Any, TypeAlias

import numpy as np

from hyperslab.errors import Unsupported, UsageError
from hyperslab.versions.layout.padding import without_fields

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
HASH_TABLE_CHUNK_LENGTH = 512  # each commit writes the last chunk of the table again, in another place
# The attributes that the layout needs: in each version, and in each array of a version.
VERSION_BOOKKEEPING = ("prev_version", "committed", "timestamp")
ARRAY_BOOKKEEPING = ("raw_data", "chunks")


def bookkeeping(name: str, *, is_array: bool) -> tuple[str, ...]:
    """The attributes that the layout needs in a group or array with this name; none outside the versions."""
    depth = len(name.removeprefix(f"/{VERSIONS}/").split("/")) if name.startswith(f"/{VERSIONS}/") else 0
    if is_array:
        return ARRAY_BOOKKEEPING if depth > 1 else ()
    return VERSION_BOOKKEEPING if depth == 1 else ()


def without(attributes: Mapping[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    """The attributes without some names."""
    return {name: attributes[name] for name in attributes if name not in names}


def raw_path(array: str) -> str:
    """The name of the array that holds the chunks of an array, given its path in a version."""
    return f"/{DATA}/{array}/raw_data"


def path_in_version(name: str) -> str:
    """The path of an array inside its version, given its name in the file."""
    return name.rsplit(f"/{VERSIONS}/", 1)[-1].split("/", 1)[1]


def stored_time(time: Time | None) -> str:
    """A time as it is stored; None means now.

    Raises
    ------
    ValueError
        The time is not in UTC.
    TypeError
        It is not a time.
    """
    return as_datetime(dt.datetime.now(dt.UTC) if time is None else time).strftime(TIME_FORMAT)


def parsed_time(stored: str) -> dt.datetime:
    """Parse a stored time.

    Raises
    ------
    ValueError
        It is not a time.
    """
    if len(stored) == TIME_LENGTH and stored[10] == " ":  # the usual form; forty times as fast
        with suppress(ValueError):
            time = dt.datetime.fromisoformat(stored)
            if time.tzinfo is not None:
                return time
    return dt.datetime.strptime(stored, TIME_FORMAT)


def as_datetime(time: Time) -> dt.datetime:
    """Check that a time is in UTC, and convert it."""
    if isinstance(time, np.datetime64):
        return time.astype("datetime64[us]").astype(dt.datetime).replace(tzinfo=dt.UTC)  # type: ignore[no-any-return]
    if not isinstance(time, dt.datetime):
        raise TypeError(f"{time!r} is not a time: give a datetime.datetime in UTC, or a numpy.datetime64")
    if time.utcoffset() != dt.timedelta(0):
        raise ValueError(f"{time} is not in UTC: use datetime.datetime.now(datetime.timezone.utc)")
    return time


def check_name(name: str) -> str:
    """Check the name of a new version.

    Raises
    ------
    ValueError
        A version cannot have this name.
    """
    if not isinstance(name, str) or not name or "/" in name or name in (".", FIRST_VERSION):
        raise ValueError(f"{name!r} cannot be the name of a version: use text without '/'")
    check_storable(name)
    return name


def check_storable(name: str) -> None:
    """Refuse names that HDF5 cannot store, or would cut off.

    Raises
    ------
    ValueError
        It is such a name.
    """
    if "\0" in name:
        raise ValueError(f"{name!r} has a NUL in it, where HDF5 would cut the name off: leave it out")
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{name!r} cannot be stored as UTF-8, because it has surrogates in it") from None


def check_group_path(path: str) -> None:
    """Refuse names that HDF5 cannot store, or that the layout needs for itself.

    Raises
    ------
    ValueError
        It is such a name.
    """
    check_storable(path)
    if path.split("/", 1)[0] == "versions":
        raise ValueError(
            f"{path!r}: 'versions' is a forbidden dataset or group name: versions themselves are kept there"
        )


def check_array_path(path: str) -> None:
    """Refuse names that an array of a version cannot have.

    Raises
    ------
    ValueError
        It is such a name.
    """
    check_group_path(path)
    if "%" in path:
        raise ValueError(
            f"{path!r} has a '%' in it, which HDF5 takes as the start of a number in the list of an array's chunks, so "
            "that other software could not read the array, nor add versions to the file: use another name"
        )


def check_data_version(number: int, path: str, *, to_write: bool) -> None:
    """Refuse files that a later versioned-hdf5 wrote, and refuse to write to files of an earlier one.

    Raises
    ------
    Unsupported
        The layout is newer than this release knows.
    UsageError
        The layout is older: the file can only be read.
    """
    if number > DATA_VERSION:
        raise Unsupported(f"{path} has data_version {number}; hyperslab knows up to {DATA_VERSION}: update hyperslab")
    if to_write and number < DATA_VERSION:
        raise UsageError(
            f"{path} has data_version {number} and can only be read; to add versions, first open it for writing with"
            f" versioned-hdf5 2.6, which upgrades it to {DATA_VERSION}"
        )


def text_bytes(text: str | bytes) -> bytes:
    """Text as it is stored. In `str`, bytes that are not UTF-8 are surrogates, as in file names."""
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text


def chunk_hash(chunk: Array) -> bytes:
    """SHA-256 of the valid part of a chunk and of its shape."""
    if chunk.dtype.kind != "O":
        digest = sha256(np.ascontiguousarray(without_fields(chunk)).view(np.uint8).data if chunk.size else b"")
    else:
        digest = sha256()
        for element in chunk.flat:
            stored = text_bytes(element)
            digest.update(len(stored).to_bytes(8, "little"))
            digest.update(stored)
    digest.update(str(chunk.shape).encode())
    return digest.digest()
