"""Formula 1 and its terms: sums of phases, intervals, variables that were not trained, formulas 8 to 10."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from made_up import TRUTH, made_up_cells, made_up_store_profile, variables

from hyperslab.model import BASELINES, EXTENDED, PAPER, fit, parallel_values, price
from hyperslab.model.costs import CodecRate
from hyperslab.model.terms import EXTENSIONS, FILLER_SHARE, PHASES, REPLACED, values


def test_seconds_are_the_sum_of_the_phases() -> None:
    cells = made_up_cells("hdf5", "write", 120, 1)
    found = fit(cells, "hdf5", "write")
    for cell in cells[:10]:
        cost = price(cell.variables, found)
        assert cost.seconds == sum(cost.phases.values()) == pytest.approx(cell.seconds, rel=0.02)
        assert cost.low <= cost.seconds <= cost.high
        assert cost.extrapolating == ()
        assert set(cost.phases) == set(PHASES)


def test_phases_are_the_terms_of_their_formulas() -> None:
    found = fit(made_up_cells("hdf5", "read", 120, 1), "hdf5", "read")
    cost = price(variables(n_memcpy=1e4, s_memcpy=1e6, n_rseek=100, n_rdisk=100, s_rdisk=1e6, n_rindex=4), found)
    seconds = {"memory_copy": 1e4 * TRUTH["n_memcpy"] + 1e6 * TRUTH["s_memcpy"]}
    seconds["device_read"] = 100 * (TRUTH["n_rseek"] + TRUTH["n_rdisk"]) + 1e6 * TRUTH["s_rdisk"]
    seconds["device_read"] += 4 * TRUTH["n_rindex"]
    for name, expected in seconds.items():
        assert cost.phases[name] == pytest.approx(expected, rel=0.05)  # type: ignore[index]
    assert cost.phases["cache_read"] == 0


def test_intervals_are_wide_where_times_scatter() -> None:
    calm, wild = (fit(made_up_cells("hdf5", "read", 90, 1, noise=noise), "hdf5", "read") for noise in (0.02, 0.3))
    asked = made_up_cells("hdf5", "read", 1, 99)[0].variables
    reach = [price(asked, each).high / price(asked, each).seconds for each in (calm, wild)]
    assert 1.2 < reach[0] < 1.3 < 1.5 < reach[1] < 4, "even calm cells differ if they are measured again"


def test_the_last_bits_of_a_covariance_change_no_answer() -> None:
    """BLAS adds in another order each time, and five commands give one answer."""
    fitted = fit(made_up_cells("hdf5", "read", 90, 1, noise=0.3), "hdf5", "read")
    asked = made_up_cells("hdf5", "read", 1, 99)[0].variables
    ends = {
        (cost.low, cost.high)
        for bits in range(1, 9)
        for cost in [price(asked, replace(fitted, spread=0.0, covariance=fitted.covariance * (1 + bits * 1e-14)))]
    }
    assert len(ends) == 1


def test_a_codec_costs_less_on_fill_values_and_more_without_threads() -> None:
    rate = CodecRate(2e-9, 8e-9, decode_alone=4e-9)
    assert rate.seconds(variables(s_decode=1e6, s_encode=1e6)) == pytest.approx(2e-3 + 8e-3)
    assert rate.seconds(variables(s_decode=1e6, s_decode_alone=5e5)) == pytest.approx(1e-3 + 2e-3)
    assert rate.seconds(variables(s_encode=1e6, s_encode_alone=5e5)) == pytest.approx(8e-3), "it is not known"
    half = rate.seconds(variables(s_decode=1e6, s_decode_filler=5e5, s_encode=1e6, s_encode_filler=1e6))
    assert half == pytest.approx(2e-3 * (0.5 + 0.5 * FILLER_SHARE) + 8e-3 * FILLER_SHARE)


def test_what_was_never_trained_is_said() -> None:
    cells = [replace(c, variables=c.variables._replace(n_absent=0.0)) for c in made_up_cells("hdf5", "read", 90, 1)]
    found = fit(cells, "hdf5", "read")
    tiny = price(variables(n_memcpy=1e9, s_memcpy=1e9 * 1e-6, n_chunk=1, n_call=1), found)
    assert any("bytes per memory copy" in said for said in tiny.extrapolating)
    coded = price(variables(n_memcpy=100, s_memcpy=1e5, s_decode=1e6), found, codec="lz4")
    assert coded.unknown == ("codec lz4 was not trained",)
    assert coded.high == float("inf")


def test_nothing_costs_nothing() -> None:
    cost = price(variables(), fit(made_up_cells("hdf5", "read", 90, 1), "hdf5", "read"))
    assert (cost.seconds, cost.low, cost.high) == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("library", ["hdf5", "zarr"])
@pytest.mark.parametrize("operation", ["read", "write"])
def test_extensions_are_switched_by_name(library: str, operation: str) -> None:
    everything = EXTENDED.terms(library, operation, ("zstd",))  # type: ignore[arg-type]
    for name in EXTENSIONS:
        without = EXTENDED.without(name).terms(library, operation, ("zstd",))  # type: ignore[arg-type]
        kept = tuple(term for term in everything if term.extension != name)
        assert tuple(term for term in without if term.variable != REPLACED.get(name)) == kept
        assert len(without) == len(kept) + (name in REPLACED)
    paper = PAPER.terms(library, operation, ("zstd",))  # type: ignore[arg-type]
    assert all(term.extension is None and term.formulas for term in paper)
    assert len(paper) == {"hdf5": {"read": 8, "write": 12}, "zarr": {"read": 6, "write": 8}}[library][operation]
    with pytest.raises(ValueError, match="no extension 'magic'"):
        EXTENDED.without("magic")


def test_baselines_price_by_the_same_interface(tmp_path: Path) -> None:
    trained = made_up_store_profile(tmp_path)
    asked = trained.cells[0].variables
    for model in BASELINES:
        assert price(asked, trained.coefficients("hdf5", "read", model)).seconds > 0


def test_units() -> None:
    assert {term.unit for term in EXTENDED.terms("hdf5", "read") if term.variable.startswith("s_")} == {"s/B"}
    assert values(EXTENDED.terms("hdf5", "read"), variables(n_call=3)).sum() == 3


def test_parallel_formulas() -> None:
    asked = variables(n_rrequest=10, s_rrequest=1000, n_memcpy=7, s_memcpy=70)
    hdf5, zarr = (parallel_values(asked, library, "read", 5, 2) for library in ("hdf5", "zarr"))
    assert hdf5 == {"n_rrequest": 10, "s_rrequest": 1000, "n_rrequest*cf": 30, "s_rrequest*cf": 3000}  # formula 9
    assert zarr == hdf5 | {"n_rrequest*p": 50, "n_memcpy": 7, "s_memcpy": 70}  # formula 10
    assert parallel_values(variables(n_wrequest=2), "hdf5", "write", 1, 1)["n_wrequest*cf"] == 2
