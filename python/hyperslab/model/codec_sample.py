"""What codecs cost on your own data: a sample of an array is encoded and decoded by each library, in about a second."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Mapping
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from hyperslab.archive.array import Array
from hyperslab.archive.opening import open as open_archive
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import HyperslabError, MissingLibrary
from hyperslab.formats import availability, make_format
from hyperslab.formats.contract import ArraySpec, Codec, Format, Need, StoredLayout
from hyperslab.lab.timers import Timers
from hyperslab.model.costs import CodecRate
from hyperslab.model.file_layout import file_and_array
from hyperslab.model.libraries import Layout

FORMATS = {"hdf5": "hdf5", "zarr": "zarr3", "hyperslab": "hyperslab"}
# The sample, and the most that one of its chunks may have.
SAMPLE_NBYTES, MOST_CHUNK_NBYTES = 8 << 20, 4 << 20
REPEATS = 3


def codec_rates(
    where: str, layout: Layout, codecs: Iterable[str], storage_options: Mapping[str, Any] | None = None
) -> dict[tuple[str, str], CodecRate]:
    """Measure codecs on a sample of an array in a file.

    Parameters
    ----------
    where : str
        `FILE:ARRAY`. The file may be a URL.
    layout : Layout
        The layout of the array: the sample has its chunks, unless they are very large.
    codecs : Iterable[str]
        The codecs, such as `lzf` or `zstd:5`.
    storage_options : Mapping[str, Any] | None
        How to reach the file, as in `open`.

    Returns
    -------
    dict[tuple[str, str], CodecRate]
        The rates of each library and codec. A library that is not installed, or does not have a codec, is left out.

    Raises
    ------
    ReadError
        The file cannot be read.
    """
    asked = list(dict.fromkeys(codecs))
    if not asked:
        return {}
    path, name = file_and_array(where)
    with open_archive(path, storage_options=storage_options) as archive:
        found = archive.get(name)
        if not isinstance(found, Array):
            return {}
        chunk, sample = sample_of(found, layout)
        shuffles = "shuffle" in found.codecs
    return rates_of(sample, chunk, asked, shuffles=shuffles)


def rates_of(
    sample: np.ndarray,
    chunk: tuple[int, ...],
    codecs: Iterable[str],
    *,
    shuffles: bool = False,
    libraries: Iterable[str] = tuple(FORMATS),
) -> dict[tuple[str, str], CodecRate]:
    """Measure codecs on elements in memory.

    Parameters
    ----------
    sample : np.ndarray
        The elements.
    chunk : tuple[int, ...]
        The chunk shape to cut them into.
    codecs : Iterable[str]
        The codecs, such as `lzf` or `zstd:5`.
    shuffles : bool
        Whether HDF5 shuffles the bytes before it encodes them.
    libraries : Iterable[str]
        The libraries to measure.

    Returns
    -------
    dict[tuple[str, str], CodecRate]
        The rates of each library and codec. A library that is not installed, or does not have a codec, is left out.
    """
    rates = {}
    with tempfile.TemporaryDirectory() as folder:
        for library in libraries:
            if isinstance(availability(FORMATS[library]), MissingLibrary):
                continue
            made = make_format(FORMATS[library])
            plain = _seconds(made, _spec(sample, chunk, ()), sample, Path(folder, "plain"))
            for codec in codecs:
                chain = (Codec("shuffle"),) if shuffles and library != "zarr" and codec != "shuffle" else ()
                spec = _spec(sample, chunk, (*chain, Codec.parse(codec)))
                seconds = _seconds(made, spec, sample, Path(folder, codec.replace(":", "-")))
                if plain is not None and seconds is not None:
                    beyond = [max(a - b, 0.0) / sample.nbytes for a, b in zip(seconds, plain, strict=True)]
                    rates[library, codec] = CodecRate(*beyond)
    return rates


def sample_of(array: Array | np.ndarray, layout: Layout) -> tuple[tuple[int, ...], np.ndarray]:
    """Take elements from the middle of an array, in a few chunks of the layout. Returns the chunk shape and them."""
    width, chunk = array.dtype.itemsize, [min(pair) for pair in zip(layout.chunk_shape, array.shape, strict=True)]
    for axis in range(len(chunk)):
        while prod(chunk) * width > MOST_CHUNK_NBYTES and chunk[axis] > 1:
            chunk[axis] = ceil_div(chunk[axis], 2)
    shape = list(chunk)
    for axis in reversed(range(len(shape))):
        room = max(1, SAMPLE_NBYTES // max(1, prod(shape) * width))
        shape[axis] = min(shape[axis] * room, array.shape[axis])
    starts = [(length - n) // 2 for length, n in zip(array.shape, shape, strict=True)]
    taken = array[tuple(slice(start, start + n) for start, n in zip(starts, shape, strict=True))]
    return tuple(chunk), np.ascontiguousarray(taken).astype(array.dtype.newbyteorder("="), copy=False)


def _spec(sample: np.ndarray, chunk: tuple[int, ...], codecs: tuple[Codec, ...]) -> ArraySpec:
    return ArraySpec(sample.shape, sample.dtype, StoredLayout(chunk, None, codecs))


def _seconds(made: Format, spec: ArraySpec, sample: np.ndarray, path: Path) -> tuple[float, float] | None:
    """Seconds to read and to write the sample: the least of some tries. None if the library cannot do it."""
    if made.refusal(spec, Need()) is not None:
        return None
    found: dict[str, list[float]] = {"read": [], "write": []}
    try:
        for attempt in range(REPEATS):
            target = path.with_name(f"{made.name}-{path.name}-{attempt}{made.extension}")
            timers = Timers()
            opened = made.create(target)
            with timers("write"):
                opened.create_array("x", spec).write(sample)
                opened.close()
            opened = made.open(target)
            with timers("read"):
                opened.open_array("x", spec).read()
            opened.close()
            for phase, each in found.items():
                each.append(timers.seconds[phase])
    except HyperslabError:
        return None
    return min(found["read"]), min(found["write"])
