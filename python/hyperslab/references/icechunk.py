"""Virtual references in an Icechunk store: Zarr 3 documents, and for each chunk its byte range in a file.

Icechunk reads these files through virtual chunk containers, which say how to reach the files below a prefix.
"""

from __future__ import annotations

import json
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.errors import FileChanged, Refused, UsageError
from hyperslab.needed import missing
from hyperslab.references.chunks import ChunkTable
from hyperslab.references.export import Document, Export

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group

ESCAPED = re.compile(r"[^!-~]|[\"#%<>?`{}^|\\]")  # characters that URLs escape
BLOCK = 50_000  # number of references passed to Icechunk at a time


def save(roots: Mapping[str, Group], store: Any, export: Export) -> None:
    """Write references into a writable Icechunk store. If anything is refused, nothing is written.

    Raises
    ------
    Refused
        An array cannot be expressed, or Icechunk cannot find a file.
    UsageError
        The store is not an Icechunk store, cannot be written to, already has one of the arrays, or has no container for
        a file that holds chunks.
    FileChanged
        A file has changed since it was indexed.
    """
    _check_store(store)
    for root in roots.values():
        root.file.check_sources()
    items = list(export.items(roots))
    paths = {path for _, item in items if isinstance(item, ChunkTable) for path in item.used_paths()}
    checksums = {path: _checksum(path, roots.values()) for path in sorted(paths)}
    _check_containers(store, paths)
    _check_new(store, items)
    for key, item in items:
        if isinstance(item, ChunkTable):
            _set_chunks(store, key, item, checksums)
        else:
            _set(store, key, json.dumps(item, allow_nan=False).encode())


def _url(path: str) -> str:
    """A file's URL, escaped if it is a local path. Refused if Icechunk would not find the object."""
    if "://" in path and not path.startswith("http") and ESCAPED.search(path):
        raise Refused(f"Icechunk cannot find objects whose name has characters that URLs escape: {path}")
    return path if "://" in path else Path(path).as_uri()


def _check_store(store: Any) -> None:
    try:
        from icechunk import IcechunkStore
    except ImportError as error:
        raise missing("icechunk") from error
    if not isinstance(store, IcechunkStore):
        kind = type(store).__name__
        raise UsageError(f"{kind} is not an Icechunk store: use repository.writable_session('main').store")
    if store.read_only:
        raise UsageError("the Icechunk store is read-only: use repository.writable_session('main').store")


def _checksum(path: str, roots: Iterable[Group]) -> Any:
    """The checksum by which Icechunk detects a changed file: a remote file's ETag, if any, or the modification time.

    Icechunk keeps whole seconds, so it cannot detect a change in the same second as the last change before indexing.
    """
    indexed = next((root.file.version for root in roots if root.filename == path), None)
    if "://" in path:
        return indexed if indexed is not None and indexed.startswith(('"', "W/")) else None
    about = os.stat(path)  # noqa: PTH116
    if indexed is not None and indexed != f"{about.st_size} bytes of {about.st_mtime_ns}":
        raise FileChanged(f"{path} has changed since it was indexed: index it again")
    return datetime.fromtimestamp(math.ceil(about.st_mtime), UTC)


def _check_containers(store: Any, paths: Iterable[str]) -> None:
    prefixes = tuple(store.session.config.virtual_chunk_containers or {})
    for path in sorted(paths):
        if not _url(path).startswith(prefixes):
            folder = _url(path).partition("%")[0].rpartition("/")[0] + "/"  # Icechunk cannot find an escaped prefix
            has = f"has containers only for {', '.join(prefixes)}" if prefixes else "has no virtual chunk containers"
            raise UsageError(
                f"the Icechunk repository {has}, so it cannot reach {path}: call set_virtual_chunk_container("
                f"VirtualChunkContainer({folder!r}, ...)) on its configuration, and save the configuration"
            )


def _check_new(store: Any, items: Iterable[tuple[str, Document | ChunkTable]]) -> None:
    from zarr.core.sync import sync

    for key, item in items:
        if not isinstance(item, ChunkTable) and item["node_type"] == "array" and sync(store.exists(key)):
            name = key.removesuffix("/zarr.json")
            raise UsageError(f"the Icechunk store already has {name}: delete it first, or use another store")


def _set(store: Any, key: str, value: bytes) -> None:
    from zarr.core.buffer.cpu import Buffer
    from zarr.core.sync import sync

    sync(store.set(key, Buffer.from_bytes(value)))


def _set_chunks(store: Any, name: str, table: ChunkTable, checksums: Mapping[str, Any]) -> None:
    for block in _blocks(table, checksums):
        failed = store.set_virtual_refs(name, block, validate_containers=True)
        if failed:
            raise Refused(f"Icechunk does not accept virtual chunks in {block[0].location} for {name}")
    for position, chunk in table.inline.items():
        index = np.unravel_index(position, table.grid_shape) if table.grid_shape else ()
        _set(store, "/".join([name, "c", *(str(int(number)) for number in index)]), chunk)


def _blocks(table: ChunkTable, checksums: Mapping[str, Any]) -> Iterator[list[Any]]:
    from icechunk import VirtualChunkSpec

    urls = {k: _url(path) for k, path in enumerate(table.paths) if path in checksums}
    etags = {k: checksum for k in urls if isinstance(checksum := checksums[table.paths[k]], str)}
    times = {k: checksum for k in urls if isinstance(checksum := checksums[table.paths[k]], datetime)}
    for start in range(0, len(table.positions), BLOCK):
        block = slice(start, start + BLOCK)
        axes = np.unravel_index(table.positions[block], table.grid_shape) if table.grid_shape else ()
        indices = np.stack(axes, axis=1).tolist() if axes else [[] for _ in table.positions[block]]
        files, offsets, lengths = (column[block].tolist() for column in (table.files, table.offsets, table.lengths))
        rows = zip(indices, files, offsets, lengths, strict=True)
        yield [
            VirtualChunkSpec(index, urls[k], at, nbytes, etags.get(k), times.get(k)) for index, k, at, nbytes in rows
        ]
