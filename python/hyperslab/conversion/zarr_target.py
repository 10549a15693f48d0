"""Converts any archive to a Zarr folder of version 2 or 3: documents, and chunks that our threads encode."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import TYPE_CHECKING, Any

import numpy as np

from hyperslab._core import ZarrArray as ArrayToWrite
from hyperslab.archive.tree.dimensions import PhonyDimensions
from hyperslab.chunk_grid import ceil_div
from hyperslab.conversion.encoding import Box, Bytes, SlabEncoder, folded
from hyperslab.conversion.filling import Filling
from hyperslab.conversion.journal import Finished
from hyperslab.conversion.reading import (
    BoxReader,
    bookkeeping_of,
    check_readable,
    limits_of,
    link_of,
    member_of,
    name_in_copy,
)
from hyperslab.conversion.slabs import SlabPlan
from hyperslab.conversion.sources import check_external, missing_sources
from hyperslab.conversion.wishes import ArrayWish, Wish, shape_of, usual_chunk_shape
from hyperslab.conversion.zarr_copies import ZarrCopy, stored_array
from hyperslab.errors import HyperslabError, Refused, RunError, printable
from hyperslab.references import zarr2, zarr3
from hyperslab.references.export import leave_out
from hyperslab.storage.chain import CodecChain, Step
from hyperslab.versions.layout.version_group import VersionGroup

if TYPE_CHECKING:
    from hyperslab.archive.tree.array import Array
    from hyperslab.archive.tree.group import Group

MOST_NAME_NBYTES = 255  # of a file's name
MOST_NAMED = 8
NO_LINKS = "Zarr has no links: what it leads to is not under this name in the copy"


class ZarrArray:
    """An array of a new Zarr folder. Each chunk, or each shard, becomes a file.

    Parameters
    ----------
    folder : Path
        The array's folder.
    document : Mapping[str, Any]
        Its `zarr.json` or `.zarray`.
    encoder : SlabEncoder
        How to encode its chunks.
    """

    is_replayable = True

    def __init__(self, folder: Path, document: Mapping[str, Any], encoder: SlabEncoder) -> None:
        self._folder = folder
        self._document = document
        self.encoder = encoder

    @property
    def elsewhere(self) -> ZarrArray:
        """What writes slabs in another process: chunks and shards are files of their own."""
        return ZarrArray(self._folder, self._document, replace(self.encoder, threads=1))

    def make(self, box: Box, data: Bytes) -> Finished:
        """Write a slab, in another process."""
        return self.write(box, data)

    def put(self, box: Box, made: Finished) -> Finished:  # noqa: ARG002 - HDF5 needs the box
        """Nothing: the other process has written the files."""
        return made

    def write(self, box: Box, data: Bytes) -> Finished:
        """Encode and write a slab."""
        encoder = self.encoder
        array = ArrayToWrite(json.dumps(self._document).encode(), str(self._folder), encoder.fill)
        first, shape = [one.start for one in box], tuple(one.stop - one.start for one in box)
        encoding = (encoder.steps, encoder.leaves_out_fill, encoder.threads)
        try:
            return Finished(folded(array.write_slab(first, (data, shape), encoding)), None, None)
        except OSError as error:
            error.filename = str(self._folder / error.filename)  # it is the name of a chunk
            raise

    def replay(self, box: Box, finished: Finished) -> None:
        """Nothing: the files are there."""

    def write_texts(self, box: Box, texts: np.ndarray[Any, Any]) -> None:
        """Write a chunk of text; at the edge it is filled up with empty text."""
        chunk_shape = self.encoder.chunk_shape
        whole = np.full(chunk_shape, "", object)
        inside: Any = (*(slice(0, one.stop - one.start) for one in box), ...)
        whole[inside] = texts
        text = np.frombuffer(zarr2.texts(whole), np.uint8)
        one_chunk = replace(self.encoder, chunk_shape=(len(text),), fill=b"\0", leaves_out_fill=False)
        chunks: list[bytes] = []
        one_chunk.encode((slice(0, len(text)),), text, lambda _, encoded, __: chunks.append(encoded or b""))
        self._put(tuple(one.start // chunk for one, chunk in zip(box, chunk_shape, strict=True)), chunks[0])

    def _put(self, index: tuple[int, ...], encoded: bytes) -> None:
        path = self._folder / chunk_key(self._document["zarr_format"], index)
        try:
            path.write_bytes(encoded)
        except FileNotFoundError:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(encoded)


def unfit_name(name: str, version: int) -> str | None:
    """Why no group or array of Zarr can have a name; None if it can. Names become names of folders."""
    is_reserved = name.startswith(".z") if version == 2 else name == "zarr.json" or name.startswith("__")
    if is_reserved or not name.strip(".") or "/" in name or "\0" in name:
        return f"Zarr has no names such as {printable(name)!r}"
    if len(name.encode("utf-8", "surrogateescape")) > MOST_NAME_NBYTES:
        return f"its name has more than {MOST_NAME_NBYTES} bytes, which no folder can have"
    return None


def _key(path: str, name: str) -> str:
    """The key of a document of an array; the array at the root of its store has the path ""."""
    return f"{path}/{name}" if path else name


def chunk_key(version: int, index: tuple[int, ...]) -> str:
    """The name of a chunk below its array's folder."""
    if version == 2:
        return ".".join(map(str, index)) or "0"
    return "/".join(("c", *map(str, index)))


def _boxes(array: Array, target: ZarrArray) -> Iterator[Box]:
    return SlabPlan(array.shape, target.encoder.chunk_shape, 1.0).boxes() if 0 not in array.shape else iter(())


class ToZarr:
    """Writes the documents of a new Zarr folder, and lists the arrays to fill.

    Parameters
    ----------
    source : Group
        The source.
    folder : Path
        The new folder.
    version : int
        2 or 3.
    wish : Wish
        The wanted chunks, shards and codecs.
    threads : int | None
        How many threads encode.
    """

    def __init__(self, source: Group, folder: Path, version: int, wish: Wish, threads: int | None) -> None:
        self._root = source
        self._folder = folder
        self._version = version
        self._wish = wish
        self._threads = threads
        self._phony = PhonyDimensions(source)
        self._documents: dict[str, dict[str, Any]] = {}
        self.fillings: list[Filling] = []
        self.copies: list[ZarrCopy] = []
        self.texts: list[tuple[str, Array, ZarrArray]] = []
        self.losses: list[tuple[str, str]] = []
        self.notes: list[tuple[str, str]] = []

    def build(self) -> None:
        """Describe all groups and arrays; nothing is written yet."""
        if [*self._root.kinds()] == [("", "array")]:  # an array at the root of its store stays one
            self._array("", self._root[""], self._phony.names(self._root).get(""))
            return
        seen: set[tuple[int, int]] = set()
        waiting = [("", self._root)]
        while waiting:
            prefix, group = waiting.pop()
            seen.add(group.key)
            documents = (zarr2 if self._version == 2 else zarr3).group_documents(prefix, group.attrs)
            self._add(prefix.rstrip("/") or "/", group, documents)
            names = self._phony.names(group)
            for name, kind in group.kinds():
                shown = name_in_copy(self._root, group, name)
                path = f"{prefix}{shown}"
                unfit = unfit_name(shown, self._version)
                if unfit is not None:
                    self.losses.append((path, unfit))
                elif kind in ("soft", "external"):
                    self.notes.append((path, NO_LINKS))
                elif kind in ("group", "array"):
                    inner = member_of(group, name)
                    if isinstance(inner, str):
                        self.losses.append((path, inner))
                    elif kind == "array":
                        self._array(path, inner, names.get(name))
                    elif inner.key in seen:
                        self.notes.append((path, NO_LINKS))
                    else:
                        waiting.append((f"{path}/", inner))
                else:
                    self.losses.append((path, f"it cannot be read: {printable(str(link_of(group, name)))}"))

    def write_documents(self) -> None:
        """Write all documents, and one with all of them together."""
        for key, document in self._documents.items():
            path = self._folder / key
            path.parent.mkdir(parents=True, exist_ok=True)
            is_root = key == "zarr.json" and document["node_type"] == "group"
            path.write_text(json.dumps(self._with_all(document) if is_root else document, indent=1))
        if self._version == 2 and ".zgroup" in self._documents:
            together = {"zarr_consolidated_format": 1, "metadata": self._documents}
            (self._folder / ".zmetadata").write_text(json.dumps(together, indent=1))

    def write_texts(self, *, skip_unsupported: bool) -> None:
        """Write the arrays of text, chunk by chunk: only writing shows whether they are valid UTF-8.

        Parameters
        ----------
        skip_unsupported : bool
            Leave out an array whose text is not, instead of refusing it.

        Raises
        ------
        Refused
            Some text is not valid UTF-8; the message names the array.
        """
        for text in list(self.texts):
            path, array, target = text
            try:
                for box in _boxes(array, target):
                    target.write_texts(box, np.asarray(array.read(box), object))
            except Refused as refused:
                if not skip_unsupported:
                    raise Refused(f"{path}: {refused}: leave it out with --skip-unsupported") from refused
                self.texts.remove(text)
                self.losses.append((path, str(refused)))
                self._documents = {key: one for key, one in self._documents.items() if not key.startswith(f"{path}/")}
                rmtree(self._folder / path, ignore_errors=True)

    def verify_texts(self, again: Group) -> None:
        """Read the arrays of text again, from the new folder, and compare them with the source.

        Raises
        ------
        RunError
            Some text reads differently.
        """
        for path, array, target in self.texts:
            copy: Any = again[path]
            for box in _boxes(array, target):
                if not np.array_equal(np.asarray(array.read(box), object), np.asarray(copy.read(box), object)):
                    raise RunError(f"{path}: its text reads differently from what was written; please report it")

    def _with_all(self, root: dict[str, Any]) -> dict[str, Any]:
        """The root's document in Zarr 3, with all others as zarr-python consolidates them."""
        inner = {key.removesuffix("/zarr.json"): one for key, one in self._documents.items() if key != "zarr.json"}
        return {**root, "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": inner}}

    def _array(self, path: str, array: Any, dims: tuple[str, ...] | None) -> None:
        if array.is_dimension_only:
            return
        try:
            if array.is_null:
                raise Refused("it has no elements (a null dataspace)")
            check_readable(array)
            check_external(array)
            gone = missing_sources(array)
            if gone is not None:
                self.losses.append((path, gone))  # it is copied all the same, if you allow that
            filling = self._described(path, array, dims)
        except HyperslabError as error:
            self.losses.append((path, str(error)))
            return
        if filling is not None:
            self.fillings.append(filling)

    def _described(self, path: str, array: Array, dims: tuple[str, ...] | None) -> Filling | None:
        wish = self._wish.of(path)
        is_kept = isinstance(self._root, VersionGroup) and wish == ArrayWish()
        stored = stored_array(path, array, list(dims or ()), self._version, self._folder) if is_kept else None
        about: Mapping[str, Any] = array.dtype.metadata or {}
        enumerated = about.get("enum")
        if enumerated:
            named = ", ".join(f"{name} = {value}" for name, value in list(enumerated.items())[:MOST_NAMED])
            said = f"Zarr has no enumerations, so the names of its numbers are lost ({named})"
            (self.losses if stored is None else self.notes).append((path, said))
        if stored is not None:
            self._add(path, array, stored[0])
            self.copies.append(stored[1])
            return None
        is_text = array.dtype.hasobject
        if is_text and not array.is_text:
            raise Refused("its elements have variable length, and are not text")
        width = 1 if is_text else array.dtype.itemsize
        kept = array.chunks or usual_chunk_shape(array.shape, array.dtype.itemsize)
        limits = None if array.format == "zarr" else limits_of(self._root, array)  # any array of Zarr can grow, few do
        chunks = shape_of(wish.chunks, array.shape, dims, kept, limits) or ()
        shards = shape_of(wish.shards, array.shape, dims, None, limits) if wish.shards is not None else None
        if shards is not None and is_text:
            self.notes.append((path, "its text is stored without shards"))
            shards = None
        if shards is not None:
            wanted = shards
            shards = tuple(ceil_div(shard, chunk) * chunk for shard, chunk in zip(shards, chunks, strict=True))
            if any(a < b and a < n for a, b, n in zip(wanted, shards, array.shape, strict=True)):
                said = "×".join(map(str, shards))
                self.notes.append((path, f"shards consist of whole chunks, so they have the shape {said}"))
        chain = CodecChain.nearest(array.codecs, array.filters) if wish.codec is None else wish.codec
        folder = self._folder / path
        make = self._zarr2 if self._version == 2 else self._zarr3
        documents, steps, leaves_out, fill = make(path, array, list(dims or ()), chunks, shards, chain, width)
        self._add(path, array, documents)
        unit = shards or chunks
        encoder = SlabEncoder(chunks, tuple(steps), fill, self._threads, leaves_out)
        described = documents[_key(path, ".zarray" if self._version == 2 else "zarr.json")]
        target = ZarrArray(folder, described, encoder)
        if is_text:
            self.texts.append((path, array, target))
            return None
        return Filling(path, array.shape, width, fill, array.chunks, unit, BoxReader(array, self._threads), target)

    def _zarr2(
        self, path: str, array: Array, dims: list[str], chunks: tuple[int, ...], _: Any, chain: Any, width: int
    ) -> tuple[dict[str, Any], list[Step], bool, bytes]:
        attributes = zarr2.plain_attributes(array.attrs)
        filters, last, steps = chain.zarr2(width)
        if array.dtype.hasobject:
            dtype: Any = "|O"
            filters, steps = [{"id": "vlen-utf8"}], [step for step in steps if step[0] != "shuffle"]
            fill: Any = ""
            element = b"\0"
        else:
            dtype = zarr2.dtype_of(array.dtype)
            given = zarr2.marked(array)
            fill = None if given is None else zarr2.json_fill(given[()])
            element = array.fill_bytes if given is None else given.tobytes()
            if given is not None:
                attributes.pop("_FillValue", None)
        codecs = {"compressor": last, "filters": filters, "order": "C"}
        document = {**zarr2.array_document(array, chunks, dtype, fill), **codecs}
        attributes = {**attributes, "_ARRAY_DIMENSIONS": dims}
        return {_key(path, ".zarray"): document, _key(path, ".zattrs"): attributes}, steps, fill is not None, element

    def _zarr3(
        self, path: str, array: Array, dims: list[str], chunks: tuple[int, ...], shards: Any, chain: Any, width: int
    ) -> tuple[dict[str, Any], list[Step], bool, bytes]:
        codecs, steps = chain.zarr3(width)
        if array.dtype.hasobject:
            steps = [step for step in steps if step[0] != "shuffle"]
            codecs = [one for one in codecs if one["name"] != "numcodecs.shuffle"]
            described: dict[str, Any] = {"data_type": "string", "fill_value": "", "codecs": [{"name": "vlen-utf8"}]}
            described["chunk_grid"] = zarr3.regular_grid(chunks)
            element = b"\0"
        else:
            element = array.fill_bytes
            described = zarr3.description(array.dtype, np.frombuffer(element, array.dtype, 1)[0], chunks)
        inner = [*described["codecs"], *codecs]
        if shards is not None:
            index = [{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "crc32c"}]
            settings = {"chunk_shape": list(chunks), "codecs": inner, "index_codecs": index, "index_location": "end"}
            inner = [{"name": "sharding_indexed", "configuration": settings}]
            described = {**described, "chunk_grid": zarr3.regular_grid(shards)}
        document: dict[str, Any] = {
            "zarr_format": 3, "node_type": "array", "shape": list(array.shape), **described, "codecs": inner,
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "attributes": zarr3.attributes(array), "storage_transformers": [],
        }  # fmt: skip
        if dims:
            document["dimension_names"] = dims
        return {_key(path, "zarr.json"): document}, steps, True, element

    def _add(self, path: str, node: Any, documents: dict[str, dict[str, Any]]) -> None:
        """Keep the documents of a group or array, and note which of its attributes they lack."""
        left = bookkeeping_of(self._root, node)
        leave_out(documents, left)
        self._documents |= documents
        kept: set[str] = set()
        for key, one in documents.items():
            kept |= set(
                one.get("attributes", ()) if key.endswith("zarr.json") else one if key.endswith(".zattrs") else ()
            )
        for name in node.attrs:
            if name not in kept and name not in left and name != "_FillValue":
                self.losses.append((path, f"JSON cannot express its attribute {printable(name)!r}"))
