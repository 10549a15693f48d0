"""The nouns as Python objects: equality, hashing, pickling, their text, and what they refuse."""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import hyperslab
from hyperslab import ChunkGrid, Hyperslab, Points

NOUNS = [
    Hyperslab((1, 2), (4, 1), (3, 0), (2, 1)),
    Hyperslab(()),
    Points([[1, 2], [0, 0], [1, 2]]),
    ChunkGrid((10,), (3,)),
]


@pytest.mark.parametrize("noun", NOUNS, ids=repr)
def test_text_pickle_and_copy_give_an_equal_object(noun: Hyperslab | Points | ChunkGrid) -> None:
    twins = [eval(repr(noun)), copy.deepcopy(noun)]
    twins += [pickle.loads(pickle.dumps(noun, protocol)) for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    assert all(twin == noun and hash(twin) == hash(noun) for twin in twins)


def test_empty_points_survive_pickling() -> None:
    nothing = Points(np.empty((0, 3), int))
    assert pickle.loads(pickle.dumps(nothing)) == nothing
    assert (nothing.ndim, nothing.size, nothing.shape) == (3, 0, (0,))


def test_nouns_that_differ_are_unequal() -> None:
    assert Hyperslab((0,), count=(6,)) != Hyperslab((0,), block=(6,))
    assert ChunkGrid((10,), (3,)) != ChunkGrid((10,), (4,))
    assert Points([[0, 1]]) != Points([[1, 0]])
    assert Hyperslab((0,)) != (0,)


def test_nouns_are_immutable() -> None:
    with pytest.raises(AttributeError):
        NOUNS[0].start = (0, 0)
    with pytest.raises(AttributeError):
        NOUNS[0].colour = "red"
    coordinates = NOUNS[2].coordinates
    coordinates[:] = 0
    assert NOUNS[2].coordinates.tolist() == [[1, 2], [0, 0], [1, 2]]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (((0,), (2,), (2,), (3,)), ValueError, "blocks overlap on axis 0: stride 2 is less than block 3"),
        (((0, 0), None, None, (1, 0)), ValueError, "block is 0 on axis 1"),
        (((0,), (0,)), ValueError, "stride is 0 on axis 0"),
        (((0,), None, (1, 1)), ValueError, "count has 2 axes but start has 1"),
        (((0, -3),), ValueError, r"start\[1\] is -3: use a whole number from 0"),
        (((0, 1.5),), TypeError, r"start\[1\] is 1.5: use a whole number"),
        ((7,), TypeError, "start is 7: give a sequence with one whole number per axis"),
        (((2**63,),), ValueError, "the last index of the hyperslab exceeds 2\\^63 - 1"),
        (((2**64,),), ValueError, r"start\[0\] is 18446744073709551616: use a whole number"),
    ],
)
def test_hyperslab_names_what_is_wrong(arguments: tuple, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Hyperslab(*arguments)


@pytest.mark.parametrize(
    ("index", "error", "message"),
    [
        (np.s_[::-1], ValueError, "axis 0: step -1 is negative"),
        (np.s_[:, 5], IndexError, "axis 1: index 5 is outside an array of length 5"),
        (np.s_[-5], IndexError, "axis 0: index -5 is outside an array of length 4"),
        (np.s_[0, 0, 0], IndexError, "3 indices for 2 axes"),
        (np.s_[..., ...], IndexError, "use at most one"),
        (np.s_[None], TypeError, "axis 0: None is neither a whole number, a slice nor an ellipsis"),
        (np.s_[0, [1, 2]], TypeError, "axis 1: .* is neither"),
    ],
    ids=str,
)
def test_from_slices_names_what_is_wrong(index: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Hyperslab.from_slices(index, (4, 5))


@pytest.mark.parametrize(
    ("coordinates", "error", "message"),
    [
        ([[0.5, 1.0]], TypeError, "not whole numbers"),
        ([1, 2], ValueError, "one row per point"),
        ([[0, -1]], ValueError, "coordinate -1 is negative"),
        (np.empty((2, 0), int), ValueError, "at least one axis"),
    ],
)
def test_points_name_what_is_wrong(coordinates: object, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        Points(coordinates)


def test_what_lies_outside_is_an_index_error() -> None:
    grid = ChunkGrid((10, 10), (4, 5))
    for selection in (Hyperslab((0, 8), count=(1, 3)), Points([[0, 0], [0, 10]])):
        for ask in (selection.check_within, grid.chunks, grid.copy_runs, grid.fully_covered, grid.totals):
            with pytest.raises(IndexError, match="axis 1: index 10 is outside an array of length 10"):
                ask((10, 10) if ask == selection.check_within else selection)
    with pytest.raises(IndexError, match="axis 1: chunk index 2 is outside a grid of 2 chunks"):
        grid.linear_index((0, 2))
    with pytest.raises(IndexError, match="linear chunk index 6 is outside a grid of 6 chunks"):
        grid.chunk_index(6)


def test_grids_name_what_is_wrong() -> None:
    with pytest.raises(ValueError, match="chunk shape is 0 on axis 0"):
        ChunkGrid((1,), (0,))
    with pytest.raises(ValueError, match="the chunk shape has 1 axes but the array's shape has 2"):
        ChunkGrid((1, 1), (1,))
    with pytest.raises(ValueError, match="the hyperslab has 1 axes but the array has 2"):
        ChunkGrid((1, 1), (1, 1)).chunks(Hyperslab((0,)))
    with pytest.raises(TypeError, match="selection is a slice: give a Hyperslab or Points"):
        ChunkGrid((1,), (1,)).chunks(np.s_[:])


def test_the_package_says_its_version_and_imports_little() -> None:
    assert hyperslab.__version__.count(".") == 2
    loaded = "import sys, hyperslab; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True).stdout
    assert not {"h5py", "zarr", "matplotlib", "pandas", "scipy", "numpy"} & set(modules.split())
