"""Which codecs are worth considering, and what each costs on samples of the real data."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from math import prod
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hyperslab.advise.candidate import PLAIN, Encoding
from hyperslab.advise.pricing import MeasuredCodec
from hyperslab.archive.array import Array
from hyperslab.chunk_grid import ceil_div
from hyperslab.errors import HyperslabError, MissingLibrary
from hyperslab.formats import availability, make_format
from hyperslab.formats.contract import ArraySpec, Format, Need, StoredLayout
from hyperslab.lab import cache
from hyperslab.lab.scratch import remove
from hyperslab.lab.timers import Timers
from hyperslab.model.codec_sample import FORMATS
from hyperslab.model.costs import CodecRate

SAMPLE_NBYTES, MOST_CHUNK_NBYTES, LEAST_CHUNK_NBYTES = 4 << 20, 1 << 20, 256 << 10
REPEATS = 3
# No codec is faster than this (seconds for a byte): a lower figure is noise.
LEAST_RATE = 1.5e-10
HDF5_CODECS = (
    Encoding("deflate:4", shuffle=True), Encoding("deflate:1", shuffle=True), Encoding("zstd:3", shuffle=True),
    Encoding("blosc-lz4:5"),
)  # fmt: skip
NETCDF_CODECS = (Encoding("deflate:4", shuffle=True), Encoding("deflate:1", shuffle=True), Encoding("zstd:3"))
ZARR_CODECS = (Encoding("zstd:3"), Encoding("blosc-lz4:5"), Encoding("blosc-zstd:5"))


def encodings_for(format_name: str, today: Encoding) -> list[Encoding]:
    """The codecs to consider for a file format, with none, and with that of today if the format has it."""
    if format_name.startswith("zarr"):
        listed: tuple[Encoding, ...] = ZARR_CODECS
    else:
        listed = NETCDF_CODECS if format_name == "netcdf4" else HDF5_CODECS
    return [each for each in dict.fromkeys((PLAIN, today, *listed)) if _has(format_name, each)]


def _has(format_name: str, encoding: Encoding) -> bool:
    if encoding == PLAIN:
        return True
    if isinstance(availability(format_name), MissingLibrary):
        return False
    spec = ArraySpec((2,), np.dtype("int32"), StoredLayout((2,), None, encoding.codecs))
    try:
        return make_format(format_name).refusal(spec, Need()) is None
    except HyperslabError:
        return False


def encoding_of(array: Array, codec: str | None) -> Encoding:
    """Today's codec of an array, with its level if the file says it."""
    if codec is None:
        return PLAIN
    level = next((parameters[0] for number, parameters in array.filters if number in (1, 32015) and parameters), None)
    named = codec if level is None or codec not in ("deflate", "zstd") else f"{codec}:{level}"
    return Encoding(named, shuffle="shuffle" in array.codecs and codec != "shuffle")


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
    chunk_shape: tuple[int, ...], sample: npt.NDArray[np.generic], asked: dict[str, list[Encoding]]
) -> dict[tuple[str, Encoding], MeasuredCodec]:
    """Encode and decode a sample by each library with each codec. A codec that a library does not have is left out."""
    found: dict[tuple[str, Encoding], MeasuredCodec] = {}
    if sample.dtype.fields is not None or sample.dtype.kind not in "iuf":
        return found
    for library, encodings in asked.items():
        format_name = FORMATS.get(library)
        if format_name is None or isinstance(availability(format_name), MissingLibrary):
            continue
        tries = _tries(make_format(format_name), sample, chunk_shape, list(dict.fromkeys((PLAIN, *encodings))))
        plain = tries.pop(PLAIN, None)
        if plain is None:
            continue
        for encoding, mine in tries.items():
            decode, encode = (
                max((a - b) / sample.nbytes, LEAST_RATE) for a, b in zip(mine[:2], plain[:2], strict=True)
            )
            overhead = plain[2] - sample.nbytes
            ratio = sample.nbytes / max(mine[2] - overhead, 1)
            found[library, encoding] = MeasuredCodec(CodecRate(decode, encode), max(ratio, 0.1))
    return found


Try = tuple[float, float, int]  # seconds to read and to write the sample, and its stored bytes


def _tries(
    made: Format, sample: npt.NDArray[np.generic], chunk: tuple[int, ...], encodings: Sequence[Encoding]
) -> dict[Encoding, Try]:
    """The least of several tries with each codec. The codecs take turns, and the first turn does not count."""
    found: dict[Encoding, Try] = {}
    failed: set[Encoding] = set()
    with tempfile.TemporaryDirectory(prefix="hyperslab-codecs-") as folder:
        for turn in range(REPEATS + 1):
            for place, encoding in enumerate(encodings):
                if encoding in failed:
                    continue
                spec = ArraySpec(sample.shape, sample.dtype, StoredLayout(chunk, None, encoding.codecs))
                once = _once(made, spec, sample, Path(folder, f"{turn}-{place}{made.extension}"))
                if once is None:
                    failed.add(encoding)
                elif turn > 0:
                    least = found.get(encoding, once)
                    found[encoding] = (min(once[0], least[0]), min(once[1], least[1]), once[2])
    return {encoding: once for encoding, once in found.items() if encoding not in failed}


def _once(made: Format, spec: ArraySpec, sample: npt.NDArray[np.generic], target: Path) -> Try | None:
    """Write and read the sample once; None if the library cannot do it."""
    if made.refusal(spec, Need()) is not None:
        return None
    timers = Timers()
    try:
        opened = made.create(target)
        with timers("write"):
            opened.create_array("x", spec).write(sample)
            opened.close()
        stored = cache.disk_usage(target)[0]
        opened = made.open(target)
        with timers("read"):
            opened.open_array("x", spec).read()
        opened.close()
    except HyperslabError:
        return None
    finally:
        remove(target)
    return timers.seconds["read"], timers.seconds["write"], stored
