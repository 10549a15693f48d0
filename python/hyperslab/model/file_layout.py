"""The layouts of arrays in existing files, with the locations of their chunks."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab import h5
from hyperslab.archive.far.remote import is_url, shown
from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.whole import check_whole
from hyperslab.errors import Refused, UsageError
from hyperslab.model.libraries import Layout
from hyperslab.model.workload import Workload
from hyperslab.references.chunks import stored
from hyperslab.storage.chain import Codec
from hyperslab.storage.layout import Manifest

# What is in a codec chain besides the codec that takes the time.
CHEAP = frozenset(["shuffle", "fletcher32", "crc32c", "bytes", "transpose"])
# Zarr's metadata are read at most this far.
MOST_METADATA_NBYTES = 16 << 20


def layout_of(array: Array, facts: Mapping[str, Any] | None = None) -> Layout | None:
    """The chunk shape and codec of an array, with its chunks' locations if all are in its file.

    None if chunks are uneven. `facts` are those of an HDF5 file's object header: they add the chunk index.
    """
    chunk_shape = array.chunks
    if chunk_shape is None and (array.codecs or len(array.segments()) > 1):
        return None
    ratio = array.nbytes / array.stored_nbytes if array.codecs and array.stored_nbytes else None
    zarr = _zarr_metadata(array) if array.format == "zarr" else {}
    layout = Layout(
        chunk_shape or array.shape,
        _shard_shape(zarr),
        ratio,
        _codec_of(array, zarr) if ratio else None,
        chunk_shape is None,
        _manifest_of(array),
    )
    return layout if facts is None else _with_facts(layout, facts)


def _with_facts(layout: Layout, facts: Mapping[str, Any]) -> Layout:
    """The layout with the chunk index that an HDF5 file has."""
    kind, wide_lengths = facts["index"] or (None, False)
    storage = facts["storage"]
    return replace(
        layout,
        max_shape=facts["max_shape"],
        index=None if kind == "unknown" else kind,
        wide_lengths=wide_lengths,
        compact=isinstance(storage, tuple) and storage[0] == "compact",
    )


def _codec_of(array: Array, zarr: Mapping[str, Any]) -> str | None:
    """The codec that takes the time, as `hyperslab formats` names it."""
    described = [Codec.of_hdf5(number, values) for number, values in array.filters]
    described += [
        Codec.of_zarr(str(step.get("id") or step.get("name")), step.get("configuration", step))
        for step in [zarr.get("compressor") or {}, *_zarr_codecs(zarr)]
    ]
    blosc = next((one.plain_name for one in described if one.known and one.known.is_blosc), None)
    dear = [blosc if name == "blosc" and blosc else name for name in array.codecs if name not in CHEAP]
    return dear[-1] if dear else (array.codecs[-1] if array.codecs else None)


def _zarr_codecs(zarr: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The codecs of Zarr's metadata, including those within shards."""
    all_codecs: list[dict[str, Any]] = []
    given = [each for each in zarr.get("codecs", []) if isinstance(each, dict)]
    while given:
        all_codecs += given
        inner = [(each.get("configuration") or {}).get("codecs", []) for each in given]
        given = [each for codecs in inner for each in codecs if isinstance(each, dict)]
    return [each for each in all_codecs if isinstance(each.get("configuration", {}), dict)]


def _shard_shape(zarr: Mapping[str, Any]) -> tuple[int, ...] | None:
    """What one file of a Zarr array holds, if it holds several chunks."""
    if not any(codec.get("name") == "sharding_indexed" for codec in _zarr_codecs(zarr)):
        return None
    return tuple(zarr["chunk_grid"]["configuration"]["chunk_shape"])


def _zarr_metadata(array: Array) -> dict[str, Any]:
    """The metadata of a Zarr array on this machine; empty if it is somewhere else.

    The archive has checked them already. It says neither how chunks are put into shards nor which compressor Blosc has.
    """
    folder = Path(array.filename, array.name.strip("/"))
    for name in ("zarr.json", ".zarray"):
        path = folder / name
        if path.is_file() and path.stat().st_size <= MOST_METADATA_NBYTES:
            metadata = json.loads(path.read_bytes())
            return metadata if isinstance(metadata, dict) else {}
    return {}


def _manifest_of(array: Array) -> Manifest | None:
    try:
        table = stored(array).table
    except Refused:
        return None
    if table.inline or table.used_paths() != {shown(array.filename)}:
        return None
    return table.positions.astype(np.uint64), table.offsets.astype(np.uint64), table.lengths.astype(np.uint64)


def layout_of_file(where: str, workload: Workload, storage_options: Mapping[str, Any] | None = None) -> Layout:
    """The layout of an array in an existing file.

    Parameters
    ----------
    where : str
        `FILE:ARRAY`, or `FILE` if it has exactly one array of the workload's shape. The file may be a URL.
    workload : Workload
        What will be asked of the array.
    storage_options : Mapping[str, Any] | None
        How to reach the file, as in `open`.

    Returns
    -------
    Layout
        The chunk shape and shards, the codec with its ratio, the locations of the chunks, and HDF5's chunk index.

    Raises
    ------
    UsageError
        There is no such array, or it does not have the workload's shape.
    ReadError
        The file cannot be read.
    """
    path, name = file_and_array(where)
    shape = tuple(workload.array.shape)
    with open_archive(path, storage_options=storage_options) as archive:
        check_whole(archive)
        named = archive.get(name) if name.strip("/") else None
        arrays = list(archive.walk()) if not name.strip("/") else [named] if isinstance(named, Array) else []
        fitting = [each for each in arrays if each.shape == shape]
        if len(fitting) != 1:
            there = ", ".join(f"{each.name} {each.shape}" for each in arrays) or "no such array"
            raise UsageError(
                f"{where}: the workload's array has the shape {shape}; found: {there}; name an array as FILE:ARRAY"
            )
        (array,) = fitting
        if array.dtype.itemsize != workload.array.element_nbytes:
            raise UsageError(
                f"{where} has elements of {array.dtype.itemsize} bytes, but the workload's elements have another size"
            )
        layout = layout_of(array, facts_of(path, array, storage_options))
        if layout is None:
            raise UsageError(
                f"{where}: the chunks of {array.name} have different shapes; use --layout to say what to compare"
            )
        return layout


def facts_of(path: str, array: Array, storage_options: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """What an HDF5 file's object header says about an array that is in the file itself; None for other formats."""
    if array.format != "hdf5" or not array.is_own:
        return None
    with h5.File(path, storage_options=storage_options) as file:
        facts: Mapping[str, Any] = file[array.name].id.facts
        return facts


def file_and_array(where: str) -> tuple[str, str]:
    """Split `FILE:ARRAY`.

    The second part is empty if no array is named. A colon in the host part of a URL does not split it.
    """
    server, slash, path = "", "", where
    if is_url(where):
        kind, _, rest = where.partition("://")
        server, slash, path = rest.partition("/")
        server = f"{kind}://{server}"
    if ":" not in path or (not server and Path(path).exists()):
        return where, ""
    file, _, name = path.rpartition(":")
    return f"{server}{slash}{file}", name
