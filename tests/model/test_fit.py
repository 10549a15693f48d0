"""A fit recovers the coefficients from computed timings, for which the truth is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from made_up import TRUTH, made_up_cells, variables

from draws import few
from hyperslab.errors import TooFewCells
from hyperslab.model.fit import REPEATED, fit, nnls
from hyperslab.model.terms import BYTES_ONLY, EXTENDED, IO_ONLY, PAPER


@settings(max_examples=few(60), deadline=None)
@given(st.integers(1, 12), st.integers(1, 30), st.integers(0, 2**32 - 1))
def test_nnls_is_that_of_scipy(columns: int, rows: int, seed: int) -> None:
    optimize = pytest.importorskip("scipy.optimize")
    random = np.random.default_rng(seed)
    matrix = random.normal(size=(rows, columns)) * 10.0 ** random.integers(-4, 5, columns)
    target = random.normal(size=rows)
    ours, (_, residual) = nnls(matrix, target), optimize.nnls(matrix, target)
    assert (ours >= 0).all()
    assert np.linalg.norm(matrix @ ours - target) == pytest.approx(residual, rel=1e-4, abs=1e-6)


def test_nnls_of_columns_without_anything() -> None:
    assert nnls(np.zeros((4, 2)), np.ones(4)).tolist() == [0.0, 0.0]


@settings(max_examples=few(10), deadline=None)
@given(st.integers(0, 1000))
def test_known_coefficients_are_found(seed: int) -> None:
    found = fit(made_up_cells("hdf5", "read", 80, seed), "hdf5", "read")
    values = {each.term.variable: each.value for each in found.each}
    for name, value in TRUTH.items():
        if name in values:
            assert values[name] == pytest.approx(value, rel=0.05, abs=1e-14), name
    assert found.rmse_log10 < 0.005
    assert found.cell_count == 80
    assert not found.ridge


def test_intervals_hold_the_truth_where_times_scatter() -> None:
    found = fit(made_up_cells("hdf5", "write", 300, 3, noise=0.1), "hdf5", "write")
    held = [
        each.low <= TRUTH[each.term.variable] * 1.02 and TRUTH[each.term.variable] * 0.98 <= each.high
        for each in found.each
        if each.low is not None and each.high is not None
    ]
    assert np.mean(held) > 0.75
    assert found.spread == pytest.approx(np.hypot(0.1, REPEATED), rel=0.2)


def test_reads_that_copying_covers_have_a_price_of_their_own() -> None:
    cells = made_up_cells("zarr", "read", 120, 5, overlaps=True)
    found = fit(cells, "zarr", "read")
    values = {each.term.variable: each.value for each in found.each}
    assert values["s_covered"] < 0.1 * values["s_exposed"]
    assert found.rmse_log10 < 0.02
    assert fit(cells, "zarr", "read", EXTENDED.without("overlap")).rmse_log10 > found.rmse_log10


def test_an_outlier_moves_little() -> None:
    cells = made_up_cells("hdf5", "read", 100, 1, noise=0.02)
    one = cells[7]
    spoilt = [*cells[:7], type(one)(**{**vars(one), "seconds": one.seconds * 30}), *cells[8:]]
    values = [{each.term.name: each.value for each in fit(c, "hdf5", "read").each} for c in (cells, spoilt)]
    assert values[1]["s_memcpy"] == pytest.approx(values[0]["s_memcpy"], rel=0.2)


def test_baselines_fit_worse() -> None:
    cells = made_up_cells("hdf5", "read", 120, 2)
    errors = [fit(cells, "hdf5", "read", model).rmse_log10 for model in (EXTENDED, PAPER, IO_ONLY, BYTES_ONLY)]
    assert errors[0] < errors[1] < errors[2]
    assert errors[0] < errors[3]


def test_codecs_have_coefficients_of_their_own() -> None:
    cells = made_up_cells("hdf5", "read", 60, 4)
    cells += made_up_cells("hdf5", "read", 40, 5, codec="zstd", s_decode=2e-9)
    cells += made_up_cells("hdf5", "read", 40, 6, codec="deflate", s_decode=8e-9)
    values = {each.term.name: each.value for each in fit(cells, "hdf5", "read").each}
    assert values["s_decode[zstd]"] == pytest.approx(2e-9, rel=0.05)
    assert values["s_decode[deflate]"] == pytest.approx(8e-9, rel=0.05)


def test_too_few_cells_say_how_many_it_takes() -> None:
    with pytest.raises(TooFewCells, match=r"5 cells are too few for \d+ coefficients; measure at least"):
        fit(made_up_cells("hdf5", "read", 5, 0), "hdf5", "read")
    with pytest.raises(TooFewCells):
        fit([], "hdf5", "read")


def alike(apart: float) -> list[Any]:
    """Each chunk is read by one request, except for a share of `apart`."""
    found: list[Any] = []
    for cell, more in zip(made_up_cells("zarr", "read", 60, 8), np.random.default_rng(1).normal(size=60), strict=True):
        n = cell.variables.n_chunk
        made = variables(n_chunk=n * (1 + apart * more), n_cache=n)
        found.append(type(cell)(**{**vars(cell), "variables": made, "seconds": 1e-3 * n}))
    return found


def test_what_cannot_be_told_apart_is_counted_with_what_comes_first() -> None:
    found = fit(alike(0.0), "zarr", "read")
    assert [each.term.name for each in found.each] == ["n_cache"]
    assert found.each[0].value == pytest.approx(1e-3, rel=1e-6)
    assert not found.ridge


def test_what_can_hardly_be_told_apart_is_said() -> None:
    found = fit(alike(3e-6), "zarr", "read")
    assert found.ridge
    assert found.condition > 1e5
    assert sum(each.value for each in found.each) == pytest.approx(1e-3, rel=0.02)
