"""What a difference between two versions must say, computed from their arrays in memory."""

from __future__ import annotations

from typing import Any

import numpy as np

import hyperslab as hs

Arrays = dict[str, np.ndarray[Any, Any]]


def assert_difference(file: hs.VersionedFile, before: str, after: str, old: Arrays, new: Arrays) -> None:
    """Compare everything that `diff` says with what brute force finds."""
    found = file.diff(before, after)
    assert (found.before, found.after, found.problems) == (before, after, {})
    for path in old.keys() | new.keys():
        one, other = old.get(path), new.get(path)
        if path not in found.arrays:
            assert one is not None
            assert other is not None
            assert one.shape == other.shape
            assert not differ(one, other).any(), path
            continue
        array = found[path]
        expected = "added" if one is None else "removed" if other is None else "changed"
        assert (array.status, array.problem) == (expected, None)
        shapes = tuple(None if side is None else side.shape for side in (one, other))
        assert array.shape == shapes
        known = one if other is None else other
        none = np.empty((0,) * len(array.chunk_shape), known.dtype)
        _assert_array(array, none if one is None else one, none if other is None else other)


def _assert_array(array: Any, one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> None:
    common = tuple(map(slice, map(min, one.shape, other.shape)))
    mask = differ(one[common], other[common])
    elements = array.elements()
    counts = (elements.count, elements.added_count, elements.removed_count)
    assert counts == (mask.sum(), other.size - mask.size, one.size - mask.size)
    coordinates = [tuple(place) for part in array.coordinates() for place in part.tolist()]
    assert sorted(coordinates) == [tuple(place) for place in np.argwhere(mask).tolist()]
    covered = np.zeros(mask.shape, int)
    for box in elements.boxes.tolist():
        covered[tuple(slice(*bounds) for bounds in box)] += 1
    assert covered.max(initial=0) <= 1
    assert (covered[mask] == 1).all()
    if mask.ndim == 1:
        assert (covered.astype(bool) == mask).all()
        assert len(elements.boxes) == np.count_nonzero(np.diff(np.concatenate([[0], mask.astype(int)])) == 1)
    chunks = {tuple(index) for index in array.chunks.tolist()}
    assert {tuple(index) for index in (np.argwhere(mask) // array.chunk_shape).tolist()} <= chunks
    for chunk in array.changed_chunks():
        assert chunk.chunk_index in chunks
        for part, side in ((chunk.before, one), (chunk.after, other)):
            box = tuple(
                slice(place * length, (place + 1) * length)
                for place, length in zip(chunk.chunk_index, array.chunk_shape, strict=True)
            )
            if part is None:
                assert side[box].size == 0
            else:
                np.testing.assert_array_equal(as_text(part), side[box])


def differ(one: np.ndarray[Any, Any], other: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Where two arrays of one shape differ."""
    if one.dtype.kind == "f":
        one, other = one.view(f"u{one.itemsize}"), other.view(f"u{one.itemsize}")
    return np.asarray(one != other)


def as_text(read: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Text as `str`."""
    if read.dtype.kind != "O":
        return read
    words = [one.decode() if isinstance(one, bytes) else one for one in read.reshape(-1)]
    return np.array(words, object).reshape(read.shape)
