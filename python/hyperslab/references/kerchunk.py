"""kerchunk's references, version 1: one JSON document, or a folder with a Parquet table for each part of an array.

The layouts are those of `docs/source/spec.rst` in fsspec/kerchunk, and of `LazyReferenceMapper` in
fsspec's `implementations/reference.py`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab.errors import MissingLibrary, Refused
from hyperslab.references import zarr2
from hyperslab.references.chunks import ChunkTable
from hyperslab.references.replacing import replacing

if TYPE_CHECKING:
    from hyperslab.archive import Array, Group

RECORD_SIZE = 100_000  # references of one Parquet table


@dataclass
class Export:
    """What goes into references, and what became of it."""

    inline_threshold: int
    skip_unsupported: bool
    array_count: int = 0
    chunk_count: int = 0
    left_out: dict[str, str] = field(default_factory=dict)

    def items(self, roots: Mapping[str, Group]) -> Iterator[tuple[str, dict[str, Any] | ChunkTable]]:
        """Documents under their keys, and the table of chunks of each array under the array's name.

        Raises:
            Refused: An array cannot be said in Zarr 2, and is not to be left out.
        """
        if list(roots) != [""]:
            yield from _group("", {})
        for name, root in roots.items():
            yield from self._tree(f"{name}/" if name else "", root)

    def _tree(self, prefix: str, root: Group) -> Iterator[tuple[str, dict[str, Any] | ChunkTable]]:
        from hyperslab.archive import Group

        dimensions = Dimensions()
        found = [("", root), *below(root)]
        for path, node in found:
            if isinstance(node, Group):
                yield from _group(f"{prefix}{path}/" if path else prefix, zarr2.plain_attributes(node.attrs))
        for path, node in found:
            if not isinstance(node, Group) and not node.is_dimension_only:
                yield from self._array(prefix + path, node, dimensions)

    def _array(
        self, path: str, array: Array, dimensions: Dimensions
    ) -> Iterator[tuple[str, dict[str, Any] | ChunkTable]]:
        try:
            if any(part.startswith(".z") for part in path.split("/")):
                raise Refused("its name is one of Zarr's own documents")
            described = zarr2.described(array, self.inline_threshold)
        except Refused as refused:
            if not self.skip_unsupported:
                said = f"array {array.name} of {array.filename} cannot be referenced: {refused}"
                raise Refused(f"{said}; leave out such arrays, or save references of our own (.hs)") from refused
            self.left_out[path] = str(refused)
            return
        attributes = {**described.attributes, "_ARRAY_DIMENSIONS": dimensions.of(path, array)}
        yield f"{path}/.zarray", described.zarray
        yield f"{path}/.zattrs", attributes
        yield path, described.table
        self.array_count += 1
        self.chunk_count += len(described.table.places) + len(described.table.inline)


class Dimensions:
    """Names for the axes of arrays: their own, or in each group `phony_dim_0` and so on, one for each length."""

    def __init__(self) -> None:
        self._phony: dict[str, list[int]] = {}

    def of(self, path: str, array: Array) -> list[str]:
        """A name for each axis, none twice."""
        lengths = self._phony.setdefault(path.rpartition("/")[0], [])
        given = array.dims if array.dims is not None and len(array.dims) == array.ndim else ("",) * array.ndim
        named: list[str] = []
        for name, length in zip(given, array.shape, strict=True):
            named.append(name if name and name not in named else self._next(lengths, length, named))
        return named

    @staticmethod
    def _next(lengths: list[int], length: int, taken: list[str]) -> str:
        for number, known in enumerate(lengths):
            if known == length and f"phony_dim_{number}" not in taken:
                return f"phony_dim_{number}"
        lengths.append(length)
        return f"phony_dim_{len(lengths) - 1}"


def below(root: Group) -> list[tuple[str, Group | Array]]:
    """Everything below a group by its path; what cannot be had is left out."""
    found: list[tuple[str, Group | Array]] = []
    root.visititems(lambda path, node: found.append((path, node)))
    return found


def _group(prefix: str, attributes: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any] | ChunkTable]]:
    yield f"{prefix}.zgroup", {"zarr_format": 2}
    yield f"{prefix}.zattrs", attributes


def save_json(roots: Mapping[str, Group], target: Path, export: Export) -> None:
    """One document: `{"version": 1, "refs": {...}}`, written as it is made."""
    with replacing(target) as beside, beside.open("w", encoding="utf-8") as stream:
        stream.write('{"version": 1, "refs": {')
        separator = "\n"
        for key, item in export.items(roots):
            for line in _lines(key, item):
                stream.write(separator)
                stream.write(line)
                separator = ",\n"
        stream.write("\n}}\n")


def _lines(key: str, item: dict[str, Any] | ChunkTable) -> Iterator[str]:
    if not isinstance(item, ChunkTable):
        yield f"{json.dumps(key)}: {json.dumps(json.dumps(item))}"
        return
    start = json.dumps(f"{key}/")[:-1]
    paths = {path: json.dumps(path) for path in item.paths}
    for name, path, offset, length in item.named():
        yield f'{start}{name}": [{paths[path]}, {offset}, {length}]'
    for place, chunk in item.inline.items():
        yield f'{start}{item.key(place)}": "{zarr2.encoded(chunk)}"'


def save_parquet(roots: Mapping[str, Group], target: Path, export: Export, record_size: int = RECORD_SIZE) -> None:
    """A folder: `.zmetadata` with all documents, and for each array tables of `record_size` chunks."""
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise MissingLibrary("Parquet needs pyarrow: pip install 'hyperslab[report]'") from error
    documents: dict[str, dict[str, Any]] = {}
    with replacing(target, is_folder=True) as beside:
        beside.mkdir()
        for key, item in export.items(roots):
            if isinstance(item, ChunkTable):
                _save_tables(item, beside / key, record_size)
            else:
                documents[key] = item
        text = json.dumps({"metadata": documents, "record_size": record_size})
        (beside / ".zmetadata").write_text(text, encoding="utf-8")


def _save_tables(table: ChunkTable, folder: Path, record_size: int) -> None:
    """Tables `refs.N.parq` of exactly `record_size` rows; those without any chunk are written too: readers ask."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = np.array([*table.paths, None], object)
    for number in range(-(-table.chunk_count // record_size)):
        first = number * record_size
        start, stop = np.searchsorted(table.places, [first, first + record_size])
        rows, own = table.places[start:stop] - first, slice(start, stop)
        path, raw = np.full(record_size, None, object), np.full(record_size, None, object)
        offset, size = np.zeros(record_size, np.int64), np.zeros(record_size, np.int64)
        path[rows], offset[rows], size[rows] = paths[table.files[own]], table.offsets[own], table.lengths[own]
        for place, chunk in table.inline.items():
            if first <= place < first + record_size:
                raw[place - first] = chunk
        _write_table(folder / f"refs.{number}.parq", path, offset, size, raw)


def _write_table(file: Path, path: Any, offset: Any, size: Any, raw: Any) -> None:
    import pyarrow
    from pyarrow import parquet

    columns = {
        "path": pyarrow.array(path, pyarrow.string()),
        "offset": pyarrow.array(offset),
        "size": pyarrow.array(size),
        "raw": pyarrow.array(raw, pyarrow.binary()),
    }
    parquet.write_table(
        pyarrow.table(columns), file, compression="zstd", use_dictionary=["path"], write_statistics=False
    )
