"""`index`: archives opened once for all, so that where their chunks are can be saved and opened again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from hyperslab._core import save_references
from hyperslab.archive.allowed import Places
from hyperslab.archive.open_file import CHUNK_CACHE_NBYTES, locate
from hyperslab.archive.opening import open
from hyperslab.archive.remote import is_url, shown
from hyperslab.archive.source_files import are_many, matching, threads_for
from hyperslab.archive.tree import Group, OpenFile
from hyperslab.errors import HyperslabError, Refused, UsageError
from hyperslab.references import icechunk, kerchunk, zarr2, zarr3
from hyperslab.references.export import Export
from hyperslab.references.side_by_side import by_dask, by_threads
from hyperslab.replacing import replacing

MOST_OPEN = 100  # files
SUFFIXES = (".json", ".parquet", ".parq", ".hs")
Source = str | os.PathLike[str] | Group


@dataclass(frozen=True)
class Referenced:
    """What references were written of."""

    file_count: int
    array_count: int
    chunk_count: int  # stored chunks, inline ones included
    left_out: Mapping[str, str]  # arrays that could not be expressed, with the reasons


@dataclass(frozen=True)
class Saved(Referenced):
    """What was saved, and where."""

    path: str
    nbytes: int  # of the file, or of all files of the folder


class Index:
    """Archives whose metadata were read: `roots` by the names of the groups that they will be in references.

    One archive alone has the name "", and is the root itself.
    """

    def __init__(self, roots: Mapping[str, Group]) -> None:
        for root in roots.values():
            if root.name != "/":
                raise UsageError(f"{root.name} of {root.filename} is no whole archive: index its root")
        self.roots = MappingProxyType(dict(roots))
        self.lasting: TemporaryDirectory[str] | None = None  # what the roots were opened from, removed with this

    def save(
        self,
        target: str | os.PathLike[str],
        *,
        inline_threshold: int = 500,
        skip_unsupported: bool = False,
        record_size: int = kerchunk.RECORD_SIZE,
    ) -> Saved:
        """Write references; what was at `target` before is replaced at once, and only if all went well.

        The ending of `target` chooses the format: `.hs` is our own, which holds everything and opens at once;
        `.json` and `.parquet` are kerchunk's, for xarray, zarr-python and other readers of Zarr.

        Args:
            target: Where to write.
            inline_threshold: Arrays of at most so many bytes are put into kerchunk's references as values; of arrays in
                files that an archive leads to only where `allowed=` was said.
            skip_unsupported: Leave out arrays that kerchunk's references cannot express, instead of refusing them.
            record_size: References of one Parquet table.

        Raises:
            Refused: An array cannot be expressed; the message has its name and the reason.
            UsageError: The target has another ending, or cannot be written to.
        """
        path = Path(target)
        self._check_queries(path)
        if path.suffix not in SUFFIXES:
            raise UsageError(f"{path} has none of the endings {', '.join(SUFFIXES)}, which choose the format")
        if record_size < 1 or inline_threshold < 0:
            raise UsageError(f"record_size {record_size}, inline_threshold {inline_threshold}: use at least 1 and 0")
        if path.suffix == ".hs":
            return self._save_own(path)
        export = Export(zarr2, inline_threshold, skip_unsupported)
        if path.suffix == ".json":
            kerchunk.save_json(self.roots, path, export)
        else:
            kerchunk.save_parquet(self.roots, path, export, record_size)
        return self._saved(path, export.array_count, export.chunk_count, export.left_out)

    def to_icechunk(self, store: Any, *, inline_threshold: int = 500, skip_unsupported: bool = False) -> Referenced:
        """Write virtual references into an Icechunk store, which zarr-python and xarray read; committing is yours.

        The repository must have virtual chunk containers for the files. Each reference keeps the ETag of a file far
        away, or when a local one was changed, so that Icechunk refuses chunks of a file that is another one.

        Args:
            store: That of a writable session.
            inline_threshold: Arrays of at most so many bytes are written as values, as in `save`.
            skip_unsupported: Leave out arrays that Zarr 3 cannot express, instead of refusing them.

        Raises:
            Refused: An array cannot be expressed; the message has its name and the reason.
            UsageError: The store is read-only, has no container for a file, or has an array of that name already.
            FileChanged: A file is another one now than when it was indexed.
        """
        export = Export(zarr3, inline_threshold, skip_unsupported)
        icechunk.save(self.roots, store, export)
        left_out = MappingProxyType(dict(export.left_out))
        return Referenced(len(self.roots), export.array_count, export.chunk_count, left_out)

    def _check_queries(self, path: Path) -> None:
        """A URL's query may be a secret, or say which file is meant: it can neither be kept nor left out."""
        remedy = "open it without, as storage_options={'query': ...}, and save a .hs"
        for root in self.roots.values():
            own = root.opened.opened_urls
            is_told_by_query = len(set(map(shown, own))) < len(set(own))
            asked = own if path.suffix != ".hs" or is_told_by_query else []
            for url in (*asked, *root.file.urls):
                if "?" in url and url.lower().startswith("http"):
                    raise Refused(f"{shown(url)} is asked for with a query, which references never hold: {remedy}")

    def _save_own(self, path: Path, is_synced: bool = True) -> Saved:
        folder = str(path.absolute().parent)
        with replacing(path, is_synced=is_synced) as beside:
            files = [(name, root.file) for name, root in self.roots.items()]
            array_count, chunk_count = save_references(str(beside), folder, files)
        return self._saved(path, array_count, chunk_count, {})

    def _saved(self, path: Path, array_count: int, chunk_count: int, left_out: Mapping[str, str]) -> Saved:
        files = [file for file in path.rglob("*") if file.is_file()] if path.is_dir() else [path]
        nbytes = sum(file.stat().st_size for file in files)
        left_out = MappingProxyType(dict(left_out))
        return Saved(len(self.roots), array_count, chunk_count, left_out, str(path), nbytes)


def index(
    sources: Source | Iterable[Source],
    *,
    storage_options: Mapping[str, Any] | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    threads: int | None = None,
    scheduler: Any = None,
    allowed: Places | None = None,
) -> Index:
    """Read where all chunks of archives are, of several side by side.

    Args:
        sources: Files, patterns as in `"*.nc"`, URLs, or what `hyperslab.open` gave; several become groups, named
            after their files.
        storage_options: How to reach URLs, as for `open`. References never hold them.
        resume: A folder for the references of each file as soon as they are known. Files that are in it already
            and have not changed since are not indexed again.
        progress: Called with a file's name once it is indexed, how many are, and how many there are.
        threads: Files that are indexed at a time; as many as there are cores, or 32 where some are far away.
        scheduler: Index on the workers of a Dask scheduler instead: its address, or a `distributed.Client`. The
            workers must find the files under the same paths. No credentials are sent to them: they take those from
            their environment, or from `hyperslab.credentials` called there.
        allowed: What the files may lead to, as for `open`.

    Returns:
        An `Index`; `save` writes it.

    Raises:
        UsageError: There is nothing to index.
        MissingLibrary: `scheduler` needs Dask.
    """
    given = list(expanded(sources))
    if not given:
        raise UsageError("nothing to index: no file was given")
    if threads is not None and threads < 1:
        raise UsageError(f"threads is {threads}: use at least 1")
    lasting = None
    if resume is None and (len(given) > MOST_OPEN or scheduler is not None):
        # References hold no file open: there may be too many.
        lasting = TemporaryDirectory(prefix="hyperslab-index-", ignore_cleanup_errors=True)
    folder = Path(lasting.name) if lasting else Path(resume) if resume is not None else None
    if folder is not None:
        folder.mkdir(exist_ok=True)
    paths = [source.filename if isinstance(source, Group) else shown(os.fspath(source)) for source in given]
    count = threads or threads_for(any(map(is_url, paths)))
    gathering = _Gathering(given, folder, dict(storage_options or {}), count, allowed)
    roots: dict[int, Group] = {}
    for number, root in gathering.roots(scheduler):
        roots[number] = root
        if progress is not None:
            progress(paths[number], len(roots), len(given))
    ordered = [roots[number] for number in range(len(given))]
    found = Index({"": ordered[0]} if len(ordered) == 1 else dict(zip(_names(paths), ordered, strict=True)))
    found.lasting = lasting
    return found


def expanded(sources: Source | Iterable[Source]) -> Iterator[Source]:
    """Files in place of the patterns that they match, in the order of `hyperslab.open`.

    Raises:
        FileNotFoundError: A pattern matches no file.
    """
    for source in [sources] if isinstance(sources, str | os.PathLike | Group) else sources:
        yield from matching(source) if isinstance(source, str) and are_many(source) else [source]


@dataclass(frozen=True)
class _Gathering:
    """Archives that are being opened, by way of their references in a folder if there is one."""

    given: list[Source]
    folder: Path | None
    options: dict[str, Any]
    threads: int
    allowed: Places | None

    def roots(self, scheduler: Any) -> Iterator[tuple[int, Group]]:
        """The root of each archive with its number, as they come."""
        if scheduler is None:
            if self.threads == 1 or len(self.given) == 1:
                yield from ((number, self.opened(number)) for number in range(len(self.given)))
            else:
                yield from by_threads(self.opened, range(len(self.given)), self.threads)
            return
        missing = {}
        for number, root in by_threads(self.known, range(len(self.given)), self.threads):
            if root is not None:
                yield number, root
            else:
                missing[number] = locate(self.path(number), self.options, 0, self.allowed)
        for number, content in by_dask(encoded, missing, scheduler):
            known = self.place(number)
            with replacing(known, is_synced=False) as beside:
                beside.write_bytes(content)
            yield number, self.reopened(number)

    def opened(self, number: int) -> Group:
        """An archive; from its references if they are there and true."""
        known = self.known(number)
        if known is not None:
            return known
        root = open(self.path(number), storage_options=self.options, allowed=self.allowed)
        if self.folder is None:
            return root
        Index({"": root})._save_own(self.place(number), is_synced=False)
        root.close()
        return self.reopened(number)

    def known(self, number: int) -> Group | None:
        """An archive that need not be indexed."""
        source = self.given[number]
        if isinstance(source, Group):
            return source
        if self.folder is None:
            return None
        try:
            root = self.reopened(number)
            root.file.check_sources()
        except (FileNotFoundError, HyperslabError):
            return None
        return root

    def reopened(self, number: int) -> Group:
        """An archive by references that were made of it: these lead to it, and to what it may lead to."""
        _, sources = locate(self.path(number), self.options, 0, self.allowed)
        known = str(self.place(number).absolute())
        return OpenFile(known, CHUNK_CACHE_NBYTES, replace(sources, near=None)).root

    def path(self, number: int) -> str:
        source = self.given[number]
        assert not isinstance(source, Group)
        path = os.fspath(source)
        return path if is_url(path) else os.path.abspath(path)  # noqa: PTH100 -- links stay links

    def place(self, number: int) -> Path:
        """Where the references of an archive are kept."""
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(self.path(number).encode()).hexdigest()[:32]}.hs"


def _names(paths: list[str]) -> list[str]:
    """The files' names without their endings; a number makes equal ones differ."""
    names: dict[str, None] = {}
    for path in paths:
        stem = Path(path).stem or "archive"
        name, number = stem, 1
        while name in names:
            number += 1
            name = f"{stem}_{number}"
        names[name] = None
    return list(names)


def encoded(place: Any, sources: Any) -> bytes:
    """The references of an archive as our own file of them has them; paths are absolute."""
    with TemporaryDirectory(prefix="hyperslab-index-") as folder:
        path = Path(folder) / "one.hs"
        Index({"": OpenFile(place, CHUNK_CACHE_NBYTES, sources).root}).save(path)
        return path.read_bytes()
