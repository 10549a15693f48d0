"""The names in versioned-hdf5's `versions` that its users import."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import h5py
import numpy as np

from hyperslab.versions.compat.opened import Opened, is_outdated
from hyperslab.versions.layout.names import FIRST_VERSION, VERSIONS, as_datetime
from hyperslab.versions.layout.names import TIME_FORMAT as TIMESTAMP_FMT

__all__ = [
    "TIMESTAMP_FMT",
    "all_versions",
    "get_nth_previous_version",
    "get_version_by_timestamp",
    "set_current_version",
]


def all_versions(f: h5py.Group, *, include_first: bool = False) -> Iterator[str]:
    """The names of all versions; `include_first` adds the empty version that all others start from."""
    return (name for name in f[VERSIONS] if include_first or name != FIRST_VERSION)


def get_nth_previous_version(f: h5py.Group, version_name: str, n: int) -> str:
    """The name of the version n steps before another.

    Raises
    ------
    IndexError
        The version does not exist, or has fewer ancestors.
    """
    table = Opened.of(f).table
    if version_name not in table:
        raise IndexError(f"there is no version {version_name!r} in {table.path}")
    return table.ancestor(version_name, n)


def get_version_by_timestamp(f: h5py.Group, timestamp: dt.datetime | np.datetime64, exact: bool = False) -> str:
    """The name of the last version committed at or before a time in UTC; with `exact` only at that time.

    Raises
    ------
    KeyError
        There is none.
    ValueError
        The time is not in UTC.
    TypeError
        It is not a time.
    """
    table, time = Opened.of(f).table, as_datetime(timestamp)
    version = table.at(time)
    if exact and version.time != time:
        raise KeyError(f"no version in {table.path} was committed at {time}")
    return version.name


def set_current_version(f: h5py.Group, version_name: str) -> None:
    """Make a version the current one.

    Raises
    ------
    ValueError
        The version does not exist.
    """
    if version_name not in f[VERSIONS]:
        raise ValueError(f"there is no version {version_name!r} in {f.file.filename}")
    opened = Opened.of(f)
    if version_name in opened.table and not is_outdated(f):
        opened.native.current_version = version_name
    else:
        f[VERSIONS].attrs["current_version"] = version_name
    opened.table  # noqa: B018 -- makes all handles see it
