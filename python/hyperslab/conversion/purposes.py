"""`PurposePlan`: what a file needs to suit a purpose. Only arrays that do not suit it yet are written anew.

`cmip7` is the rule of the archive of CMIP7: the time coordinate and its bounds in one chunk each, chunks of the data
variable of at least 4 MiB, and all metadata in front. `cloud` is what reading from afar asks for: chunks of 4 to 16
MiB, coordinates in one chunk each, checksums, and all metadata in front.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, TypeAlias, get_args

from hyperslab.archive.tree.array import Array
from hyperslab.chunk_grid import ENOUGH_NBYTES, MOST_GROWN_NBYTES, ceil_div, chunks_for_cloud
from hyperslab.conversion.cmip7 import (
    LEAST_NBYTES,
    are_large_enough,
    attribute_text,
    data_variable,
    spare_nbytes,
    time_arrays,
)
from hyperslab.conversion.front import has_metadata_in_front
from hyperslab.conversion.wishes import ArrayWish, Wish, usual_chunk_shape
from hyperslab.errors import HyperslabError, UsageError
from hyperslab.meant import meant_or_choose
from hyperslab.quantities import nbytes_text, set_nbytes_text
from hyperslab.storage.chain import Codec, CodecChain

if TYPE_CHECKING:
    from hyperslab.archive.tree.group import Group

Purpose: TypeAlias = Literal["cmip7", "cloud"]
PURPOSES: tuple[str, ...] = get_args(Purpose)
SMALL_NBYTES = 64 << 10  # an array without chunks of at most this many bytes gets none
CMIP7_CODEC = CodecChain.parse("shuffle+deflate:4+fletcher32")
CHECKSUM = Codec("fletcher32")


@dataclass(frozen=True)
class Change:
    """An array that gets other chunks.

    Attributes
    ----------
    path
        The array.
    before, chunks
        The chunk shape as it is, None without chunks, and as it becomes.
    codec
        How the new chunks are encoded; None: as the old ones.
    reason
        Why, in a sentence.
    """

    path: str
    before: tuple[int, ...] | None
    chunks: tuple[int, ...]
    codec: CodecChain | None
    reason: str

    def __str__(self) -> str:
        before = "one piece" if self.before is None else f"chunks of {_shown(self.before)}"
        codec = "" if self.codec is None else f", {self.codec}"
        return f"{self.path}: {before} become chunks of {_shown(self.chunks)}{codec}: {self.reason}"


@dataclass(frozen=True)
class PurposePlan:
    """What a file needs to suit a purpose.

    Attributes
    ----------
    purpose
        The purpose.
    changes
        The arrays that get other chunks.
    is_in_front
        Whether all metadata stand in front already.
    """

    purpose: Purpose
    changes: tuple[Change, ...]
    is_in_front: bool

    @property
    def suits(self) -> bool:
        """Whether the file suits the purpose as it is."""
        return self.is_in_front and not self.changes

    @property
    def wish(self) -> Wish:
        """What a conversion must do."""
        return Wish(arrays={one.path: ArrayWish(chunks=one.chunks, codec=one.codec) for one in self.changes})

    @property
    def sentences(self) -> list[str]:
        """What would be done, line by line."""
        if self.suits:
            return ["nothing: it suits as it is"]
        front = [] if self.is_in_front else ["its metadata go to the front"]
        rest = ["all other chunks are copied as they are stored"]
        return [*map(str, self.changes), *front, *rest]


def plan_for(group: Group, purpose: str) -> PurposePlan:
    """What an archive needs to suit a purpose.

    Raises
    ------
    UsageError
        There is no such purpose.
    """
    if purpose not in PURPOSES:
        raise UsageError(f"{purpose!r} is no purpose{meant_or_choose(purpose, PURPOSES)}")
    is_local = isinstance(getattr(group.opened, "location", None), str)
    is_in_front = is_local and group.format == "hdf5" and has_metadata_in_front(group)
    return PurposePlan(purpose, changes_for(group, purpose), is_in_front)  # type: ignore[arg-type]


def changes_for(group: Group, purpose: str) -> tuple[Change, ...]:
    """The arrays whose chunks do not suit a purpose, and the chunks that they get."""
    return tuple(_of_cmip7(group) if purpose == "cmip7" else _of_cloud(group))


def _of_cmip7(group: Group) -> Iterator[Change]:
    times = [(array, what) for array, what in time_arrays(group) if _is_plain(array)]
    for array, what in times:
        if (count := _chunk_count(array)) > 1:
            reason = f"{what} must be in one chunk, but it has {count}"
            yield Change(_path(group, array), array.chunks, array.shape, CMIP7_CODEC, reason)
    data = data_variable(group)
    if data is None or not _is_plain(data) or data in [array for array, _ in times] or _chunk_count(data) <= 1:
        return
    chunks, width = _today(data), data.dtype.itemsize
    assert chunks is not None  # it has several
    if are_large_enough(chunks, width):
        return
    spare = spare_nbytes(chunks, width)
    rows = LEAST_NBYTES // spare if spare else ceil_div(LEAST_NBYTES, width)
    grown = _then_others((min(rows, data.shape[0]), *chunks[1:]), data.shape, width, spare)
    had = nbytes_text(math.prod(chunks) * width)
    reason = f"its chunks must have at least {set_nbytes_text(LEAST_NBYTES)}, but have {had}"
    yield Change(_path(group, data), data.chunks, grown, CMIP7_CODEC, reason)


def _of_cloud(group: Group) -> Iterator[Change]:
    arrays = [array for array in group.walk() if _is_plain(array)]
    bounds = {attribute_text(one, name) for one in arrays for name in ("bounds", "climatology")} - {""}
    for array in arrays:
        chunks, count, width = _today(array), _chunk_count(array), array.dtype.itemsize
        if chunks is None or count <= 1:
            continue
        name = array.name.rpartition("/")[2]
        nbytes = math.prod(chunks) * width
        if (array.dims == (name,) or name in bounds) and array.nbytes <= MOST_GROWN_NBYTES:
            reason, grown = f"a coordinate should be in one chunk, but it has {count}", array.shape
        elif nbytes < ENOUGH_NBYTES:
            grown = chunks_for_cloud(array.shape, chunks, width)
            reason = f"{count} chunks of {nbytes_text(nbytes)} are too small for a cloud"
        else:
            continue
        yield Change(_path(group, array), array.chunks, grown, _with_checksum(array), reason)


def _then_others(chunks: tuple[int, ...], shape: tuple[int, ...], width: int, spare: int = 0) -> tuple[int, ...]:
    """Lengthen axes, the slowest first, until a chunk is large enough or holds everything."""
    grown = list(chunks)
    for axis in range(1, len(grown)):
        nbytes = math.prod(grown) * width
        if nbytes + spare >= LEAST_NBYTES:
            break
        if grown[axis - 1] < shape[axis - 1]:
            continue
        grown[axis] = max(grown[axis], min(shape[axis], grown[axis] * ceil_div(LEAST_NBYTES, nbytes)))
        spare = 0
    return tuple(min(one, length) for one, length in zip(grown, shape, strict=True))


def _with_checksum(array: Array) -> CodecChain | None:
    """The codecs of an array and a checksum; None if we do not write these codecs."""
    names = [Codec(name) for name in array.codecs]
    if array.format == "hdf5" and any(one.known is None or one.known.step is None for one in names):
        return None
    return CodecChain((*CodecChain.nearest(array.codecs, array.filters), CHECKSUM))


def _today(array: Array) -> tuple[int, ...] | None:
    """The chunks that an array would have in HDF5; None if it would stay in one piece."""
    if array.chunks is not None:
        return tuple(map(min, array.chunks, array.shape))
    if array.format == "hdf5" or array.nbytes <= SMALL_NBYTES:
        return None
    return usual_chunk_shape(array.shape, array.dtype.itemsize)


def _chunk_count(array: Array) -> int:
    chunks = _today(array)
    if chunks is None or 0 in array.shape:
        return 1
    return math.prod(ceil_div(length, chunk) for length, chunk in zip(array.shape, chunks, strict=True))


def _is_plain(array: Array) -> bool:
    """Whether we encode an array: its elements have a fixed length, and it can be read."""
    try:
        is_whole = not array.is_null and not array.damaged and not array.is_dimension_only
        return is_whole and bool(array.shape) and not array.dtype.hasobject and array.dtype.kind != "U"
    except (HyperslabError, TypeError):
        return False


def _path(group: Group, array: Array) -> str:
    return array.name.removeprefix(group.name).strip("/")


def _shown(chunks: tuple[int, ...]) -> str:
    return " x ".join(map(str, chunks))
