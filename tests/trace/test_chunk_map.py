"""The map of an array's chunks can be read, whatever the shape of the array."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from made_traces import Tags, array_of, made_trace

from hyperslab.report.chunk_map import chunk_map
from hyperslab.trace.chunk_touches import touched
from hyperslab.trace.summaries import summaries_of


def map_of(shape: tuple[int, ...], chunks: tuple[int, ...], keys: list[Any]) -> tuple[str, list[list[int]]]:
    """The figure of an array's chunks, and its cells."""
    (one,) = summaries_of(made_trace(keys, array_of(shape, chunks)))
    return chunk_map(one), one.heat


@pytest.mark.parametrize(
    ("shape", "chunks", "keys", "words"),
    [
        ((10_000,), (100,), [np.s_[:5000]] * 3, ["axis 0: 100 chunks of 100 →", "a bar stands for 3 of them"]),
        ((40,), (10,), [np.s_[:]], ["axis 0: 4 chunks of 10 →", "touched each chunk: at most 1 times"]),
        ((100_000, 200), (100, 100), [np.s_[:4000, 0]], ["axis 0: 1,000 chunks of 100 →", "axis 1: 2 chunks of 100 ↓"]),
        ((200, 100_000), (100, 100), [np.s_[0, :4000]], ["axis 1: 1,000 chunks of 100 →", "axis 0: 2 chunks of 100 ↓"]),
        ((60, 50), (10, 10), [np.s_[0]] * 20, ["axis 0: 6 chunks of 10 →", ">20<", "touches"]),
        ((365, 180, 360), (10, 45, 90), [np.s_[:, 0, 0]], ["axis 2", "stands for 4 of them, with all along axis 2"]),
    ],
)
def test_the_map_of_chunks_can_be_read(
    shape: tuple[int, ...], chunks: tuple[int, ...], keys: list[Any], words: list[str]
) -> None:
    """An array of 1,000 × 2 chunks was a strip 26 pixels wide, without names, counts or a legend."""
    figure, heat = map_of(shape, chunks, keys)
    for part in words:
        assert part in figure
    width, height = map(int, re.findall(r'viewBox="0 0 (\d+) (\d+)"', figure)[0])
    assert 1.1 <= width / height <= 5
    assert ("touches</text>" in figure) == (len(heat) > 1), "bars have their counts beside them"
    trace = made_trace(keys, array_of(shape, chunks))
    assert sum(map(sum, heat)) == sum(len(touched(*trace.selection(k), shape, chunks)) for k in range(len(keys)))
    parser = Tags()
    parser.feed(figure)
    assert not parser.open


def test_equal_touches_are_bars_of_equal_height() -> None:
    """100 chunks shared 48 cells unevenly, so that equal reads looked like waves."""
    _, (row,) = map_of((10_000,), (100,), [np.s_[...]])
    assert set(row[:-1]) == {3}


def test_a_single_chunk_has_no_map() -> None:
    assert map_of((100, 100), (100, 100), [np.s_[0]])[0] == ""
