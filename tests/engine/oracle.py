"""Compares every array of HDF5 files, read by hyperslab, with what h5py reads.

    python oracle.py [--most COUNT] FILE...

Each file has a process of its own, so that one which crashes or hangs does not take others with it; they are forked, as
imports take longer than most files. Prints a JSON object for each file, in order: `equal`, `via_h5py`, `skipped`
(counts), `unsupported` and `wrong` (array -> reason). A file that h5py cannot open has no oracle; then hyperslab must
give an error or open it, and never crash.
"""

from __future__ import annotations

import gc
import json
import os
import pkgutil
import signal
import sys
import tempfile
from collections import Counter
from contextlib import suppress
from importlib import import_module
from typing import Any

import h5py
import numpy as np

import hyperslab
import hyperslab.archive
from hyperslab.errors import DamagedFile, ReadError, Unsupported

with suppress(ImportError):
    import hdf5plugin  # noqa: F401 - registers filters with h5py


def arrays_of(file: h5py.File) -> dict[str, h5py.Dataset]:
    """Every array, once, by its first name."""
    found: dict[str, h5py.Dataset] = {}

    def visit(name: str, item: Any) -> None:
        if isinstance(item, h5py.Dataset):
            found[name] = item

    file.visititems(visit)
    return found


def has_undefined_values(array: h5py.Dataset) -> bool:
    """Fill time never: what was not written is whatever was there before."""
    plist = array.id.get_create_plist()
    return bool(plist.get_fill_time() == h5py.h5d.FILL_TIME_NEVER)


def path_of(reference: h5py.Reference | h5py.RegionReference, file: h5py.File) -> str | None:
    """The path of what h5py finds; None where it finds nothing."""
    try:
        return file[reference].name if reference else None
    except (KeyError, ValueError):
        return None


def plain(value: Any, file: h5py.File | None = None) -> Any:
    """A value as nested lists of numbers, text and bytes, whatever library gave it; references as paths."""
    if isinstance(value, h5py.Reference | h5py.RegionReference):
        return path_of(value, file)
    if isinstance(value, bytes | np.bytes_):
        return bytes(value).rstrip(b"\0").decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value.rstrip("\0")
    if isinstance(value, np.void) and value.dtype.names:
        return [plain(value[name], file) for name in value.dtype.names]
    if isinstance(value, np.ndarray):
        if value.dtype.names:
            return [plain(value[name], file) for name in value.dtype.names]
        if value.dtype.kind in "OSU":
            return [plain(item, file) for item in value.reshape(-1)]
        if value.dtype.kind == "V":
            return value.tobytes()
        return np.ascontiguousarray(value, value.dtype.newbyteorder("=")).tobytes()
    if isinstance(value, np.generic):
        return np.asarray(value, value.dtype.newbyteorder("=")).tobytes()
    return value


MOST_NBYTES = 64 << 20
MOST_SECONDS = 300


def part_to_compare(array: h5py.Dataset) -> Any:
    """Everything; of an array too large for a test, its first and last few indices along every axis."""
    if array.shape is None or array.size * array.dtype.itemsize <= MOST_NBYTES:
        return ...
    return tuple(
        slice(max(0, length - 100), length) if axis == 0 else slice(0, 100) for axis, length in enumerate(array.shape)
    )


def some(arrays: dict[str, h5py.Dataset], most: int | None) -> dict[str, h5py.Dataset]:
    """The arrays to compare: all, or as many as are asked for, from the first to the last."""
    names = list(arrays)
    if most is None or len(names) <= most:
        return arrays
    return {name: arrays[name] for name in (names[place * (len(names) - 1) // (most - 1)] for place in range(most))}


def compare(path: str, most: int | None = None) -> dict[str, Any]:
    """The outcome of every array, or of `most`."""
    counts: Counter[str] = Counter()
    unsupported: dict[str, str] = {}
    wrong: dict[str, str] = {}
    with h5py.File(path, "r") as oracle:
        opened = hyperslab.open(path)
        for name, theirs in some(arrays_of(oracle), most).items():
            try:
                part = part_to_compare(theirs)
                expected = None if theirs.shape is None else theirs[part]
            except Exception:  # h5py itself cannot read it: there is nothing to compare with
                counts["skipped"] += 1
                continue
            if expected is None or has_undefined_values(theirs):
                counts["skipped"] += 1
                continue
            try:
                ours = opened[name]
                via = ours.via
                got = ours[part]
            except (Unsupported, DamagedFile) as reason:
                unsupported[name] = str(reason)
                continue
            except (ReadError, KeyError) as reason:
                wrong[name] = f"{type(reason).__name__}: {reason}"
                continue
            if ours.shape != theirs.shape:  # NetCDF-4's: as long as its unlimited dimensions
                counts["lengthened"] += 1
                got = ours[tuple(slice(0, length) for length in theirs.shape)][part]
            if np.shape(got) != np.shape(expected):
                wrong[name] = f"shape {np.shape(got)} for {np.shape(expected)}"
            elif plain(np.asarray(got)[()]) != plain(np.asarray(expected)[()], oracle):
                wrong[name] = f"values differ ({theirs.dtype}, {ours.dtype}, chunks {theirs.chunks})"
            else:
                counts["equal" if via == "hyperslab" else "via_h5py"] += 1
                if via != "hyperslab":
                    unsupported[name] = str(ours.unsupported)
    return {**counts, "unsupported": unsupported, "wrong": wrong}


def outcome(path: str, most: int | None = None) -> dict[str, Any]:
    """What comparing one file finds."""
    try:
        return compare(path, most)
    except OSError:  # not readable by h5py: it only must not crash or hang us
        with suppress(ReadError, OSError, ValueError):
            hyperslab.open(path)
        return {"no_oracle": 1, "unsupported": {}, "wrong": {}}


def alone(path: str, most: int | None = None) -> dict[str, Any]:
    """The same, in a process of its own."""
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if not child:
            os.dup2(said.fileno(), 2)
            signal.alarm(MOST_SECONDS)
            try:
                found = outcome(path, most)
            except BaseException as error:  # of any kind
                found = {"wrong": {"": f"{type(error).__name__}: {error}"}}
            said.seek(0)
            said.truncate()
            said.write(json.dumps(found, default=str))
            said.flush()
            os._exit(0)
        _, status = os.waitpid(child, 0)
        said.seek(0)
        text = said.read()
    if status == 0:
        found = json.loads(text)
        return dict(found)
    ended = -os.waitstatus_to_exitcode(status)
    why = "hangs" if ended == signal.SIGALRM else f"ended with {ended}: {text.strip().splitlines()[-1:]}"
    return {"wrong": {"": why}}


if __name__ == "__main__":
    asked, count = sys.argv[1:], None
    if asked[:1] == ["--most"]:
        count, asked = int(asked[1]), asked[2:]
    for module in pkgutil.walk_packages(hyperslab.archive.__path__, "hyperslab.archive."):
        with suppress(ImportError):  # of an optional library
            import_module(module.name)
    gc.freeze()
    for given in asked:
        print(json.dumps(alone(given, count)), flush=True)
