"""The plan of slabs: covers the array once, in whole chunks, within the memory."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import few
from hyperslab.conversion.slabs import passes, slab_plan
from hyperslab.errors import TooLargeForMemory

LENGTHS = st.integers(1, 40)


@settings(deadline=None, max_examples=few(200))
@given(axes=st.lists(st.tuples(LENGTHS, LENGTHS, LENGTHS), min_size=1, max_size=3), spare=st.integers(1, 100))
def test_slabs_are_whole_chunks_within_the_memory(axes: list[tuple[int, int, int]], spare: int) -> None:
    shape, source, target = (tuple(one) for one in zip(*axes, strict=True))
    clipped = tuple(map(min, target, shape))
    memory = 4 * math.prod(clipped) * spare
    plan = slab_plan(shape, source, target, 4, memory)
    assert math.prod(plan.slab_shape) * 4 <= memory
    assert plan.decodes >= 1
    seen = np.zeros(shape, int)
    for box in plan.boxes():
        seen[box] += 1
        assert all(one.start % chunk == 0 for one, chunk in zip(box, clipped, strict=True))
        ends = zip(box, clipped, shape, strict=True)
        assert all(one.stop % chunk == 0 or one.stop == length for one, chunk, length in ends)
    assert (seen == 1).all()


def test_enough_memory_decodes_once() -> None:
    plan = passes((1000, 100, 100), (1, 100, 100), (1000, 10, 10), 4, 1 << 30)
    assert plan.source is None
    assert plan.target.decodes == 1


def test_little_memory_needs_an_intermediate_file() -> None:
    plan = passes((1000, 100, 100), (1, 100, 100), (1000, 10, 10), 4, 2 << 20)
    assert plan.source is not None
    assert plan.source.decodes == 1


def test_too_little_memory_is_an_error() -> None:
    with pytest.raises(TooLargeForMemory, match="a chunk of the target has 400000 bytes"):
        slab_plan((1000, 100), (1, 100), (1000, 100), 4, 1000)
