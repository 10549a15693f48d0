"""`Wish`: which chunks, shards and codecs you want in the target, for all arrays or for some."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Integral
from pathlib import Path
from typing import Any

from hyperslab.conversion.advice import AdviceFile
from hyperslab.errors import UsageError
from hyperslab.storage.chain import CodecChain

# A chunk of an array that has none in the source has about this many bytes.
USUAL_CHUNK_NBYTES = 1 << 20
CONTIGUOUS = "contiguous"  # in place of chunks: the array in one piece


@dataclass(frozen=True)
class ArrayWish:
    """What you want for one array; None keeps what the source has.

    Attributes
    ----------
    chunks, shards
        Lengths for the axes in order, or for dimensions by name, where -1 stands for the whole axis.
    codec
        How to encode chunks.
    is_contiguous
        Whether the array should be in one piece.
    append_axis
        The axis that must be able to grow.
    format
        The format that an advice is for.
    """

    chunks: Sequence[int] | Mapping[str, int] | None = None
    shards: Sequence[int] | Mapping[str, int] | None = None
    codec: CodecChain | None = None
    is_contiguous: bool = False
    append_axis: int | None = None
    format: str | None = None

    def limits(self, limits: Sequence[int | None]) -> tuple[int | None, ...]:
        """The lengths to which each axis can grow; None without a limit."""
        return tuple(None if axis == self.append_axis else limit for axis, limit in enumerate(limits))


@dataclass(frozen=True)
class Wish:
    """What you want for all arrays, and for some by their paths."""

    every: ArrayWish = field(default_factory=ArrayWish)
    arrays: Mapping[str, ArrayWish] = field(default_factory=dict)

    def of(self, path: str) -> ArrayWish:
        """What is wanted for the array at a path."""
        own = self.arrays.get(path.strip("/"))
        if own is None:
            return self.every
        every = self.every
        is_contiguous = own.is_contiguous or (every.is_contiguous and own.chunks is None and own.codec is None)
        chunks = own.chunks if own.chunks is not None else every.chunks
        shards = own.shards if own.shards is not None else every.shards
        codec = own.codec if own.codec is not None else every.codec
        if is_contiguous:
            chunks = shards = codec = None
        return replace(own, chunks=chunks, shards=shards, codec=codec, is_contiguous=is_contiguous)

    @property
    def plain(self) -> dict[str, Any]:
        """What tells this wish from others, as JSON can express it."""
        named = {path: _plain(wish) for path, wish in sorted(self.arrays.items())}
        return {"every": _plain(self.every), "arrays": named}


def _plain(wish: ArrayWish) -> list[Any]:
    shapes = [dict(one) if isinstance(one, Mapping) else one and list(one) for one in (wish.chunks, wish.shards)]
    more = [CONTIGUOUS] * wish.is_contiguous + [wish.append_axis] * (wish.append_axis is not None)
    codec = None if wish.codec is None else str(wish.codec.with_levels)
    return [*shapes, codec, *more]


def wish(
    chunks: Any = None, shards: Any = None, codec: Any = None, like: str | Path | Mapping[str, Any] | None = None
) -> Wish:
    """Make a wish from what you passed.

    Parameters
    ----------
    chunks : Any
        Lengths in order, a dict by dimension, text such as "1,100,100" or "time=1,lat=100", or a dict of these by path.
    shards : Any
        The same for shards of Zarr 3.
    codec : Any
        The name of a codec chain, or a dict of these by path.
    like : str | Path | Mapping[str, Any] | None
        An advice, or the file that it was saved in: {"arrays": {path: {"chunks": ..., "shards": ..., "codec": ...}}}.
        What it says of an array cannot be said by the other options too.

    Raises
    ------
    UsageError
        They cannot be understood.
    """
    parts: dict[str, dict[str, Any]] = {}
    for key, given in (("chunks", chunks), ("shards", shards), ("codec", codec)):
        by_path = given if isinstance(given, Mapping) and _is_by_path(given) else {"": given}
        for path, one in by_path.items():
            if one is not None:
                parts.setdefault(path.strip("/"), {})[key] = one
    for path, one in ({} if like is None else AdviceFile.read(like).wanted()).items():
        own = parts.setdefault(path, {})
        for given in (own, parts.get("", {})):
            twice = [key for key in ("chunks", "shards", "codec") if key in given and (key in one or _is_whole(one))]
            if twice:
                raise UsageError(_said_twice(twice[0], path, is_own=given is own))
        own |= one
    every = _array_wish("", parts.pop("", {}))
    return Wish(every, {path: _array_wish(path, one) for path, one in parts.items()})


def _is_whole(one: Mapping[str, Any]) -> bool:
    """Whether an advice puts an array in one piece, which leaves no codec and no shards to say."""
    return _is_contiguous(one.get("chunks"))


def _said_twice(key: str, path: str, *, is_own: bool) -> str:
    name = path or "the array"
    option = "codec" if key == "codec" else f"{key[:-1]} shape"
    said = f"--{key} and --like both say the {option} of {name!r}: leave it out of one of them"
    return said if is_own or not path else f"{said}, or name the arrays that you mean (--{key} PATH:...)"


def _array_wish(path: str, given: Mapping[str, Any]) -> ArrayWish:
    parts = dict(given)
    if "codec" in parts:
        parts["codec"] = _codec(parts["codec"])
    if _is_contiguous(parts.get("chunks")):
        if parts.get("shards") is not None or parts.get("codec", CodecChain()) != CodecChain():
            raise UsageError(f"{path or 'chunks'}: an array in one piece has no codec and no shards: give chunks")
        if parts.get("append_axis") is not None:
            raise UsageError(f"{path or 'chunks'}: an array in one piece cannot grow: give chunks")
        return ArrayWish(is_contiguous=True, format=parts.get("format"))
    for key in ("chunks", "shards"):
        if key in parts:
            parts[key] = _lengths(parts[key])
    return ArrayWish(**parts)


def _is_contiguous(chunks: Any) -> bool:
    return isinstance(chunks, str) and chunks.strip() == CONTIGUOUS


def _is_by_path(given: Mapping[str, Any]) -> bool:
    return any(not isinstance(one, Integral) for one in given.values())


def _codec(given: Any) -> CodecChain:
    if not isinstance(given, Sequence):
        raise UsageError(f"{given!r} is not a codec: give a name such as 'shuffle+deflate:4'")
    chain = CodecChain.parse(given if isinstance(given, str) else "+".join(map(str, given)) or "none")
    chain.check_written()
    return chain


def _lengths(given: Any) -> Sequence[int] | Mapping[str, int]:
    try:
        lengths = _numbers(given)
    except (TypeError, ValueError):
        raise UsageError(f"{given!r} is not a shape: write 1,100,100 or time=1,lat=100") from None
    for one in lengths.values() if isinstance(lengths, Mapping) else lengths:
        if one < 1 and one != -1:
            raise UsageError(f"{given!r}: lengths are positive, or -1 for the whole axis")
    return lengths


def _numbers(given: Any) -> Sequence[int] | Mapping[str, int]:
    if isinstance(given, str):
        parts = [part.partition("=") for part in given.replace("x", ",").split(",") if part.strip()] \
            if "=" not in given else [part.partition("=") for part in given.split(",")]  # fmt: skip
        if all(equals for _, equals, _ in parts):
            return {name.strip(): int(length) for name, _, length in parts}
        return [int(length) for length, _, _ in parts]
    if isinstance(given, Integral):
        return [int(given)]
    if isinstance(given, Mapping):
        return {str(name): _number(length) for name, length in given.items()}
    return [_number(length) for length in given]


def _number(length: Any) -> int:
    return int(length) if isinstance(length, str) else operator.index(length)  # 1.5 is no length


def advised_for_others(wish: Wish, format: str) -> list[tuple[str, str]]:
    """The arrays whose advice is for another format than the target's, with what to say of them."""

    def kind(name: str) -> str:
        return "hdf5" if name == "netcdf4" else name

    return [
        (path, f"the advice is for {one.format}: its chunks and codec are used in {format} all the same")
        for path, one in wish.arrays.items()
        if one.format is not None and kind(one.format) != kind(format)
    ]


def shape_of(
    asked: Sequence[int] | Mapping[str, int] | None,
    shape: tuple[int, ...],
    dims: Sequence[str] | None,
    kept: tuple[int, ...] | None,
    limits: Sequence[int | None] | None = None,
) -> tuple[int, ...] | None:
    """The wanted chunk shape of an array; None if the wish does not concern it and there is none to keep.

    Chunks need not be longer than an axis, unless it can grow: `limits` says how far, None stands for any length.
    """
    if isinstance(asked, Mapping):
        lengths = [asked.get(name) for name in dims or ()]
        if all(one is None for one in lengths):
            return kept
        before = kept or shape
        wanted = [before[axis] if one is None else one for axis, one in enumerate(lengths)]
    elif asked is None or len(asked) != len(shape):
        return kept  # a shape with other axes is meant for other arrays
    else:
        wanted = list(asked)
    whole = [length if one == -1 else one for one, length in zip(wanted, shape, strict=True)]
    most = shape if limits is None else limits
    return tuple(
        max(1, one if limit is None else min(one, max(limit, 1))) for one, limit in zip(whole, most, strict=True)
    )


def usual_chunk_shape(shape: tuple[int, ...], width: int) -> tuple[int, ...]:
    """A chunk shape of at most about a MiB: whole rows if they are short enough."""
    lengths = [max(1, length) for length in shape]
    for axis in range(len(lengths)):
        rest = math.prod(lengths[axis + 1 :]) * max(width, 1)
        if rest * lengths[axis] > USUAL_CHUNK_NBYTES:
            lengths[axis] = max(1, min(lengths[axis], USUAL_CHUNK_NBYTES // rest))
    return tuple(lengths)
