"""`index` finds out where the chunks of archives are, so that you can save this as references and open them later."""

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
from hyperslab.archive.collections.source_files import are_many, matching, threads_for
from hyperslab.archive.far.allowed import Locations
from hyperslab.archive.far.listing import is_pattern
from hyperslab.archive.far.remote import Remote, SourceResolver, is_url, shown
from hyperslab.archive.opening import open
from hyperslab.archive.tree.group import Group, root_of
from hyperslab.archive.tree.locating import locate
from hyperslab.archive.tree.open_file import OpenFile
from hyperslab.archive.tree.whole import check_whole
from hyperslab.archive.views import display_html
from hyperslab.archive.views.display import counted
from hyperslab.errors import HyperslabError, Refused, UsageError
from hyperslab.memory import CHUNK_CACHE_NBYTES
from hyperslab.progress import watched
from hyperslab.quantities import nbytes_text
from hyperslab.references import icechunk, kerchunk, zarr2, zarr3
from hyperslab.references.export import Export
from hyperslab.references.side_by_side import by_dask, by_threads
from hyperslab.replacing import replacing

MOST_OPEN = 100  # files
SUFFIXES = (".json", ".parquet", ".parq", ".hs")
Source = str | os.PathLike[str] | Group


@dataclass(frozen=True)
class Referenced:
    """A summary of the references that were written."""

    file_count: int
    array_count: int
    chunk_count: int  # stored chunks, inline ones included
    left_out: Mapping[str, str]  # arrays that could not be expressed, with the reasons

    def _repr_html_(self) -> str:
        known = [("files", f"{self.file_count:,}"), ("arrays", f"{self.array_count:,}")]
        known += [("stored chunks", f"{self.chunk_count:,}"), *self._more()]
        known += [(f"left out: {name}", reason) for name, reason in self.left_out.items()]
        return display_html.facts(f"hyperslab.{type(self).__name__}", self._where(), known)

    def _where(self) -> str:
        return ""

    def _more(self) -> list[tuple[str, str]]:
        return []


@dataclass(frozen=True)
class Saved(Referenced):
    """A summary of a file or folder of references that was saved."""

    path: str
    nbytes: int  # of the file, or of all files of the folder

    def _where(self) -> str:
        return self.path

    def _more(self) -> list[tuple[str, str]]:
        return [("size", nbytes_text(self.nbytes))]


class Index:
    """Archives whose metadata have been read. `roots` maps the names of their groups in the references to their roots.

    A single archive has the name "", because it is the root of the references itself.
    """

    def __init__(self, roots: Mapping[str, Group]) -> None:
        for root in roots.values():
            if root.name != "/":
                raise UsageError(f"{root.name} of {root.filename} is not a whole archive: index its root instead")
            check_whole(root)
        self.roots: MappingProxyType[str, Group] = MappingProxyType(dict(roots))
        self.lasting: TemporaryDirectory[str] | None = None  # holds the files of the roots; removed with the index

    def __repr__(self) -> str:
        return f"<hyperslab.Index of {counted(len(self.roots), 'archive', 'archives')}>"

    def _repr_html_(self) -> str:
        cells = ((name or "/", root.filename, f"{len(root):,}") for name, root in self.roots.items())
        name = f"of {counted(len(self.roots), 'archive', 'archives')}"
        return display_html.rows("hyperslab.Index", name, ("group", "file", "names in it"), cells, [])

    def save(
        self,
        target: str | os.PathLike[str],
        *,
        inline_threshold: int = 500,
        skip_unsupported: bool = False,
        record_size: int = kerchunk.RECORD_SIZE,
    ) -> Saved:
        """Write references. An existing target is replaced in one step, and only if everything succeeded.

        The ending of `target` chooses the format. `.hs` is hyperslab's own format, which holds everything and opens at
        once. `.json` and `.parquet` are kerchunk's formats for xarray, zarr-python and other readers of Zarr.

        Parameters
        ----------
        target : str | os.PathLike[str]
            Where to write.
        inline_threshold : int
            Store arrays of at most this many bytes as values in kerchunk's references. Arrays in files to which an
            archive leads are stored as values only if you gave `allowed=`.
        skip_unsupported : bool
            Leave out arrays that kerchunk's references cannot express, instead of refusing them.
        record_size : int
            Number of references in one Parquet table.

        Returns
        -------
        Saved
            The path and its size in bytes, how many files, arrays and chunks the references cover, and which arrays
            were left out.

        Raises
        ------
        Refused
            An array cannot be expressed; the message has its name and the reason.
        UsageError
            The target has another ending, or cannot be written.
        """
        path = Path(target)
        self._check_queries(path)
        if path.suffix not in SUFFIXES:
            raise UsageError(f"the name {path} does not say which format to write: end it with {', '.join(SUFFIXES)}")
        if record_size < 1 or inline_threshold < 0:
            raise UsageError(
                f"record_size is {record_size} and inline_threshold is {inline_threshold}: use at least 1 and 0"
            )
        if path.suffix == ".hs":
            return self._save_own(path)
        export = Export(zarr2, inline_threshold, skip_unsupported)
        if path.suffix == ".json":
            kerchunk.save_json(self.roots, path, export)
        else:
            kerchunk.save_parquet(self.roots, path, export, record_size)
        return self._saved(path, export.array_count, export.chunk_count, export.left_out)

    def to_icechunk(self, store: Any, *, inline_threshold: int = 500, skip_unsupported: bool = False) -> Referenced:
        """Write virtual references into an Icechunk store, for zarr-python and xarray. You commit the session yourself.

        The repository must have virtual chunk containers for the files. Each reference keeps the ETag of a remote file
        or the modification time of a local one, so Icechunk refuses chunks of a file that has changed.

        Parameters
        ----------
        store : icechunk.IcechunkStore
            The store of a writable session.
        inline_threshold : int
            Write arrays of at most this many bytes as values, as in `save`.
        skip_unsupported : bool
            Leave out arrays that Zarr 3 cannot express, instead of refusing them.

        Returns
        -------
        Referenced
            How many files, arrays and chunks the references cover, and which arrays were left out.

        Raises
        ------
        Refused
            An array cannot be expressed; the message has its name and the reason.
        UsageError
            The store is read-only, has no container for a file, or already has an array of that name.
        FileChanged
            A file has changed since it was indexed.
        """
        export = Export(zarr3, inline_threshold, skip_unsupported)
        icechunk.save(self.roots, store, export)
        left_out = MappingProxyType(dict(export.left_out))
        return Referenced(len(self.roots), export.array_count, export.chunk_count, left_out)

    def _check_queries(self, path: Path) -> None:
        """Refuse URLs with a query: it may be a secret or select the file, so it can be neither kept nor left out."""
        remedy = "open the URL without it, pass storage_options={'query': ...}, and save a .hs"
        for root in self.roots.values():
            own = root.opened.opened_urls
            is_told_by_query = len(set(map(shown, own))) < len(set(own))
            asked = own if path.suffix != ".hs" or is_told_by_query else []
            for url in (*asked, *root.file.urls):
                if "?" in url and url.lower().startswith("http"):
                    raise Refused(f"{shown(url)} was opened with a query, which references never contain: {remedy}")

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


@watched("files")
def index(
    sources: Source | Iterable[Source],
    *,
    storage_options: Mapping[str, Any] | None = None,
    resume: str | os.PathLike[str] | None = None,
    progress: Callable[[str, int, int], None] | None = None,
    threads: int | None = None,
    scheduler: Any = None,
    allowed: Locations | None = None,
) -> Index:
    """Find out where all chunks of archives are; several archives are indexed in parallel.

    Parameters
    ----------
    sources : Source | Iterable[Source]
        Files, patterns such as `"*.nc"`, URLs, or groups that `hyperslab.open` returned. Several sources become groups,
        named after their files.
    storage_options : Mapping[str, Any] | None
        How to reach URLs, as for `open`. References never contain them.
    resume : str | os.PathLike[str] | None
        A folder that receives the references of each file as soon as they are known. Files whose references are in it
        already, and that have not changed since, are not indexed again.
    progress : Callable[[str, int, int], None] | None
        Called after each file with its name, the number of files indexed, and the number of all files. Without it,
        notebooks show a bar after two seconds.
    threads : int | None
        How many files to index at a time. The default is one per core, or 32 if some files are remote.
    scheduler : str | distributed.Client | None
        Index on the workers of a Dask scheduler instead: its address, or a `distributed.Client`. The workers must find
        the files under the same paths. They are sent no credentials; they take them from their environment, or from
        `hyperslab.credentials` called there.
    allowed : Locations | None
        Where the files may lead, as for `open`.

    Returns
    -------
    Index
        The indexed archives; call `save` to write references.

    Raises
    ------
    UsageError
        There is nothing to index.
    DamagedFile
        A file is shorter than its own header says.
    MissingLibrary
        `scheduler` needs Dask.
    """
    given = list(expanded(sources, storage_options))
    if not given:
        raise UsageError("there is nothing to index: give at least one file")
    if threads is not None and threads < 1:
        raise UsageError(f"threads is {threads}: use at least 1")
    lasting = None
    if resume is None and (len(given) > MOST_OPEN or scheduler is not None):
        # Keep references instead of open files, because there may be more files than a process may open.
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
    made = Index({"": ordered[0]} if len(ordered) == 1 else dict(zip(_names(paths), ordered, strict=True)))
    made.lasting = lasting
    return made


def expanded(sources: Source | Iterable[Source], options: Mapping[str, Any] | None = None) -> Iterator[Source]:
    """The sources with each pattern replaced by the files that match it, in the order of `hyperslab.open`.

    Raises
    ------
    FileNotFoundError
        A pattern matches no file.
    """
    for source in [sources] if isinstance(sources, str | os.PathLike | Group) else sources:
        is_many = isinstance(source, str) and (are_many(source) or is_pattern(source))
        yield from matching(source, options) if isinstance(source, str) and is_many else [source]


@dataclass(frozen=True)
class _Gathering:
    """Archives that are being opened, through their references in a folder if there is one."""

    given: list[Source]
    folder: Path | None
    options: dict[str, Any]
    threads: int
    allowed: Locations | None

    def roots(self, scheduler: Any) -> Iterator[tuple[int, Group]]:
        """Yield the number and root of each archive as it is ready."""
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
        for number, content in by_dask(encoded, missing.items(), scheduler):
            known = self.kept_at(number)
            with replacing(known, is_synced=False) as beside:
                beside.write_bytes(content)
            yield number, self.reopened(number)

    def opened(self, number: int) -> Group:
        """Open an archive, through its references if they exist and are up to date."""
        known = self.known(number)
        if known is not None:
            return known
        root = open(self.path(number), storage_options=self.options, allowed=self.allowed)
        if self.folder is None:
            return root
        Index({"": root})._save_own(self.kept_at(number), is_synced=False)
        root.close()
        return self.reopened(number)

    def known(self, number: int) -> Group | None:
        """An archive that is open already or has valid references; None if it must be indexed."""
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
        """Open an archive through its references, which may lead to the archive and to where it may lead."""
        _, resolver = locate(self.path(number), self.options, 0, self.allowed)
        known = str(self.kept_at(number).absolute())
        return root_of(OpenFile(known, CHUNK_CACHE_NBYTES, replace(resolver, near=None)))

    def path(self, number: int) -> str:
        source = self.given[number]
        assert not isinstance(source, Group)
        path = os.fspath(source)
        return path if is_url(path) else os.path.abspath(path)  # noqa: PTH100 -- links are not resolved

    def kept_at(self, number: int) -> Path:
        """The path of the references of an archive."""
        assert self.folder is not None
        return self.folder / f"{hashlib.sha256(self.path(number).encode()).hexdigest()[:32]}.hs"


def _names(paths: list[str]) -> list[str]:
    """The names of the files without their endings; equal names get a number."""
    names: dict[str, None] = {}
    for path in paths:
        stem = Path(path).stem or "archive"
        name, number = stem, 1
        while name in names:
            number += 1
            name = f"{stem}_{number}"
        names[name] = None
    return list(names)


def encoded(location: str | Remote, resolver: SourceResolver) -> bytes:
    """The content of a `.hs` file of references to an archive, with absolute paths. Dask workers call this."""
    with TemporaryDirectory(prefix="hyperslab-index-") as folder:
        path = Path(folder) / "one.hs"
        Index({"": root_of(OpenFile(location, CHUNK_CACHE_NBYTES, resolver))}).save(path)
        return path.read_bytes()
