"""The rows of the table of versioned files: work done by us, by versioned-hdf5, and by h5py without versions.

By default, only we wait for the disk. So a row that writes is measured twice: once with no file synced, and once with
every side's file synced before the clock stops. Versions are added to files that stay open.
"""

from __future__ import annotations

import itertools
import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from comparison import OURS, Row, Side

import hyperslab as hs
from hyperslab.bench.histories.contenders import Unsynced
from hyperslab.chunk_grid import ceil_div
from hyperslab.versions.commit import writing

PLAIN, THEIRS = "h5py, unversioned", "versioned-hdf5"
ELEMENT_NBYTES = 8
DEFLATED = {"compression": "gzip", "shuffle": True}


def theirs(file: h5py.File) -> Any:
    """versioned-hdf5's view of a file."""
    from versioned_hdf5 import VersionedHDF5File

    return VersionedHDF5File(file)


def crc(array: Any) -> int:
    """The checksum of an array's elements."""
    return zlib.crc32(np.ascontiguousarray(array).view(np.uint8))


class Making:
    """Creates files, and says whether to wait until their bytes are on the disk."""

    def __init__(self, folder: Path, synced: bool) -> None:
        self.folder, self.synced = folder, synced
        self._numbers = itertools.count()

    def path(self, name: str) -> Path:
        """The path of a new file."""
        return self.folder / f"{'synced' if self.synced else 'unsynced'}-{next(self._numbers)}-{name}.h5"

    def ours(self, path: Path, mode: str) -> hs.VersionedFile:
        """A versioned file, synced or not."""
        before, writing.SYSTEM = writing.SYSTEM, writing.SYSTEM if self.synced else Unsynced()
        try:
            return hs.VersionedFile(path, mode)  # type: ignore[arg-type]
        finally:
            writing.SYSTEM = before

    def sync(self, path: Path) -> None:
        """Sync a file for the other sides; ours syncs by itself."""
        if self.synced:
            descriptor = os.open(path, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)


def both(rows: Callable[[Making], Iterator[Row]], folder: Path) -> Iterator[Row]:
    """Rows that write: once without syncing, once with."""
    for synced in (False, True):
        for row in rows(Making(folder, synced)):
            kind = "all synced" if synced else "none synced"
            yield Row(**{**vars(row), "key": row.key + ("-synced" if synced else ""), "work": f"{row.work}, {kind}"})


def noise(count: int) -> np.ndarray:
    """Random elements: no codec can compress them, and no two chunks are equal."""
    return np.random.default_rng(6).random(count)


def smooth(count: int) -> np.ndarray:
    """Elements that deflate with shuffle halves."""
    return np.round(np.sin(np.arange(count) / 500) * 100 + np.random.default_rng(6).random(count), 2)


def first_write(making: Making, megabytes: int) -> Iterator[Row]:
    """A new file with one version of one array."""
    data = noise(megabytes * (1 << 20) // ELEMENT_NBYTES)

    def by_us(path: Path, chunk: int) -> None:
        with making.ours(path, "w") as file, file.stage_version("a") as version:
            version.create_dataset("x", data=data, chunks=(chunk,))

    def by_them(path: Path, chunk: int) -> None:
        with h5py.File(path, "w") as file, theirs(file).stage_version("a") as version:
            version.create_dataset("x", data=data, chunks=(chunk,))
        making.sync(path)

    def by_h5py(path: Path, chunk: int) -> None:
        with h5py.File(path, "w") as file:
            file.create_dataset("x", data=data, chunks=(chunk,))
        making.sync(path)

    def side(write: Callable[[Path, int], None], chunk: int) -> Callable[[], Side]:
        def run() -> Path:
            path = making.folder / "written.h5"
            path.unlink(missing_ok=True)
            write(path, chunk)
            return path

        return lambda: Side(run, lambda path: crc(latest(path)))

    for kib, most in ((64, 1.5), (4, 2.5)):
        chunk = kib * 1024 // ELEMENT_NBYTES
        sides = {OURS: side(by_us, chunk), PLAIN: side(by_h5py, chunk), THEIRS: side(by_them, chunk)}
        work = f"first write, {megabytes} MiB, {kib} KiB chunks"
        yield Row(f"first-write-{kib}k", work, [], crc(data), sides, {PLAIN: most}, turns=15)


def latest(path: Path) -> np.ndarray:
    """Array `x` of the current version, or of a file without versions, by h5py."""
    with h5py.File(path) as file:
        if "x" in file:
            return file["x"][...]
        versions = file["_version_data/versions"]
        return versions[versions.attrs["current_version"]]["x"][...]


def made_file(folder: Path, name: str, by: str, data: np.ndarray, chunk: int, options: dict[str, Any]) -> Path:
    """A file with array `x`, created once."""
    path = folder / f"{name}-{by.split(',')[0]}-{chunk}-{data.size}.h5"
    if path.exists():
        return path
    with ExitStack() as stack:
        if by == OURS:
            file = stack.enter_context(hs.VersionedFile(path, "w"))
            stack.enter_context(file.stage_version("a")).create_dataset("x", data=data, chunks=(chunk,), **options)
        else:
            plain = stack.enter_context(h5py.File(path, "w"))
            holder = plain if by == PLAIN else stack.enter_context(theirs(plain).stage_version("a"))
            holder.create_dataset("x", data=data, chunks=(chunk,), **options)
    return path


def reading(path: Path, by: str, key: Any) -> Callable[[], Any]:
    """Open a file, read from the latest version, and close it."""

    def by_us() -> Any:
        with hs.VersionedFile(path) as file:
            return file[None]["x"][key]

    def by_h5py() -> Any:
        with h5py.File(path) as file:
            return (file if by == PLAIN else theirs(file)[None])["x"][key]

    return by_us if by == OURS else by_h5py


def whole(path: Path, by: str) -> Callable[[], Side]:
    """A side that reads everything."""
    return lambda: Side(reading(path, by, ...), crc)


def element(path: Path, by: str, at: int) -> Callable[[], Side]:
    """A side that reads one element."""
    return lambda: Side(reading(path, by, at))


def reads(folder: Path, megabytes: int) -> Iterator[Row]:
    """Read the latest version: everything, and one element."""
    count = megabytes * (1 << 20) // ELEMENT_NBYTES
    works = [("", noise(count), {}, 64, 0.7), ("", noise(count), {}, 4, 0.4)]
    works += [(", gzip+shuffle", smooth(count), DEFLATED, kib, 0.3) for kib in (64, 4)]
    for codecs, data, options, kib, most in works:
        chunk = kib * 1024 // ELEMENT_NBYTES
        name = "deflated" if codecs else "raw"
        files = {by: made_file(folder, name, by, data, chunk, options) for by in (OURS, PLAIN, THEIRS)}
        for maker in (OURS, THEIRS):
            sides = {by: whole(files[PLAIN if by == PLAIN else maker], by) for by in (OURS, PLAIN, THEIRS)}
            work = f"everything of the latest, {kib} KiB chunks{codecs}, written by {maker}"
            key = f"read-{kib}k-{name}-{maker.split('-')[0]}"
            yield Row(key, work, list(files.values()), crc(data), sides, {PLAIN: most}, turns=15)
        if name == "raw":
            at = count // 2 + 5
            sides = {by: element(files[by], by, at) for by in (OURS, PLAIN, THEIRS)}
            targets = {PLAIN: 3.0} if kib == 4 else {}
            work = f"one element of the latest, {count // chunk:,} chunks"
            yield Row(f"element-{kib}k", work, list(files.values()), data[at], sides, targets, turns=15, per_turn=1)


class Updates:
    """Adds versions to a file that stays open. Each version changes one element of one array."""

    def __init__(self, making: Making, by: str, arrays: int, count: int, chunk: int) -> None:
        self._making, self._numbers = making, itertools.count()
        self._path = making.path(by)
        self._count, self._name = count, "x0"
        if by == OURS:
            self._file: Any = making.ours(self._path, "w")
            self._versions, self._flush = self._file, lambda: None
        else:
            self._file = h5py.File(self._path, "w")
            self._versions, self._flush = theirs(self._file), self._flushed
        with self._versions.stage_version("begin") as version:
            for number in range(arrays):
                version.create_dataset(f"x{number}", data=noise(count) + number, chunks=(chunk,))

    def _flushed(self) -> None:
        self._file.flush()
        self._making.sync(self._path)

    def add(self) -> int:
        """Add a version. Returns the element that it sets."""
        number = next(self._numbers)
        with self._versions.stage_version(str(number)) as version:
            version[self._name][self._count // 3] = -1 - number
        self._flush()
        return number

    def right(self, number: int) -> bool:
        """Whether the latest version has that element."""
        return bool(self._versions[None][self._name][self._count // 3] == -1 - number)


def new_version(making: Making, megabytes: int) -> Iterator[Row]:
    """A version that changes one element."""
    count = megabytes * (1 << 20) // ELEMENT_NBYTES
    works = [(1, count, 8192), (1, count, 512), (200, 1000, 100)]
    for arrays, length, chunk in works:
        sides = {}
        for by in (OURS, THEIRS):

            def ready(by: str = by, arrays: int = arrays, length: int = length, chunk: int = chunk) -> Side:
                updates = Updates(making, by, arrays, length, chunk)
                return Side(updates.add, updates.right)

            sides[by] = ready
        one = f"one element of {ceil_div(length, chunk):,} chunks" if arrays == 1 else f"one of {arrays} arrays"
        key = f"version-{ceil_div(length, chunk)}" if arrays == 1 else f"version-of-{arrays}"
        target = 0.4 if arrays == 1 else 0.3
        yield Row(key, f"new version, {one} changed", [], True, sides, {THEIRS: target}, turns=15)


def deletion(making: Making, count: int) -> Iterator[Row]:
    """Delete half of the versions. There is no row if this version of hyperslab cannot do that."""
    if not hasattr(hs.VersionedFile, "delete_versions"):
        return

    def made(by: str) -> Path:
        path = making.path(by)
        data = noise(100 * 1000)
        with making.ours(path, "w") as file:
            for number in range(count):
                with file.stage_version(str(number)) as version:
                    if number == 0:
                        version.create_dataset("x", data=data, chunks=(1000,))
                    version["x"][number * 137 % data.size] = number
        return path

    names = [str(number) for number in range(1, count, 2)]

    def by_us() -> Side:
        copies = Copies(made(OURS), TURNS)

        def run() -> Path:
            path = copies.next()
            with making.ours(path, "r+") as file:
                file.delete_versions(names)  # type: ignore[attr-defined]
            return path

        return Side(run, lambda path: len(hs.VersionedFile(path).versions))

    def by_them() -> Side:
        from versioned_hdf5 import delete_versions

        copies = Copies(made(THEIRS), TURNS)

        def run() -> Path:
            path = copies.next()
            with h5py.File(path, "r+") as file:
                delete_versions(file, names)
            making.sync(path)
            return path

        return Side(run, lambda path: len(hs.VersionedFile(path).versions))

    work = f"delete {len(names)} of {count} versions"
    sides = {OURS: by_us, THEIRS: by_them}
    yield Row("delete", work, [], count - len(names), sides, {THEIRS: 0.2}, turns=TURNS)


TURNS = 5


class Copies:
    """Copies of a file, created before anything is timed: each deletion needs a new one."""

    def __init__(self, path: Path, turns: int) -> None:
        # one for the check, one for the warm-up
        self._paths = [path.with_suffix(f".{number}.h5") for number in range(turns + 2)]
        for copy in self._paths:
            copy.write_bytes(path.read_bytes())

    def next(self) -> Path:
        """A copy that was not used yet."""
        return self._paths.pop()
