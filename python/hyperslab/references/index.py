"""`index`: archives opened once for all, so that where their chunks are can be saved and opened again."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import Any

from hyperslab._core import save_references
from hyperslab.archive import Group, open
from hyperslab.errors import HyperslabError, UsageError
from hyperslab.references import icechunk, kerchunk, zarr2, zarr3
from hyperslab.references.export import Export
from hyperslab.references.replacing import replacing

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
            inline_threshold: Arrays of at most so many bytes are put into kerchunk's references as values.
            skip_unsupported: Leave out arrays that kerchunk's references cannot express, instead of refusing them.
            record_size: References of one Parquet table.

        Raises:
            Refused: An array cannot be expressed; the message has its name and the reason.
            UsageError: The target has another ending, or cannot be written to.
        """
        path = Path(target)
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
            inline_threshold: Arrays of at most so many bytes are written as values.
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

    def _save_own(self, path: Path) -> Saved:
        folder = str(path.absolute().parent)
        with replacing(path) as beside:
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
) -> Index:
    """Read where all chunks of archives are.

    Args:
        sources: Files, URLs, or what `hyperslab.open` gave; several become groups, named after their files.
        storage_options: How to reach URLs, as for `open`. References never hold them: `.hs` files are read with what
            the environment says.
        resume: A folder for the references of each file as soon as they are known. Files that are in it already
            and have not changed since are not indexed again.
        progress: Called with a file's name, how many were done before it, and how many there are.

    Returns:
        An `Index`; `save` writes it.

    Raises:
        UsageError: There is nothing to index.
    """
    given = [sources] if isinstance(sources, str | os.PathLike | Group) else list(sources)
    if not given:
        raise UsageError("nothing to index: no file was given")
    lasting = None
    if resume is None and len(given) > MOST_OPEN:
        lasting = TemporaryDirectory(prefix="hyperslab-index-")  # references hold no file open: there may be too many
    folder = Path(lasting.name) if lasting else Path(resume) if resume is not None else None
    if folder is not None:
        folder.mkdir(exist_ok=True)
    paths = [source.filename if isinstance(source, Group) else os.fspath(source) for source in given]
    roots = []
    for done, (path, source) in enumerate(zip(paths, given, strict=True)):
        if progress is not None:
            progress(path, done, len(given))
        roots.append(source if isinstance(source, Group) else _indexed(source, folder, storage_options))
    found = Index({"": roots[0]} if len(roots) == 1 else dict(zip(_names(paths), roots, strict=True)))
    found.lasting = lasting
    return found


def _indexed(source: str | os.PathLike[str], folder: Path | None, storage_options: Mapping[str, Any] | None) -> Group:
    """An archive; from its references in a folder if they are there and true."""
    if folder is None:
        return open(source, storage_options=storage_options)
    name = hashlib.sha256(os.path.abspath(source).encode()).hexdigest()[:32]  # noqa: PTH100 -- links stay links
    known = folder / f"{name}.hs"
    try:
        root = open(known)
        root.file.check_sources()
    except (FileNotFoundError, HyperslabError):
        root = open(source, storage_options=storage_options)
        Index({"": root}).save(known)
        root.close()
        return open(known)
    return root


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
