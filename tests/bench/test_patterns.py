"""Every operation makes the same selections for every format, all inside the array."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperslab.bench.operations import OPERATIONS, Operation, selections

READS = [name for name, kind in OPERATIONS.items() if kind.pattern is not None]
shapes = st.lists(st.integers(1, 40), min_size=2, max_size=4).map(tuple)


@pytest.mark.parametrize("name", READS)
@given(shape=shapes)
@settings(max_examples=25, deadline=None)
def test_selections_lie_within_the_array_and_are_the_same_every_time(name, shape) -> None:
    operation = Operation(name=name, count=None if name == "read-all" else 5)
    asked = selections(operation, shape)
    assert asked == selections(operation, shape)
    assert asked
    array = np.arange(math.prod(shape)).reshape(shape)
    for selection in asked:
        selection.check_within(shape)
        assert array[selection.slices].shape == selection.shape


@pytest.mark.parametrize("name", READS)
def test_one_dimensional_arrays_have_every_pattern(name) -> None:
    for selection in selections(Operation(name=name, count=3), (100,)):
        selection.check_within((100,))


def test_seed_1_boxes_lie_in_the_leftmost_columns() -> None:
    operation = Operation(name="read-random-boxes", count=50, shape=[1000, 8], within=[None, 8])
    for selection in selections(operation, (35660, 64)):
        assert selection.shape == (1000, 8)
        assert selection.slices[1] == slice(0, 8, 1)


def test_every_second_element_is_asked_for_along_every_axis() -> None:
    (selection,) = selections(Operation(name="read-strided", step=2), (10, 7))
    assert selection.shape == (5, 4)


def test_a_hyperslab_is_as_large_as_its_fraction_says() -> None:
    (selection,) = selections(Operation(name="read-hyperslab", fraction=0.25), (100, 6))
    assert selection.shape == (25, 6)
