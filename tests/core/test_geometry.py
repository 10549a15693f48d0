"""The geometry as Python sees it, against NumPy's own indexing."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from draws import few
from hyperslab import ChunkGrid, Hyperslab, Points


@dataclass(frozen=True)
class Case:
    """A selection within an array, and the same selection as the index of each element, in order."""

    shape: tuple[int, ...]
    chunk_shape: tuple[int, ...]
    selection: Hyperslab | Points
    elements: np.ndarray  # (size, ndim)

    @property
    def grid(self) -> ChunkGrid:
        return ChunkGrid(self.shape, self.chunk_shape)

    @property
    def expected_chunks(self) -> np.ndarray:
        return np.unique(self.elements // np.array(self.chunk_shape, int), axis=0)

    def offsets_in(self, chunk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The chunk and buffer offsets of the elements that lie in a chunk, in the selection's order."""
        inside = (self.elements // np.array(self.chunk_shape, int) == chunk).all(axis=1)
        within_chunk = (self.elements[inside] - chunk * np.array(self.chunk_shape, int)).T
        return np.ravel_multi_index(tuple(within_chunk), self.chunk_shape), np.flatnonzero(inside)

    def expected_runs(self, chunk: np.ndarray) -> list[tuple[int, int, int]]:
        chunk_offsets, buffer_offsets = self.offsets_in(chunk)
        breaks = np.flatnonzero((np.diff(chunk_offsets) != 1) | (np.diff(buffer_offsets) != 1)) + 1
        starts = np.concatenate([[0], breaks])
        lengths = np.diff(np.concatenate([starts, [chunk_offsets.size]]))
        return [
            (int(chunk_offsets[start]), int(buffer_offsets[start]), int(length))
            for start, length in zip(starts, lengths, strict=True)
        ]

    def valid_count(self, chunk: np.ndarray) -> int:
        inside_array = [
            min(length - index * chunk_length, chunk_length)
            for index, length, chunk_length in zip(chunk, self.shape, self.chunk_shape, strict=True)
        ]
        return math.prod(map(int, inside_array))


@st.composite
def hyperslabs(draw: st.DrawFn) -> Case:
    axes = draw(
        st.lists(st.tuples(*[st.integers(0, 3)] * 4, st.integers(1, 3), st.integers(1, 5)), min_size=1, max_size=4)
    )
    start, gap, count, rest, block, chunk_shape = (tuple(column) for column in zip(*axes, strict=True))
    stride = tuple(np.add(block, gap).tolist())
    selection = Hyperslab(start, stride, count, block)
    shape = tuple(stop + spare for (_, stop), spare in zip(selection.bounds, rest, strict=True))
    along = [
        [first + i * step + j for i in range(blocks) for j in range(length)]
        for first, step, blocks, length in zip(start, stride, count, block, strict=True)
    ]
    numbers = np.arange(math.prod(shape)).reshape(shape)[np.ix_(*along)]
    assert selection.shape == numbers.shape
    assert selection.size == numbers.size
    elements = (
        np.stack(np.unravel_index(numbers.ravel().astype(int), shape), axis=1)
        if numbers.size
        else np.empty((0, len(shape)), int)
    )
    return Case(shape, chunk_shape, selection, elements)


@st.composite
def points(draw: st.DrawFn) -> Case:
    axes = draw(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 4)), min_size=1, max_size=3))
    shape, chunk_shape = (tuple(column) for column in zip(*axes, strict=True))
    point = st.tuples(*(st.integers(0, length - 1) for length in shape))
    coordinates = np.array(draw(st.lists(point, max_size=30)), int).reshape(-1, len(shape))
    return Case(shape, chunk_shape, Points(coordinates), coordinates)


@st.composite
def indexed_arrays(draw: st.DrawFn) -> tuple[tuple[int, ...], tuple[slice | int, ...]]:
    shape = tuple(draw(st.lists(st.integers(0, 9), min_size=1, max_size=4)))
    bound = st.none() | st.integers(-12, 12)
    slices = st.builds(slice, bound, bound, st.none() | st.integers(1, 12))
    index = tuple(
        draw(slices | st.integers(-length, length - 1) if length else slices)
        for length in shape[: draw(st.integers(0, len(shape)))]
    )
    return shape, index


@pytest.mark.slow
@settings(max_examples=few(300))
@given(hyperslabs() | points())
def test_chunks_and_runs_match_brute_force(case: Case) -> None:
    grid, expected = case.grid, case.expected_chunks
    chunks = grid.chunks(case.selection)
    assert chunks.dtype == np.int64
    np.testing.assert_array_equal(chunks, expected)
    runs = [case.expected_runs(chunk) for chunk in expected]
    assert [grid.runs(chunk, case.selection) for chunk in chunks] == runs
    run_counts, element_counts = grid.copy_runs(case.selection)
    assert run_counts.tolist() == [len(of_chunk) for of_chunk in runs]
    assert element_counts.tolist() == [sum(length for *_, length in of_chunk) for of_chunk in runs]
    distinct = [np.unique(case.offsets_in(chunk)[0]).size for chunk in expected]
    valid = [case.valid_count(chunk) for chunk in expected]
    assert grid.fully_covered(case.selection).tolist() == [a == b for a, b in zip(distinct, valid, strict=True)]


@settings(max_examples=few(300))
@given(hyperslabs() | points())
def test_totals_match_brute_force(case: Case) -> None:
    totals, expected = case.grid.totals(case.selection), case.expected_chunks
    assert totals.chunk_count == len(expected)
    assert totals.run_count == sum(len(case.expected_runs(chunk)) for chunk in expected)
    assert totals.element_count == len(case.elements)
    assert totals.decoded_element_count == len(expected) * math.prod(case.chunk_shape)
    assert totals.valid_element_count == sum(map(case.valid_count, expected))
    if len(case.elements):
        assert totals.read_amplification == totals.decoded_element_count / len(case.elements)
    else:
        assert totals.read_amplification is None


@settings(max_examples=few(200))
@given(hyperslabs() | points())
def test_runs_copy_what_numpy_selects(case: Case) -> None:
    array = np.arange(math.prod(case.shape)).reshape(case.shape)
    output = np.full(case.selection.size, -1)
    for chunk_index in case.grid.chunks(case.selection):
        box = case.grid.chunk_box(chunk_index)
        buffer = np.full(case.chunk_shape, -2)
        buffer[tuple(slice(0, length) for length in box.shape)] = array[box.slices]
        for chunk_offset, buffer_offset, length in case.grid.runs(chunk_index, case.selection):
            output[buffer_offset : buffer_offset + length] = buffer.ravel()[chunk_offset : chunk_offset + length]
    np.testing.assert_array_equal(output, array[tuple(case.elements.T)])


@settings(max_examples=few(300))
@given(indexed_arrays())
def test_from_slices_selects_what_numpy_does(indexed: tuple[tuple[int, ...], tuple[slice | int, ...]]) -> None:
    shape, index = indexed
    array = np.arange(math.prod(shape)).reshape(shape)
    hyperslab = Hyperslab.from_slices(index, shape)
    hyperslab.check_within(shape)
    ints = tuple(axis for axis, item in enumerate(index) if isinstance(item, int))
    expected = np.expand_dims(array[index], ints)
    assert hyperslab.shape == expected.shape
    np.testing.assert_array_equal(array[hyperslab.slices], expected)


@given(hyperslabs())
def test_slices_say_the_same_or_refuse(case: Case) -> None:
    hyperslab = case.selection
    assert isinstance(hyperslab, Hyperslab)
    axes = list(zip(hyperslab.block, hyperslab.stride, hyperslab.count, strict=True))
    assert hyperslab.is_contiguous_box == all(count < 2 or stride == block for block, stride, count in axes)
    if any(block > 1 and stride != block and count > 1 for block, stride, count in axes):
        with pytest.raises(ValueError, match=r"axis \d selects blocks of"):
            _ = hyperslab.slices
    else:
        array = np.arange(math.prod(case.shape)).reshape(case.shape)
        assert array[hyperslab.slices].ravel().tolist() == array[tuple(case.elements.T)].tolist()


def test_ellipsis_and_missing_axes_are_taken_whole() -> None:
    shape = (4, 5, 6)
    assert Hyperslab.from_slices(..., shape) == Hyperslab.all(shape)
    assert Hyperslab.from_slices((), shape) == Hyperslab.all(shape)
    assert Hyperslab.from_slices(np.s_[1:3], shape).bounds == ((1, 3), (0, 5), (0, 6))
    assert Hyperslab.from_slices(np.s_[..., -1], shape).bounds == ((0, 4), (0, 5), (5, 6))
    assert Hyperslab.from_slices(np.s_[0, ..., :2], shape).bounds == ((0, 1), (0, 5), (0, 2))
    assert Hyperslab.from_slices(np.int32(3), shape).bounds == ((3, 4), (0, 5), (0, 6))


def test_defaults() -> None:
    assert Hyperslab((2, 3)) == Hyperslab((2, 3), (1, 1), (1, 1), (1, 1))
    assert Hyperslab((0,), count=(3,), block=(4,)).stride == (4,)
    assert Hyperslab((0,), count=(3,), block=(4,)).is_contiguous_box


def test_arrays_without_axes_have_one_element() -> None:
    grid, everything = ChunkGrid((), ()), Hyperslab.all(())
    assert (everything.size, everything.slices) == (1, ())
    assert grid.chunks(everything).shape == (1, 0)
    assert grid.runs((), everything) == [(0, 0, 1)]
    assert grid.totals(everything).run_count == 1


def test_an_empty_array_has_no_chunks() -> None:
    grid = ChunkGrid((0, 7), (2, 3))
    assert (grid.grid_shape, grid.chunk_count) == ((0, 3), 0)
    assert grid.chunks(Hyperslab.all((0, 7))).shape == (0, 2)
    assert grid.totals(Hyperslab.all((0, 7))).chunk_count == 0


def test_edge_chunks_are_covered_by_their_valid_part() -> None:
    grid = ChunkGrid((5,), (4,))
    assert grid.chunk_box((1,)).shape == (1,)
    assert grid.fully_covered(Hyperslab((1,), block=(4,))).tolist() == [False, True]


def test_linear_index_is_row_major() -> None:
    grid = ChunkGrid((10, 10), (4, 3))
    assert grid.grid_shape == (3, 4)
    assert [grid.linear_index(grid.chunk_index(place)) for place in range(12)] == list(range(12))
    assert grid.chunk_index(5) == (1, 1)


def test_totals_of_a_huge_array_are_immediate() -> None:
    grid = ChunkGrid((2**30, 2**30), (2**10, 2**10))
    totals = grid.totals(Hyperslab.all(grid.shape))
    assert (totals.chunk_count, totals.run_count, totals.element_count) == (2**40, 2**50, 2**60)
