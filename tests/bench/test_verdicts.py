"""Verdicts on made-up figures: what supports, contradicts and leaves undecided each kind of claim."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperslab.bench import conclusions, study
from hyperslab.bench.conclusions import Conclusion
from hyperslab.bench.records import Summary
from hyperslab.bench.verdict_sentences import Case, least_decided, sentence, word_of
from hyperslab.bench.verdicts import judge
from hyperslab.errors import StudyError
from hyperslab.lab.verdict import Verdict

FASTEST = {"kind": "fastest", "format": "hdf5", "among": ["hdf5", "netcdf4", "zarr2"]}
SLOWEST = {"kind": "slowest", "format": "hdf5", "among": ["hdf5", "netcdf4", "zarr2"]}
CONTENDERS = ["hdf5", "netcdf4", "zarr2"]
ORDER = {"kind": "order", "order": ["hdf5", "zarr2", "netcdf4"]}


def conclusion(claim: dict[str, Any], **more: Any) -> Conclusion:
    said: dict[str, Any] = {
        "id": "T-01",
        "study": "test",
        "cases": ["test-*"],
        "conclusion": "as claimed",
        "source": "figure 0",
        "published": "in words",
        "claim": claim,
        "metrics": {"published": "write", "fair": "write_durable"},
        "operations": ["write"],
    }
    return Conclusion.model_validate(said | more)


def summary(format_name: str, seconds: float, spread: float | None = 0.1, **more: Any) -> Summary:
    """A fair summary with `spread` on either side; None for no known interval."""
    said: dict[str, Any] = {
        "case": "test-1",
        "method": "fair",
        "conditions": "matched",
        "format": format_name,
        "operation": "write",
        "shape": "128x128",
        "dtype": "float32",
        "count": 1,
        "cache": "new",
        "processes": 1,
        "metric": "write_durable",
        "n": 7,
        "rejected": 0,
        "point_seconds": seconds,
        "median_seconds": seconds,
        "low_seconds": None if spread is None else seconds * (1 - spread),
        "high_seconds": None if spread is None else seconds * (1 + spread),
        "min_seconds": seconds,
        "per_array_seconds": seconds,
        "throughput_mbps": None,
        "layout": None,
        "stored_nbytes": None,
        "ratio": None,
    }
    return Summary(**(said | more))


def published(format_name: str, seconds: float, **more: Any) -> Summary:
    as_published = {"method": "published", "metric": "write", "conditions": "default", "cache": "unknown", "n": 4}
    return summary(format_name, seconds, spread=0.9, **(as_published | more))


def three(hdf5: float, zarr2: float, netcdf4: float, **more: Any) -> list[Summary]:
    return [summary("hdf5", hdf5, **more), summary("zarr2", zarr2, **more), summary("netcdf4", netcdf4, **more)]


def verdict(claim: dict[str, Any], summaries: list[Summary], **more: Any) -> Verdict:
    (found,) = judge([conclusion(claim, **more)], summaries)
    return found


@pytest.mark.parametrize(
    ("claim", "seconds", "expected"),
    [
        (FASTEST, (1, 2, 3), "holds"),
        (FASTEST, (2, 1, 3), "reverses"),
        (FASTEST, (1, 1.1, 3), "undecided"),  # intervals overlap
        (FASTEST, (1, 1, 1), "undecided"),
        (SLOWEST, (3, 2, 1), "holds"),
        (SLOWEST, (2, 3, 1), "reverses"),
        (SLOWEST, (3, 2.9, 1), "undecided"),
        (ORDER, (1, 2, 3), "holds"),
        (ORDER, (1, 3, 2), "reverses"),
        (ORDER, (1, 2, 2.1), "undecided"),
        (ORDER, (2, 2.1, 1), "reverses"),  # one pair is decided, the wrong way
    ],
)
def test_extremes_and_orders(claim: dict[str, Any], seconds: tuple[float, ...], expected: str) -> None:
    assert verdict(claim, three(*seconds)).verdict == expected


def ratio(low: float, high: float | None) -> dict[str, Any]:
    return {"kind": "ratio", "numerator": "hdf5", "denominator": "zarr2", "low": low, "high": high}


@pytest.mark.parametrize(
    ("claim", "zarr2", "expected"),
    [
        (ratio(1.8, 2.07), 2.0, "holds"),
        (ratio(1.8, 2.07), 9.0, "holds"),  # the same direction, outside the range
        (ratio(1.8, 2.07), 0.5, "reverses"),
        (ratio(1.8, 2.07), 1.05, "undecided"),
        (ratio(0.3, 0.3), 0.5, "holds"),
        (ratio(0.3, 0.3), 2.0, "reverses"),
        (ratio(0.8, 1.0), 0.9, "holds"),  # claims likeness
        (ratio(0.8, 1.0), 2.0, "reverses"),
        (ratio(0.8, 1.0), 0.4, "reverses"),
        (ratio(2, None), 3.0, "holds"),  # at least 2
        (ratio(2, None), 1.5, "reverses"),
        (ratio(2, None), 2.0, "undecided"),
    ],
)
def test_ratios_are_of_speeds(claim: dict[str, Any], zarr2: float, expected: str) -> None:
    assert verdict(claim, [summary("hdf5", 1), summary("zarr2", zarr2)]).verdict == expected


def test_figures_say_whether_a_ratio_is_inside_the_published_range() -> None:
    inside = verdict(ratio(1.8, 2.07), [summary("hdf5", 1), summary("zarr2", 2)])
    outside = verdict(ratio(1.8, 2.07), [summary("hdf5", 1), summary("zarr2", 9)])
    assert "hdf5/zarr2 2.00 [1.64, 2.44], inside the published range (n=7)" in inside.by_fair_method
    assert "outside the published range" in outside.by_fair_method


def effect(expected: str, axis: str = "conditions", of: str = "packed", against: str = "plain") -> dict[str, Any]:
    return {"kind": "effect", "axis": axis, "of": of, "against": against, "expected": expected}


@pytest.mark.parametrize(
    ("expected", "packed", "outcome"),
    [
        ("slower", 2.0, "holds"),
        ("slower", 0.5, "reverses"),
        ("slower", 1.2, "undecided"),
        ("slower", 1.1, "reverses"),  # certainly slower, and certainly by less than the tolerance
        ("faster", 0.5, "holds"),
        ("faster", 2.0, "reverses"),
        ("none", 1.0, "holds"),
        ("none", 2.0, "reverses"),
        ("none", 1.2, "undecided"),  # within the tolerance as a point, but not certainly
    ],
)
def test_effects_of_conditions(expected: str, packed: float, outcome: str) -> None:
    figures = [
        summary("hdf5", packed, spread=0.05, conditions="packed"),
        summary("hdf5", 1, spread=0.05, conditions="plain"),
    ]
    assert verdict(effect(expected), figures, formats=["hdf5"]).verdict == outcome


def test_a_slight_effect_needs_no_more_than_intervals_that_part() -> None:
    figures = [
        summary("hdf5", 1.2, spread=0.05, conditions="packed"),
        summary("hdf5", 1, spread=0.05, conditions="plain"),
    ]
    assert verdict({**effect("slower"), "tolerance": 0}, figures, formats=["hdf5"]).verdict == "holds"


def test_an_effect_is_judged_within_one_format() -> None:
    figures = [summary("hdf5", 2, conditions="packed"), summary("zarr2", 1, conditions="plain")]
    assert verdict(effect("slower"), figures, formats=["hdf5", "zarr2"]).reason.startswith(
        "the fair method did not measure"
    )


def test_effect_of_an_operation_and_of_a_format() -> None:
    loops = [summary("netcdf4", 1, operation="write-separate"), summary("netcdf4", 2)]
    assert verdict(effect("faster", "operation", "write-separate", "write"), loops).verdict == "holds"
    formats = [summary("csv", 1), summary("hdf5-compound", 2)]
    assert verdict(effect("faster", "format", "csv", "hdf5-compound"), formats).verdict == "holds"


def test_effect_of_the_number_of_arrays_is_per_array_and_across_cases() -> None:
    claim = effect("none", "count", "most", "fewest")
    alike = [summary("hdf5", 1, spread=0.01), summary("hdf5", 4, spread=0.01, case="test-2", count=4)]
    assert verdict(claim, alike).verdict == "holds"
    dearer = [summary("hdf5", 1, spread=0.01), summary("hdf5", 8, spread=0.01, case="test-2", count=4)]
    assert verdict(claim, dearer).verdict == "reverses"
    assert verdict(claim, alike[:1]).verdict == "undecided"


def test_cases_that_disagree_are_told_apart() -> None:
    found = verdict(FASTEST, three(1, 2, 3) + three(2, 1, 3, case="test-2"))
    assert found.sentence == (
        "depends: as claimed in 1 of 2 cases (hdf5 is 2 times as fast as zarr2); "
        "the opposite in 1: zarr2 is 2 times as fast as hdf5"
    )


def test_an_undecided_group_does_not_hinder_the_others() -> None:
    found = verdict(FASTEST, three(1, 2, 3) + three(1, 1, 3, shape="512x512"))
    assert found.verdict == "holds"
    assert found.sentence == (
        "holds: as claimed in 1 of 2 cases (hdf5 is 2 times as fast as zarr2); "
        "undecided: zarr2 takes 0.82 to 1.2 times as long as hdf5"
    )
    assert "largest: hdf5 1 s ≈ zarr2 1 s < netcdf4 3 s (n=7); test-1, write, 512x512" in found.by_fair_method


def test_without_an_interval_nothing_is_decided() -> None:
    assert verdict(FASTEST, three(1, 2, 3, spread=None)).verdict == "undecided"
    assert verdict(ratio(0.8, 1.0), [summary("hdf5", 1, None), summary("zarr2", 1, None)]).verdict == "undecided"


def test_a_missing_contender_cannot_support_but_can_contradict() -> None:
    assert verdict(FASTEST, three(1, 2, 3)[:2]).verdict == "undecided"
    assert "without netcdf4" in verdict(FASTEST, three(1, 2, 3)[:2]).by_fair_method
    assert verdict(FASTEST, three(2, 1, 3)[:2]).verdict == "reverses"
    assert verdict(FASTEST, three(1, 2, 3)[1:]).reason.startswith("the fair method did not measure")
    assert verdict(ORDER, three(1, 2, 3)[:2]).verdict == "undecided"


def test_what_was_not_run_is_left_out() -> None:
    assert judge([conclusion(FASTEST)], three(1, 2, 3, case="other-1")) == []
    assert judge([conclusion(FASTEST)], []) == []


def test_the_published_side_compares_points_and_the_fair_side_decides() -> None:
    points = [published("hdf5", 1.0), published("zarr2", 1.01), published("netcdf4", 3)]
    found = verdict(FASTEST, points + three(2, 1, 3))
    assert found.by_published_method == (
        "holds: hdf5 1 s < zarr2 1.01 s < netcdf4 3 s (n=4); test-1, write, 128x128, default, unknown"
    )
    assert found.by_fair_method.startswith("reverses: zarr2 1 s < hdf5 2 s < netcdf4 3 s (n=7)")
    assert found.verdict == "reverses"


def test_published_alone_decides_nothing() -> None:
    found = verdict(FASTEST, [published("hdf5", 1), published("zarr2", 2), published("netcdf4", 3)])
    assert (found.verdict, found.by_fair_method) == ("undecided", "not run")
    assert found.by_published_method.startswith("holds")


def test_only_the_metric_operation_conditions_and_cache_asked_for_count() -> None:
    wrong = [
        *three(2, 1, 3, metric="write"),
        *three(2, 1, 3, operation="write-fields"),
        *three(2, 1, 3, conditions="default"),
        *three(2, 1, 3, cache="cold"),
    ]
    found = verdict(FASTEST, three(1, 2, 3) + wrong, conditions=["matched"], caches=["new"])
    assert found.sentence == "holds: as claimed (hdf5 is 2 times as fast as zarr2)"


def test_operations_with_parameters_are_groups_of_their_own() -> None:
    figures = three(1, 2, 3, operation="write(fraction=0.5)") + three(2, 1, 3, operation="write(fraction=0.1)")
    assert verdict(FASTEST, figures).verdict == "depends"


def test_only_the_largest_count_where_a_conclusion_says_so() -> None:
    figures = three(2, 1, 3) + three(1, 2, 3, count=100)
    assert verdict(FASTEST, figures).verdict == "depends"
    assert verdict(FASTEST, figures, counts="largest").verdict == "holds"


def test_small_times_are_written_in_their_unit() -> None:
    told = verdict(FASTEST, three(0.21e-3, 0.4e-3, 5.5e-6)).by_fair_method
    assert "netcdf4 5.5 µs < hdf5 210 µs < zarr2 400 µs" in told


# --- the shipped conclusions ----------------------------------------------------------------------------------

SHIPPED = conclusions.load()
CASES = study.shipped()


def test_there_are_conclusions_of_both_studies() -> None:
    counted = [sum(c.id.startswith(seed) for c in SHIPPED) for seed in ("S0-", "S2-")]
    assert counted[0] >= 30
    assert counted[1] >= 50
    assert len({c.id for c in SHIPPED}) == len(SHIPPED)


@pytest.mark.parametrize("shipped", SHIPPED, ids=lambda shipped: shipped.id)
def test_a_conclusion_can_be_judged_on_its_cases(shipped: Conclusion) -> None:
    """Its cases exist, have the formats, operations and conditions that it compares, and can be replayed."""
    from fnmatch import fnmatchcase

    cases = [case for case in CASES if any(fnmatchcase(case.name, glob) for glob in shipped.cases)]
    assert cases
    for glob in shipped.cases:
        assert any(fnmatchcase(case.name, glob) for case in cases), glob
    compared = set(conclusions.formats_of(shipped.claim)) or set(shipped.formats or ())
    claim = shipped.claim
    for case in cases:
        is_served = any(said != "default" and said.server for said in case.conditions.values())
        assert case.replay or is_served  # a cluster and a bucket of 2020 cannot be replayed
        assert compared <= set(case.formats) or (len(compared) > 1 and shipped.formats)
        assert {operation.name for operation in case.operations} & set(shipped.operations)
        if isinstance(claim, conclusions.Effect) and claim.axis == "conditions":
            assert {claim.of, claim.against} <= set(case.conditions)
        if shipped.conditions:
            assert set(shipped.conditions) <= set(case.conditions)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("conclusions: [{id: X}]\n", ["conclusions.0.study"]),
        ("conclusions: []\nmore: 1\n", ["more"]),
        ("conclusions: [\n", ["not a YAML file"]),
    ],
)
def test_a_mistake_in_conclusions_is_named(tmp_path: Path, text: str, said: list[str]) -> None:
    path = tmp_path / "conclusions.yaml"
    path.write_text(text)
    with pytest.raises(StudyError) as caught:
        conclusions.load(path)
    assert all(word in str(caught.value) for word in said)


def test_an_unknown_format_in_a_claim_is_named() -> None:
    with pytest.raises(ValueError, match="unknown format 'hdf6'"):
        conclusion({**FASTEST, "among": ["hdf5", "hdf6"]})


def paired(format_name: str, seconds: list[float], **more: Any) -> Summary:
    """A fair summary whose interval alone decides nothing, with the seconds of each round."""
    return summary(format_name, sorted(seconds)[len(seconds) // 2], None, rounds=tuple(enumerate(seconds)), **more)


SLOW_MINUTES = [1.0, 5.0, 1.0, 9.0, 2.0, 1.0]


def test_rounds_decide_what_intervals_of_medians_cannot() -> None:
    figures = [
        paired(name, [s * factor for s in SLOW_MINUTES]) for name, factor in zip(CONTENDERS, (1, 1.1, 1.3), strict=True)
    ]
    assert verdict(FASTEST, figures).verdict == "holds"
    assert verdict(ORDER, figures).verdict == "reverses"
    assert "as fast as netcdf4" in verdict(FASTEST, figures).reason


def test_five_rounds_of_a_contender_that_is_ahead_by_little_decide_nothing() -> None:
    figures = [
        paired(name, [s * factor for s in SLOW_MINUTES[:5]])
        for name, factor in zip(CONTENDERS, (1, 1.1, 1.3), strict=True)
    ]
    assert verdict(FASTEST, figures).verdict == "undecided"


def test_numbers_of_arrays_are_measured_at_different_times_so_their_rounds_are_no_pairs() -> None:
    claim = effect("none", "count", "most", "fewest")
    few = paired("hdf5", [1.0, 1.1, 1.0, 1.2, 1.0, 1.1])
    many = paired("hdf5", [8.0, 8.8, 8.1, 9.0, 8.0, 8.5], case="test-2", count=4)
    assert verdict(claim, [few, many]).verdict == "reverses"


def test_a_wide_interval_around_a_likeness_proves_nothing() -> None:
    figures = [paired("hdf5", SLOW_MINUTES), paired("zarr2", [9.0, 1.0, 2.0, 1.0, 5.0, 1.0])]
    assert verdict(ratio(0.8, 1.0), figures).verdict == "undecided"


@pytest.mark.parametrize("word", ["holds", "reverses", "depends", "undecided"])
def test_sentences_name_the_largest_difference(word: str) -> None:
    cases: dict[str, list[Case]] = {
        "holds": [
            ("supports", "a is {up to}2 times as fast as b", 2.0),
            ("supports", "a is {up to}3 times as fast as b", 3.0),
        ],
        "reverses": [("contradicts", "b is 2 times as fast as a", 2.0)],
        "depends": [("supports", "a is 2 times as fast as b", 2.0), ("contradicts", "b is 3 times as fast as a", 3.0)],
        "undecided": [("undecided", "b takes 0.9 to 1.2 times as long as a", 1.05)],
    }
    said = {
        "holds": "HDF5 writes fastest in both cases (a is up to 3 times as fast as b)",
        "reverses": "it is not so that HDF5 writes fastest: b is 2 times as fast as a",
        "depends": "HDF5 writes fastest in 1 of 2 cases (a is 2 times as fast as b); the opposite in 1: "
        "b is 3 times as fast as a",
        "undecided": "whether HDF5 writes fastest: b takes 0.9 to 1.2 times as long as a",
    }
    assert word_of([case[0] for case in cases[word]]) == word
    assert sentence("HDF5 writes fastest", cases[word]) == said[word]


def test_few_decided_cases_of_many_may_be_chance_and_decide_nothing() -> None:
    assert [least_decided(cases) for cases in (1, 2, 3, 14, 15, 32)] == [1, 1, 2, 2, 3, 3]
    one: list[Case] = [("supports", "a is {up to}2 times as fast as b", 2.0)]
    unknown: list[Case] = [("undecided", "b takes 0.9 to 1.2 times as long as a", 1.05)] * 20
    assert word_of([case[0] for case in one + unknown]) == "undecided"
    assert sentence("HDF5 writes fastest", one + unknown) == (
        "whether HDF5 writes fastest; as claimed in 1: a is 2 times as fast as b; 20 undecided, in one of which b "
        "takes 0.9 to 1.2 times as long as a. Chance alone may decide so few cases"
    )
    assert word_of([case[0] for case in one * 3 + unknown]) == "holds"
