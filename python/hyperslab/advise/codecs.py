"""Which codecs are worth considering for a file format."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from hyperslab.archive.tree.array import Array
from hyperslab.errors import HyperslabError, MissingLibrary
from hyperslab.formats import availability, make_format
from hyperslab.formats.contract import ArraySpec, Need
from hyperslab.model.caller_sample import CALLERS, measured_by
from hyperslab.model.codec_sample import MeasuredCodec, measured_chains
from hyperslab.storage.chain import Codec, CodecChain
from hyperslab.storage.layout import StoredLayout

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


def measure_codecs(
    chunk_shape: tuple[int, ...], sample: npt.NDArray[np.generic] | None, asked: dict[str, list[CodecChain]]
) -> dict[tuple[str, CodecChain], MeasuredCodec]:
    """Encode and decode a sample by each library with each codec. A codec that a library does not have is left out."""
    if sample is None:
        return {}
    return {
        (library, codecs): one
        for library, chains in asked.items()
        for codecs, one in _measured(chunk_shape, sample, library, list(filter(None, chains))).items()
    }


def _measured(
    chunk_shape: tuple[int, ...], sample: npt.NDArray[np.generic], library: str, chains: list[CodecChain]
) -> dict[CodecChain, MeasuredCodec]:
    """Measure by one library. One that calls HDF5 reads elements as wide as they are: HDF5 shuffles by their width."""
    if library in CALLERS:
        return measured_by(library, _as_wide(sample), chunk_shape, chains)
    if library == "hdf5" and not _is_number(sample.dtype):
        return measured_by("h5py", _as_wide(sample), chunk_shape, chains)
    chunk, numbers = _as_numbers(chunk_shape, sample)
    return measured_chains(numbers, chunk, chains, library)


def _is_number(dtype: np.dtype[np.generic]) -> bool:
    """Whether every library stores elements of this type."""
    return dtype.fields is None and dtype.kind in "iuf" and dtype.itemsize > 2 - (dtype.kind in "iu")


def _as_wide(sample: npt.NDArray[np.generic]) -> npt.NDArray[np.generic]:
    """The same bytes as elements that every libhdf5 reads without converting them, and that are as wide."""
    if _is_number(sample.dtype):
        return sample
    bytes_of_one = np.dtype([("x", "u1", (sample.dtype.itemsize,))])
    return np.ascontiguousarray(sample).view(bytes_of_one)


def _as_numbers(
    chunk_shape: tuple[int, ...], sample: npt.NDArray[np.generic]
) -> tuple[tuple[int, ...], npt.NDArray[np.generic]]:
    """The same bytes as numbers, which every library stores: codecs see bytes, and shuffling sees their width.

    Elements whose width no number has, such as compound ones and text, become rows of numbers.
    """
    dtype = sample.dtype
    if _is_number(dtype):
        return chunk_shape, sample
    width = next(width for width in (8, 4, 2, 1) if dtype.itemsize % width == 0)
    each = dtype.itemsize // width
    return (*chunk_shape[:-1], chunk_shape[-1] * each), np.ascontiguousarray(sample).view(f"u{width}")
