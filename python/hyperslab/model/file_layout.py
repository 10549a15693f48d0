"""The layouts of arrays in existing files, with the locations of their chunks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.archive.array import Array
from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.remote import is_url, shown
from hyperslab.errors import Refused, UsageError
from hyperslab.model.libraries import Layout, Manifest
from hyperslab.model.workload import Workload
from hyperslab.references.chunks import stored


def layout_of(array: Array) -> Layout | None:
    """The chunk shape and codec of an array, with its chunks' locations if all are in its file.

    None if chunks are uneven.
    """
    chunk_shape = array.chunks
    if chunk_shape is None and (array.codecs or len(array.segments()) > 1):
        return None
    ratio = array.nbytes / array.stored_nbytes if array.codecs and array.stored_nbytes else None
    codecs = [codec for codec in array.codecs if codec != "shuffle"]
    codec = codecs[-1] if codecs and ratio else None
    return Layout(chunk_shape or array.shape, None, ratio, codec, chunk_shape is None, _manifest_of(array))


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
        The chunk shape, the codec, and the locations of the chunks.

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
        layout = layout_of(array)
        if layout is None:
            raise UsageError(
                f"{where}: the chunks of {array.name} have different shapes; use --layout to say what to compare"
            )
        return layout


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
