"""The rows of the table of versioned files that have to do with a history: commits, branches, merges, blame, expiry,
import and size, beside versioned-hdf5 and Icechunk where they can do it. Neither of them merges or blames.

Icechunk keeps a folder of its own, whose files it does not sync; so none of the files here is synced.
"""

from __future__ import annotations

import datetime as dt
import itertools
import shutil
from collections.abc import Iterator
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import h5py
import numpy as np
from comparison import OURS, Row, Side, provenance, verdict
from versions_rows import DEFLATED, PLAIN, THEIRS, Copies, Making, noise, smooth, theirs

import hyperslab as hs
from hyperslab.versions import import_files

try:
    ICECHUNK = f"icechunk {version('icechunk')}"
except PackageNotFoundError:
    ICECHUNK = "icechunk"
LENGTH, CHUNK = 512 * 1024, 1024
SIZED = 100  # versions of the row that tells sizes
MIB = 1 << 20


class Kept:
    """A file, or a folder, with array `x` that gets versions and stays open."""

    def __init__(self, making: Making, length: int = LENGTH, chunk: int = CHUNK) -> None:
        self._length, self._numbers = length, itertools.count()
        self.path = making.path("kept")
        self._create(making, noise(length), chunk)

    def place(self, number: int) -> int:
        """Which element a version changes."""
        return number * 137_113 % self._length

    def add(self) -> int:
        """Add a version that changes one element. Returns its number."""
        number = next(self._numbers)
        self._commit(number)
        return number

    def right(self, number: int) -> bool:
        """Whether the latest version has that element."""
        return bool(self.read()[self.place(number)] == -1 - number)

    def nbytes(self) -> int:
        """The bytes on the disk."""
        if self.path.is_dir():
            return sum(one.stat().st_size for one in self.path.rglob("*") if one.is_file())
        return self.path.stat().st_size

    def _create(self, making: Making, data: Any, chunk: int) -> None:
        raise NotImplementedError

    def _commit(self, number: int) -> None:
        raise NotImplementedError

    def read(self) -> Any:
        """Open the file, and read everything of the latest version."""
        raise NotImplementedError


class Ours(Kept):
    def _create(self, making: Making, data: Any, chunk: int) -> None:
        self.file = making.ours(self.path, "w")
        with self.file.stage_version("begin", branch="main") as staged:
            staged.create_dataset("x", data=data, chunks=(chunk,))

    def _commit(self, number: int) -> None:
        with self.file.stage_version(str(number)) as staged:
            staged["x"][self.place(number)] = -1 - number

    def branch(self) -> int:
        """A new branch with one version on it."""
        number = next(self._numbers)
        with self.file.stage_version(str(number), branch=f"b{number}") as staged:
            staged["x"][self.place(number)] = -1 - number
        return number

    def branched(self, number: int) -> bool:
        """Whether the branch has that element."""
        return bool(self.file[f"b{number}"]["x"][self.place(number)] == -1 - number)

    def read(self) -> Any:
        with hs.VersionedFile(self.path) as file:
            return file[0]["x"][...]


class Theirs(Kept):
    def _create(self, making: Making, data: Any, chunk: int) -> None:  # noqa: ARG002
        self.file = h5py.File(self.path, "w")
        with theirs(self.file).stage_version("begin") as staged:
            staged.create_dataset("x", data=data, chunks=(chunk,))

    def _commit(self, number: int) -> None:
        with theirs(self.file).stage_version(str(number)) as staged:
            staged["x"][self.place(number)] = -1 - number
        self.file.flush()

    def read(self) -> Any:
        self.file.flush()
        with h5py.File(self.path) as file:
            return theirs(file)[None]["x"][()]


class Icechunk(Kept):
    def _create(self, making: Making, data: Any, chunk: int) -> None:  # noqa: ARG002
        import icechunk
        import zarr

        self._group = zarr.open_group
        self._storage = icechunk.local_filesystem_storage(str(self.path))
        self.repository = icechunk.Repository.create(self._storage)
        session = self.repository.writable_session("main")
        array = zarr.create_array(session.store, name="x", shape=data.shape, chunks=(chunk,), dtype=data.dtype,
                                  compressors=None)  # fmt: skip
        array[:] = data
        session.commit("begin")

    def _commit(self, number: int) -> None:
        self._on("main", number)

    def _on(self, branch: str, number: int) -> None:
        session = self.repository.writable_session(branch)
        self._group(session.store)["x"][self.place(number)] = -1 - number
        session.commit(str(number))

    def branch(self) -> int:
        """A new branch with one version on it."""
        number = next(self._numbers)
        self.repository.create_branch(f"b{number}", self.repository.lookup_branch("main"))
        self._on(f"b{number}", number)
        return number

    def branched(self, number: int) -> bool:
        """Whether the branch has that element."""
        session = self.repository.readonly_session(f"b{number}")
        return bool(self._group(session.store, mode="r")["x"][self.place(number)] == -1 - number)

    def read(self) -> Any:
        import icechunk

        session = icechunk.Repository.open(self._storage).readonly_session("main")
        return self._group(session.store, mode="r")["x"][:]


KINDS: dict[str, type[Kept]] = {OURS: Ours, THEIRS: Theirs, ICECHUNK: Icechunk}


def rows(where: Path, quick: bool) -> Iterator[Row]:
    """All rows that are timed in turn."""
    making = Making(where, synced=False)
    yield from commits(making)
    yield merge(making, 1000 if quick else 10_000)
    yield blame(making, 1000 if quick else 10_000, 50 if quick else 500)
    yield expiry(making, 40 if quick else 200)
    for deflated, size in ((True, (20, 20)), (False, (50, 95))):  # without codecs, what starting takes would show
        yield imported(where, deflated, *((3, 2) if quick else size))


def commits(making: Making) -> Iterator[Row]:
    """A version of one changed element, reading the latest of 100 of them, and a branch with a version on it."""

    def adding(kind: type[Kept]) -> Side:
        kept = kind(making)
        return Side(kept.add, kept.right)

    def reading(kind: type[Kept]) -> Side:
        kept = kind(making)
        for _ in range(SIZED):
            number = kept.add()
        return Side(kept.read, lambda read: bool(read[kept.place(number)] == -1 - number))

    def branching(kind: Any) -> Side:
        kept = kind(making)
        return Side(kept.branch, kept.branched)

    chunks = LENGTH // CHUNK
    sides = {by: partial(adding, kind) for by, kind in KINDS.items()}
    yield Row("history-commit", f"new version, one element of {chunks} chunks changed, none synced", [], True, sides)
    sides = {by: partial(reading, kind) for by, kind in KINDS.items()}
    yield Row("history-read", f"everything of the latest of {SIZED} versions, {chunks} chunks", [], True, sides)
    sides = {by: partial(branching, KINDS[by]) for by in (OURS, ICECHUNK)}
    yield Row("history-branch", "a new branch with a version on it, none synced", [], True, sides)


def merge(making: Making, chunks: int) -> Row:
    """Two branches that changed 1 % of the chunks each, beside the commit of as many."""
    changed, length = chunks // 100, chunks * CHUNK // 8
    data = np.zeros(length, "f4")

    def edited(staged: Any, first: int, value: int) -> None:
        for at in range(first, chunks, 100):
            staged["x"][at * (length // chunks)] = value

    def ready(is_merge: bool) -> Side:
        file = making.ours(making.path("merge"), "w")
        with file.stage_version("begin", branch="main") as staged:
            staged.create_dataset("x", data=data, chunks=(length // chunks,))
        numbers = itertools.count(1)

        def edit(number: int) -> None:
            with file.stage_version(f"m{number}", branch="main") as staged:
                edited(staged, 0, number)

        def prepare(number: int) -> None:
            with file.stage_version(f"s{number}", branch=f"side{number}") as staged:
                edited(staged, 1, number)
            edit(number)

        todo = [next(numbers) for _ in range(14)]
        if is_merge:  # each merge needs another branch, made before anything is timed
            for number in todo:
                prepare(number)

        def run() -> int:
            number = todo.pop(0)
            if is_merge:
                file.merge(f"side{number}", into="main", conflict="theirs", name=f"both{number}")
            else:
                edit(number)
            return number

        return Side(run, lambda _: len(file) > 1)

    sides = {OURS: partial(ready, True), "the commit of as many chunks": partial(ready, False)}
    work = f"merge of two branches, {changed} of {chunks:,} chunks changed, none synced"
    return Row("history-merge", work, [], True, sides, {"the commit of as many chunks": 2.0})


def blame(making: Making, chunks: int, count: int) -> Row:
    """Who changed which chunk of an array last."""

    def ready() -> Side:
        path = making.path("blame")
        with making.ours(path, "w") as file:
            with file.stage_version("begin") as staged:
                staged.create_dataset("x", data=np.arange(chunks * 4.0), chunks=(4,))
            for number in range(count):
                with file.stage_version(str(number)) as staged:
                    staged["x"][number * 37 % chunks * 4] = -1 - number

        def run() -> int:
            with hs.VersionedFile(path) as file:
                return len(file.blame("x").changes)

        return Side(run, lambda found: found > count // 2)

    work = f"blame of an array of {chunks:,} chunks over {count} versions"
    return Row("history-blame", work, [], True, {OURS: ready}, most_seconds=1.0, turns=5)


def expiry(making: Making, count: int) -> Row:
    """Keep the last 20 versions, and give the space of the others back."""
    turns = 5

    def made(kind: type[Kept]) -> Kept:
        kept = kind(making)
        for _ in range(count):
            kept.add()
        return kept

    sides = {
        OURS: lambda: _expired_by_us(making, made(Ours), turns),
        THEIRS: lambda: _expired_by_them(made(Theirs), turns, ["begin", *map(str, range(count - 20))]),
        ICECHUNK: lambda: _expired_by_icechunk(made(Icechunk), turns),
    }
    return Row("history-expire", f"keep 20 of {count + 1} versions, none synced", [], 20, sides, turns=turns)


def _expired_by_us(making: Making, kept: Any, turns: int) -> Side:
    kept.file.close()
    copies = Copies(kept.path, turns)

    def run() -> Path:
        path = copies.next()
        with making.ours(path, "r+") as file:
            file.expire(keep_last=20)
        return path

    return Side(run, lambda path: len(hs.VersionedFile(path)))


def _expired_by_them(kept: Any, turns: int, names: list[str]) -> Side:
    from versioned_hdf5 import delete_versions

    kept.file.close()
    copies = Copies(kept.path, turns)

    def run() -> Path:
        path = copies.next()
        with h5py.File(path, "r+") as file:
            delete_versions(file, names)
        return path

    return Side(run, lambda path: len(hs.VersionedFile(path)))


def _expired_by_icechunk(kept: Any, turns: int) -> Side:
    import icechunk

    copies = [kept.path.with_suffix(f".{number}") for number in range(turns + 2)]
    for copy in copies:
        shutil.copytree(kept.path, copy)
    *_, oldest = itertools.islice(kept.repository.ancestry(branch="main"), 20)

    def run() -> Any:
        repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(copies.pop())))
        repository.expire_snapshots(older_than=oldest.written_at)
        repository.garbage_collect(dt.datetime.now(dt.UTC) + dt.timedelta(days=1))
        return repository

    # it keeps the first one, which has no data, in any case
    return Side(run, lambda repository: sum(1 for _ in repository.ancestry(branch="main")) - 1)


def imported(where: Path, deflated: bool, count: int, megabytes: int) -> Row:
    """Files that share nine of ten chunks with the one before become versions, beside h5py reading them once."""
    options, kind = (DEFLATED, "deflated") if deflated else ({}, "raw")
    data = (smooth if deflated else noise)(megabytes * MIB // 8)
    chunk, paths = 64 * 1024 // 8, []
    for number in range(count):
        for at in range(number % 10, len(data) // chunk, 10):
            data[at * chunk] += 1
        paths.append(where / f"{kind}-{number}.h5")
        with h5py.File(paths[-1], "w") as file:
            file.create_dataset("x", data=data, chunks=(chunk,), **options)

    def read() -> int:
        for path in paths:
            with h5py.File(path) as file:
                file["x"][()]
        return count

    def run() -> int:
        output = where / f"{kind}-all.h5"
        output.unlink(missing_ok=True)
        return len(import_files(paths, output).versions)

    sides = {OURS: lambda: Side(run), PLAIN: lambda: Side(read)}
    codecs = "gzip+shuffle" if deflated else "no codecs"
    work = f"import of {count} files of {megabytes} MiB that share 90 %, {codecs}, beside reading them once"
    return Row(f"history-import-{kind}", work, paths, count, sides, {PLAIN: 1.5}, turns=3)


def sizes(where: Path, quick: bool) -> dict[str, Any]:
    """What versions of one changed element take on the disk."""
    folder = where / "sizes"
    folder.mkdir(exist_ok=True)
    making, count = Making(folder, synced=False), 10 if quick else SIZED
    took: dict[str, int] = {}
    absent: dict[str, str] = {}
    for by, kind in KINDS.items():
        try:
            kept = kind(making)
        except ImportError as error:
            absent[by] = f"not installed: {error}"
            continue
        before = kept.nbytes()
        for _ in range(count):
            kept.add()
        took[by] = kept.nbytes() - before
    peers: list[dict[str, Any]] = [
        {"peer": by, "status": absent.get(by, "measured"), "target": None, "nbytes": took.get(by, 0)}
        for by in (THEIRS, ICECHUNK)
    ]
    most = took.get(THEIRS, 0)
    return {
        "key": "history-size",
        "work": f"bytes of {count} versions, one element of {LENGTH // CHUNK} chunks changed in each",
        "turns": 1,
        "comparisons": peers,
        "limit": {"nbytes": took[OURS], "target": most, "verdict": verdict(took[OURS], took[OURS], took[OURS], most)},
        **provenance(),
    }
