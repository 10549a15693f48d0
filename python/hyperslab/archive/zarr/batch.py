"""Turn what zarr-python asks of a codec pipeline, chunk by chunk, into one selection of the array."""

from __future__ import annotations

import re
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from hyperslab._core import Points

Indices = npt.NDArray[np.int64]
Part = tuple[tuple[int, ...], tuple[Any, ...], tuple[Any, ...]]  # index of a chunk, selection in it, and in the output
NUMBER = re.compile(r"\d+")


class Batch(NamedTuple):
    """One selection of an array, whose elements fill the output in C order."""

    path: str  # of the array, in its store
    shape: tuple[int, ...]  # of all touched chunks, since the array may have been resized since
    selection: tuple[int | slice | Indices, ...] | Points


def batch_of(items: list[Any], out_shape: tuple[int, ...], drop_axes: tuple[int, ...], metadata: Any) -> Batch | None:
    """Combine zarr-python's items into one selection.

    Parameters
    ----------
    items : list[Any]
        For each chunk, its byte getter, its specification, the selection in the chunk, the selection in the output,
        and whether it is a complete chunk.
    out_shape : tuple[int, ...]
        The shape of the output.
    drop_axes : tuple[int, ...]
        Axes with an integer index, which the output lacks, if other axes have lists of indices.
    metadata : zarr.core.metadata.ArrayMetadata
        The metadata of the array.

    Returns
    -------
    Batch | None
        The selection; None if the items do not form a single one.
    """
    chunk_shape = items[0][1].shape
    if any(spec.shape != chunk_shape for _, spec, *_ in items):
        return None
    depth = metadata.encode_chunk_key((0,) * len(chunk_shape)).count("/") + 1
    path = "/".join(items[0][0].path.split("/")[:-depth])
    parts = [
        (_chunk_index(getter.path, depth, len(chunk_shape)), _tuple(taken), _tuple(goes))
        for getter, _, taken, goes, *_ in items
    ]
    most = (max(index[axis] for index, *_ in parts) + 1 for axis in range(len(chunk_shape)))
    shape = tuple(count * length for count, length in zip(most, chunk_shape, strict=True))
    if _are_points(parts[0]):
        points = _points(parts, chunk_shape, out_shape)
        return None if points is None else Batch(path, shape, points)
    selection = _product(parts, chunk_shape, drop_axes, out_shape)
    return None if selection is None else Batch(path, shape, selection)


def _chunk_index(key: str, depth: int, ndim: int) -> tuple[int, ...]:
    name = "/".join(key.split("/")[-depth:])
    return tuple(int(number) for number in NUMBER.findall(name)[:ndim])


def _tuple(selection: Any) -> tuple[Any, ...]:
    return selection if isinstance(selection, tuple) else (selection,)


def _are_points(part: Part) -> bool:
    """Whether the lists of indices are coordinates of points, not the axes of an outer product."""
    _, taken, _ = part
    return len(taken) > 1 and all(isinstance(one, np.ndarray) and one.ndim == 1 for one in taken)


def _points(parts: list[Part], chunk_shape: tuple[int, ...], out_shape: tuple[int, ...]) -> Points | None:
    if len(out_shape) != 1 or any(len(goes) != 1 for *_, goes in parts):
        return None
    coordinates = np.full((out_shape[0], len(chunk_shape)), -1, np.int64)
    for index, taken, (where,) in parts:
        coordinates[where] = np.stack(taken, axis=-1) + np.multiply(index, chunk_shape)
    return None if (coordinates < 0).any() else Points(coordinates)


def _product(
    parts: list[Part], chunk_shape: tuple[int, ...], drop_axes: tuple[int, ...], out_shape: tuple[int, ...]
) -> tuple[int | slice | Indices, ...] | None:
    """The selection axis by axis; None if parts of it are missing."""
    selection: list[int | slice | Indices] = []
    lengths: list[int] = []
    count, position = 1, 0
    for axis, chunk in enumerate(chunk_shape):
        on_axis = {index[axis]: (taken[axis], goes, position) for index, taken, goes in parts if len(taken) > axis}
        count *= len(on_axis)
        first: Any = next(iter(on_axis.values()), (None,))[0]
        if axis in drop_axes or isinstance(first, int | np.integer):
            if len(on_axis) != 1:
                return None
            ((number, _),) = ((index, taken) for index, (taken, *_) in on_axis.items())
            selection.append(number * chunk + int(np.ravel(first)[0]))
            continue
        asked = _axis(on_axis, chunk)
        if asked is None:
            return None
        position += 1
        selection.append(asked)
        lengths.append(_length(asked))
    return tuple(selection) if count == len(parts) and tuple(lengths) == out_shape else None


def _length(asked: slice | Indices) -> int:
    return len(range(asked.start, asked.stop, asked.step)) if isinstance(asked, slice) else len(asked)


def _axis(on_axis: dict[int, tuple[Any, tuple[Any, ...], int]], chunk: int) -> slice | Indices | None:
    """The selection of one axis: a slice if possible, otherwise the indices in the order of the output."""
    if any(position >= len(goes) for _, goes, position in on_axis.values()):
        return None
    takes = [(index, taken) for index, (taken, *_) in sorted(on_axis.items())]
    if all(isinstance(taken, slice) for _, taken in takes):
        joined = _joined(takes, chunk)
        if joined is not None:
            return joined
    targets = [_numbers(goes[position]) for _, (_, goes, position) in sorted(on_axis.items())]
    indices = [_numbers(taken) + index * chunk for index, taken in takes]
    ordered = np.full(sum(map(len, indices)), -1, np.int64)
    for where, numbers in zip(targets, indices, strict=True):
        if len(where) != len(numbers) or (len(where) and where.max() >= len(ordered)):
            return None
        ordered[where] = numbers
    return None if (ordered < 0).any() else ordered


def _numbers(selection: Any) -> Indices:
    """The indices of a slice, of a list (also in the shape of `numpy.ix_`), of a mask, or of an integer."""
    if isinstance(selection, np.ndarray) and selection.dtype.kind == "b":  # since zarr-python 3.4
        return np.flatnonzero(selection).astype(np.int64)
    if isinstance(selection, slice):
        return np.arange(selection.start or 0, selection.stop, selection.step or 1, dtype=np.int64)
    return np.ravel(selection).astype(np.int64)


def _joined(takes: list[tuple[int, slice]], chunk: int) -> slice | None:
    """Join the slices of the chunks along an axis into one slice; None if they do not form one."""
    if any((taken.step or 1) < 1 for _, taken in takes):
        return None
    ranges = [range(*taken.indices(chunk)) for _, taken in takes]
    if not all(ranges):
        return None
    starts = [index * chunk + part.start for (index, _), part in zip(takes, ranges, strict=True)]
    lasts = [index * chunk + part[-1] for (index, _), part in zip(takes, ranges, strict=True)]
    step = ranges[0].step if len(ranges[0]) > 1 or len(ranges) == 1 else starts[1] - starts[0]
    is_even = all(start == last + step for last, start in zip(lasts, starts[1:], strict=False))
    same_steps = all(len(part) < 2 or part.step == step for part in ranges)
    return slice(starts[0], lasts[-1] + 1, step) if is_even and same_steps else None
