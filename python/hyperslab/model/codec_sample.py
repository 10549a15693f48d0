"""What codecs cost on your own data: a sample of an array is encoded and decoded by each library, in about a second."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hyperslab._core import ChunkGrid, Hyperslab
from hyperslab.archive.opening import open as open_archive
from hyperslab.archive.tree.array import Array
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import HyperslabError, MissingLibrary
from hyperslab.formats import availability, make_format
from hyperslab.formats.contract import ArraySpec, Format, Need
from hyperslab.lab import cache
from hyperslab.model.costs import CodecRate
from hyperslab.model.file_layout import file_and_array
from hyperslab.model.libraries import Layout
from hyperslab.scratch import remove
from hyperslab.storage.chain import PLAIN, Codec, CodecChain
from hyperslab.storage.layout import StoredLayout
from hyperslab.timers import Timers

FORMATS = {"hdf5": "hdf5", "zarr": "zarr3", "hyperslab": "hyperslab"}
# The sample, and the most that one of its chunks may have.
SAMPLE_NBYTES, MOST_CHUNK_NBYTES = 8 << 20, 4 << 20
REPEATS = 3
# The least that is read at once for a sample.
LEAST_READ_NBYTES = 256 << 10
# How many of its chunks are read and written one at a time: what a library with threads does faster side by side.
MOST_ALONE = 64
# No codec is faster than this (seconds for a byte): a lower figure is noise.
LEAST_RATE = 1.5e-10
LEAST_RATIO = 0.1


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
        array = archive.get(name)
        if not isinstance(array, Array):
            return {}
        chunk, sample = sample_of(array, layout.chunk_shape)
        shuffles = "shuffle" in array.codecs
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
    rates: dict[tuple[str, str], CodecRate] = {}
    asked = list(codecs)
    for library in libraries:
        chains = {}
        for codec in asked:
            before = [Codec("shuffle")] if shuffles and library != "zarr" and "shuffle" not in codec else []
            chains[codec] = CodecChain([*before, *CodecChain.read(codec)])
        measured = measured_chains(sample, chunk, chains.values(), library)
        rates |= {(library, codec): measured[chain].rate for codec, chain in chains.items() if chain in measured}
    return rates


@dataclass(frozen=True)
class MeasuredCodec:
    """What a chain of codecs costs a library on the data, and how far it shrinks them."""

    rate: CodecRate
    ratio: float


def measured_chains(
    sample: np.ndarray, chunk: tuple[int, ...], chains: Iterable[CodecChain], library: str
) -> dict[CodecChain, MeasuredCodec]:
    """Measure chains of codecs on elements in memory; those that the library lacks are left out.

    Parameters
    ----------
    sample : np.ndarray
        The elements.
    chunk : tuple[int, ...]
        The chunk shape to cut them into.
    chains : Iterable[tuple[Codec, ...]]
        The chains.
    library : str
        The library by the cost model's name.
    """
    if library not in FORMATS or isinstance(availability(FORMATS[library]), MissingLibrary):
        return {}
    made = make_format(FORMATS[library])
    names = made.capabilities.codecs
    return compared_with_none(
        sample.nbytes,
        chains,
        lambda chain, path: _seconds(made, _spec(sample, chunk, chain.named_in(names)), sample, path),
    )


@dataclass(frozen=True)
class SampleSeconds:
    """Seconds to read and to write a sample: in one call, and so many bytes of it by a call for each chunk."""

    whole: tuple[float, float]
    stored_nbytes: int
    alone: tuple[float, float] = (0.0, 0.0)
    alone_nbytes: int = 0


def compared_with_none(
    nbytes: int, chains: Iterable[CodecChain], time: Callable[[CodecChain, Path], SampleSeconds | None]
) -> dict[CodecChain, MeasuredCodec]:
    """What chains of codecs cost beyond no codec at all; those that cannot be timed are left out.

    Parameters
    ----------
    nbytes : int
        The decoded bytes of the sample.
    chains : Iterable[CodecChain]
        The chains.
    time : Callable[[CodecChain, Path], SampleSeconds | None]
        Writes the sample to a path, and reads it; None if that cannot be done with the chain.
    """
    measured = {}
    with tempfile.TemporaryDirectory(prefix="hyperslab-codecs-") as folder:
        plain = time(PLAIN, Path(folder, "plain"))
        for place, chain in enumerate(dict.fromkeys(chains)):
            seconds = time(chain, Path(folder, str(place)))
            if plain is not None and seconds is not None:
                stored = seconds.stored_nbytes - (plain.stored_nbytes - nbytes)  # without metadata
                rate = _rate(seconds, plain, nbytes)
                measured[chain] = MeasuredCodec(rate, max(nbytes / max(stored, 1), LEAST_RATIO))
    return measured


def _rate(seconds: SampleSeconds, plain: SampleSeconds, nbytes: int) -> CodecRate:
    """What the codec adds to the seconds of an array without it. Threads never make a call slower."""
    decode, encode = (max((a - b) / nbytes, LEAST_RATE) for a, b in zip(seconds.whole, plain.whole, strict=True))
    if not seconds.alone_nbytes:
        return CodecRate(decode, encode)
    alone = [(a - b) / seconds.alone_nbytes for a, b in zip(seconds.alone, plain.alone, strict=True)]
    return CodecRate(decode, encode, max(alone[0], decode), max(alone[1], encode))


def sample_of(
    array: Array | np.ndarray,
    chunk_shape: Sequence[int],
    least_nbytes: int = 0,
    most_nbytes: int = MOST_CHUNK_NBYTES,
    nbytes: int = SAMPLE_NBYTES,
) -> tuple[tuple[int, ...], npt.NDArray[np.generic]]:
    """A chunk shape near the given one, and the elements of a few such chunks from all over the array.

    Parameters
    ----------
    array : Array | np.ndarray
        The array.
    chunk_shape : Sequence[int]
        The chunk shape to begin with.
    least_nbytes, most_nbytes : int
        The size of a chunk: it is cut in half, or doubled, until it fits.
    nbytes : int
        The size of the sample, if a chunk is not larger.
    """
    width, chunk = array.dtype.itemsize, [min(pair) for pair in zip(chunk_shape, array.shape, strict=True)]
    while prod(chunk) * width > most_nbytes and max(chunk) > 1:
        axis = chunk.index(max(chunk))
        chunk[axis] = ceil_div(chunk[axis], 2)
    while prod(chunk) * width < least_nbytes and any(a < b for a, b in zip(chunk, array.shape, strict=True)):
        axis = min(range(len(chunk)), key=lambda one: chunk[one] / array.shape[one])
        chunk[axis] = min(chunk[axis] * 2, array.shape[axis])
    piece = list(chunk)  # tiny chunks are read together with their neighbours
    for axis in reversed(range(len(piece))):
        while prod(piece) * width < LEAST_READ_NBYTES and piece[axis] * 2 <= array.shape[axis]:
            piece[axis] *= 2
    grid = [length // part for length, part in zip(array.shape, piece, strict=True)]
    count = max(1, min(nbytes // max(1, prod(piece) * width), prod(grid)))
    chosen = np.unique(np.linspace(0, prod(grid) - 1, count).astype(int))
    parts = []
    for index in np.stack(np.unravel_index(chosen, grid), axis=-1).tolist():
        starts = [place * part for place, part in zip(index, piece, strict=True)]
        parts.append(array[tuple(slice(start, start + part) for start, part in zip(starts, piece, strict=True))])
    taken = np.ascontiguousarray(np.concatenate(parts))
    return tuple(chunk), taken.astype(array.dtype.newbyteorder("="), copy=False)


def _spec(sample: np.ndarray, chunk: tuple[int, ...], codecs: CodecChain) -> ArraySpec:
    return ArraySpec(sample.shape, sample.dtype, StoredLayout(chunk, codecs=codecs))


def _seconds(made: Format, spec: ArraySpec, sample: np.ndarray, path: Path) -> SampleSeconds | None:
    """The least seconds of some tries. None if the library cannot do it."""
    if made.refusal(spec, Need()) is not None:
        return None
    boxes = [] if made.name == FORMATS["hdf5"] else _single_chunks(spec)
    attempts: list[dict[str, float]] = []
    stored_nbytes = 0
    try:
        for attempt in range(REPEATS):
            timers = Timers()
            target = path.with_name(f"{made.name}-{path.name}-{attempt}{made.extension}")
            _time_calls(timers, made, spec, sample, target)
            stored_nbytes = cache.disk_usage(target)[0]
            remove(target)
            if boxes:
                _time_calls(timers, made, spec, sample, target, boxes, " alone")
                remove(target)
            attempts.append(timers.seconds)
    except HyperslabError:
        return None
    least = {name: min(each[name] for each in attempts) for name in attempts[0]}
    alone = (least.get("read alone", 0.0), least.get("write alone", 0.0))
    nbytes = sum(int(box.size) for box in boxes) * sample.itemsize
    return SampleSeconds((least["read"], least["write"]), stored_nbytes, alone, nbytes)


def _time_calls(
    timers: Timers,
    made: Format,
    spec: ArraySpec,
    sample: np.ndarray,
    target: Path,
    boxes: Sequence[Hyperslab | None] = (None,),
    name: str = "",
) -> None:
    """Write and read the sample, or boxes of it, one in each call."""
    opened = made.create(target)
    parts = [sample if box is None else np.ascontiguousarray(sample[box.slices]) for box in boxes]
    with timers(f"write{name}"):
        array = opened.create_array("x", spec)
        for box, part in zip(boxes, parts, strict=True):
            array.write(part, box)
        opened.close()
    opened = made.open(target)
    with timers(f"read{name}"):
        array = opened.open_array("x", spec)
        for box in boxes:
            array.read(box)
    opened.close()


def _single_chunks(spec: ArraySpec) -> list[Hyperslab]:
    """The boxes of the first chunks."""
    chunk_shape = () if spec.layout is None else spec.layout.chunk_shape
    grid = ChunkGrid(spec.shape, chunk_shape or spec.shape)
    return [grid.chunk_box(grid.chunk_index(number)) for number in range(min(grid.chunk_count, MOST_ALONE))]
