"""Which codecs are worth considering, and what each costs on samples of the real data."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

import numpy as np
import numpy.typing as npt

from hyperslab.advise.pricing import MeasuredCodec
from hyperslab.archive.array import Array
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import HyperslabError, MissingLibrary
from hyperslab.formats import availability, make_format
from hyperslab.formats.contract import ArraySpec, Need
from hyperslab.model.codec_sample import measured_chains
from hyperslab.model.costs import CodecRate
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout

SAMPLE_NBYTES, MOST_CHUNK_NBYTES, LEAST_CHUNK_NBYTES = 4 << 20, 1 << 20, 256 << 10
# No codec is faster than this (seconds for a byte): a lower figure is noise.
LEAST_RATE = 1.5e-10
HDF5_CODECS = ("shuffle+deflate:4", "shuffle+deflate:1", "shuffle+zstd:3", "blosc-lz4:5")
NETCDF_CODECS = ("shuffle+deflate:4", "shuffle+deflate:1", "zstd:3")
ZARR_CODECS = ("zstd:3", "blosc-lz4:5", "blosc-zstd:5")


def encodings_for(format_name: str, today: CodecChain) -> list[CodecChain]:
    """The codecs to consider for a file format, with none, and with that of today if the format has it."""
    listed: tuple[str, ...] = ZARR_CODECS
    if not format_name.startswith("zarr"):
        listed = NETCDF_CODECS if format_name == "netcdf4" else HDF5_CODECS
    considered = (CodecChain(), today, *map(CodecChain.parse, listed))
    return [each for each in dict.fromkeys(considered) if not each or _has(format_name, each)]


def _has(format_name: str, codecs: CodecChain) -> bool:
    if isinstance(availability(format_name), MissingLibrary):
        return False
    spec = ArraySpec((2,), np.dtype("int32"), StoredLayout((2,), codecs=codecs))
    try:
        return make_format(format_name).refusal(spec, Need()) is None
    except HyperslabError:
        return False


def encoding_of(array: Array, codec: str | None) -> CodecChain:
    """Today's codecs of an array, with the level if the file says it."""
    if codec is None:
        return CodecChain()
    described = [Codec.of_hdf5(number, values) for number, values in array.filters]
    named = next((one for one in described if one.name == codec and one.level is not None), Codec.parse(codec))
    return CodecChain([*([Codec("shuffle")] if "shuffle" in array.codecs and codec != "shuffle" else []), named])


def sample_of(array: Array, chunk_shape: Sequence[int]) -> tuple[tuple[int, ...], npt.NDArray[np.generic]]:
    """A chunk shape of 256 KiB to 1 MiB, and the elements of a few such chunks from all over the array."""
    width, chunk = array.dtype.itemsize, [min(pair) for pair in zip(chunk_shape, array.shape, strict=True)]
    while prod(chunk) * width > MOST_CHUNK_NBYTES and max(chunk) > 1:
        axis = chunk.index(max(chunk))
        chunk[axis] = ceil_div(chunk[axis], 2)
    while prod(chunk) * width < LEAST_CHUNK_NBYTES and any(a < b for a, b in zip(chunk, array.shape, strict=True)):
        axis = min(range(len(chunk)), key=lambda one: chunk[one] / array.shape[one])
        chunk[axis] = min(chunk[axis] * 2, array.shape[axis])
    grid = [length // part for length, part in zip(array.shape, chunk, strict=True)]
    count = max(1, min(SAMPLE_NBYTES // max(1, prod(chunk) * width), prod(grid)))
    chosen = np.unique(np.linspace(0, prod(grid) - 1, count).astype(int))
    parts = []
    for index in np.stack(np.unravel_index(chosen, grid), axis=-1).tolist():
        starts = [place * part for place, part in zip(index, chunk, strict=True)]
        parts.append(array[tuple(slice(start, start + part) for start, part in zip(starts, chunk, strict=True))])
    taken = np.ascontiguousarray(np.concatenate(parts))
    return tuple(chunk), taken.astype(array.dtype.newbyteorder("="), copy=False)


def measure_codecs(
    chunk_shape: tuple[int, ...], sample: npt.NDArray[np.generic], asked: dict[str, list[CodecChain]]
) -> dict[tuple[str, CodecChain], MeasuredCodec]:
    """Encode and decode a sample by each library with each codec. A codec that a library does not have is left out."""
    if sample.dtype.fields is not None or sample.dtype.kind not in "iuf":
        return {}
    return {
        (library, codecs): MeasuredCodec(_slowed(one.rate), max(one.ratio, 0.1))
        for library, chains in asked.items()
        for codecs, one in measured_chains(sample, chunk_shape, filter(None, chains), library).items()
    }


def _slowed(rate: CodecRate) -> CodecRate:
    alone = [None if one is None else max(one, LEAST_RATE) for one in (rate.decode_alone, rate.encode_alone)]
    return CodecRate(max(rate.decode, LEAST_RATE), max(rate.encode, LEAST_RATE), *alone)
