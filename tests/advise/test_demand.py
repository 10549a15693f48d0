"""Words, limits, demands and samples of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hyperslab._core import ChunkGrid, Hyperslab, Points
from hyperslab.advise.candidate import Candidate
from hyperslab.advise.demand import Demand, in_chunk_order, permuted
from hyperslab.advise.limits import Limits, axis_of
from hyperslab.advise.pricing import Pricer
from hyperslab.advise.sampling import sample_for
from hyperslab.advise.words import KINDS, demand_of, parse
from hyperslab.errors import UsageError
from hyperslab.model import step_forms
from hyperslab.model.call_counts import facts_of, touched_chunk_count
from hyperslab.model.counting import _runs
from hyperslab.model.libraries import Hdf5, Layout, Zarr
from hyperslab.model.step_forms import StepForms, StepList, columns_of
from hyperslab.model.store_profile import StoreProfile
from hyperslab.model.workload import Step


def test_words_are_weighted() -> None:
    assert parse("maps 3 and series") == [("maps", 3.0), ("series", 1.0)]
    assert parse("2 maps, points") == [("maps", 2.0), ("points", 1.0)]
    assert parse("random batches and appends 0.5") == [("random batches", 1.0), ("appends", 0.5)]


@pytest.mark.parametrize("text", ["pictures", "maps and", "", "maps 0", "2 maps 3", "maps or series"])
def test_unknown_words_are_refused_with_the_known_ones(text: str) -> None:
    with pytest.raises(UsageError, match="--like"):
        parse(text)


@pytest.mark.parametrize("word", KINDS)
@pytest.mark.parametrize("shape", [(40,), (30, 40), (12, 20, 30), (3, 4, 5, 6)])
def test_every_word_selects_inside_the_array(word: str, shape: tuple[int, ...]) -> None:
    for demand in demand_of(word, shape, "<f4"):
        ends = demand.boxes.starts + demand.boxes.lengths
        assert (ends <= np.array(shape)).all()
        assert (demand.boxes.lengths >= 1).all()
        assert demand.writes == (word == "appends")


def test_maps_and_series_follow_the_time_dimension() -> None:
    (demand,) = demand_of("maps and series", (20, 30, 12), "<f4", ("lat", "lon", "time"))
    kinds = {tuple(row) for row in demand.boxes.lengths.tolist()}
    assert kinds == {(20, 30, 1), (1, 1, 12)}


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        (Limits(min_chunk_nbytes=200, max_chunk_nbytes=100), "--min-chunk .* larger than --max-chunk"),
        (Limits(max_chunk_nbytes=2), "smaller than one element"),
        (Limits(memory_nbytes=100, min_chunk_nbytes=200), "--min-chunk .* larger than --memory"),
        (Limits(max_files=0), "--max-files 0"),
        (Limits(append_axis=3), "axes 0 to 1"),
        (Limits(price_per_request=-1.0), "negative"),
    ],
)
def test_limits_that_contradict_each_other_are_refused(limits: Limits, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        limits.check((10, 20), 4)


def test_axes_are_names_or_numbers() -> None:
    assert axis_of("lon", (2, 3), ("lat", "lon")) == 1
    with pytest.raises(UsageError, match="lat, lon, or a number"):
        axis_of("height", (2, 3), ("lat", "lon"))


@st.composite
def demands(draw: st.DrawFn) -> Demand:
    shape = tuple(draw(st.lists(st.integers(1, 12), min_size=1, max_size=3)))
    steps = []
    for _ in range(draw(st.integers(1, 40))):
        lengths = [draw(st.integers(1, length)) for length in shape]
        starts = [draw(st.integers(0, length - part)) for length, part in zip(shape, lengths, strict=True)]
        steps.append(Step("read", Hyperslab(starts, None, [1] * len(shape), lengths)))
    return Demand("drawn", shape, "<f4", steps)


@given(demands(), st.integers(1, 30))
@settings(deadline=None)
def test_a_sample_stands_for_all_calls(demand: Demand, most: int) -> None:
    chunk = tuple(max(1, length // 2) for length in demand.shape)
    steps, factor = demand.sample(chunk, most)
    assert 0 < len(steps) <= len(demand.steps)
    assert factor >= 1 - 1e-9
    some = Demand("some", demand.shape, demand.dtype, steps)
    assert float(some.touches(chunk).sum()) * factor == pytest.approx(float(demand.touches(chunk).sum()))


@given(demands())
@settings(deadline=None)
def test_the_expected_touches_are_near_the_exact_ones(demand: Demand) -> None:
    """The expectation lies between the least and the most that a box of its lengths can touch."""
    chunk = tuple(max(1, length // 2) for length in demand.shape)
    grid = ChunkGrid(demand.shape, chunk)
    for step, expected, lengths in zip(demand.steps, demand.touches(chunk), demand.boxes.lengths, strict=True):
        most = np.prod([-(-length // part) + 1 for length, part in zip(lengths, chunk, strict=True)])
        least = np.prod([-(-length // part) for length, part in zip(lengths, chunk, strict=True)])
        assert expected <= most
        assert expected >= least / 2 ** len(chunk)
        assert grid.chunk_count >= 1
        assert step.selection.size >= 1


@given(demands(), st.integers(64, 4000))
@settings(deadline=None)
def test_the_calls_of_a_part_lie_inside_it(demand: Demand, most: int) -> None:
    chunk = tuple(max(1, length // 3) for length in demand.shape)
    sample = sample_for([demand], chunk, most)
    assert all(part <= length for part, length in zip(sample.shape, demand.shape, strict=True))
    ends = sample.demands[0].boxes.starts + sample.demands[0].boxes.lengths
    assert (ends <= np.array(sample.shape)).all()
    assert sample.words


def test_calls_in_another_order_select_the_same() -> None:
    step = Step("read", Hyperslab([1, 2, 3], [2, 1, 4], [2, 3, 1], [1, 1, 2]))
    moved = permuted(step, (2, 0, 1))
    elements = np.arange(6 * 7 * 8).reshape(6, 7, 8)

    def picked(one: Step, source: np.ndarray) -> np.ndarray:
        axes = [
            (a + s * np.arange(n)[:, None] + np.arange(b)).ravel()
            for a, s, n, b in zip(one.selection.start, one.selection.stride, one.selection.count, one.selection.block,
                                  strict=True)
        ]  # fmt: skip
        return source[np.ix_(*axes)]

    assert np.array_equal(picked(step, elements).transpose(2, 0, 1), picked(moved, elements.transpose(2, 0, 1)))


def test_calls_are_ordered_by_their_first_chunk() -> None:
    steps = [Step("read", Hyperslab([start], None, [1], [1])) for start in (9, 0, 8, 1)]
    demand = Demand("mixed", (10,), "<f4", steps)
    starts = [step.selection.start[0] for step in in_chunk_order(demand, (4,))]
    assert starts == [0, 1, 9, 8]


@pytest.mark.parametrize("word", KINDS)
def test_words_with_too_large_a_number_are_refused_before_their_calls_are_made(word: str) -> None:
    for number in ("1" + 15 * "0", "9" * 400):
        with pytest.raises(UsageError, match="makes more than 20000 calls; use smaller numbers"):
            demand_of(f"{word} {number}", (1 << 40, 10, 10), "<f4")
    assert demand_of(f"{word} 2", (1 << 40, 10, 10), "<f4")


def test_appends_cover_the_array_once_from_front_to_back() -> None:
    (demand,) = demand_of("appends", (1000, 3), "<f4")
    edges = [(step.selection.start[0], step.selection.start[0] + step.selection.count[0]) for step in demand.steps]
    assert (edges[0][0], edges[-1][1], len(edges)) == (0, 1000, 200)
    assert [stop for _, stop in edges[:-1]] == [start for start, _ in edges[1:]]


def drawn_calls(rng: np.random.Generator, count: int) -> list[Step]:
    """Boxes of three forms and points, at random places of a 40 × 30 array."""
    points = Points(np.array([[3, 4], [39, 29], [0, 0]]))
    forms = [((1, 1), (1, 1), (1, 1)), ((2, 1), (4, 5), (1, 1)), ((1, 1), (1, 1), (8, 30)), ((1, 1), (0, 2), (1, 1))]
    made: list[Step] = []
    for number in range(count):
        stride, shape, block = forms[rng.integers(len(forms))]
        start = (int(rng.integers(33)), 0 if block[1] == 30 else int(rng.integers(25)))
        box = Step("read", Hyperslab(start, stride, shape, block))
        made.append(Step("read", points) if number % 7 == 3 else box)
    return made


def test_calls_that_are_taken_apart_once_count_the_same() -> None:
    rng = np.random.default_rng(5)
    steps = drawn_calls(rng, 200)
    whole = StepList(steps)
    positions = np.sort(rng.choice(200, 60, replace=False))
    for listed, plain in ((whole, steps), (whole.take(positions), [steps[place] for place in positions.tolist()])):
        assert list(listed) == plain
        for chunk in ((7, 4), (40, 30), (1, 1)):
            marks = np.zeros((40, 30), bool)
            for step in plain:
                one = step.selection
                if isinstance(one, Points):
                    marks[tuple(one.coordinates.T // np.array(chunk)[:, None])] = True
                elif one.size:
                    parts = zip(one.start, one.stride, one.count, one.block, strict=True)
                    last = [s + stride * (c - 1) + b - 1 for s, stride, c, b in parts]
                    box = zip(one.start, last, chunk, strict=True)
                    marks[tuple(slice(first // length, end // length + 1) for first, end, length in box)] = True
            assert touched_chunk_count(listed, (40, 30), chunk)[0] == marks.sum()
            for library in (Hdf5(), Zarr()):
                expected = facts_of(plain, chunk, library, 4)
                np.testing.assert_array_equal(facts_of(listed, chunk, library, 4), expected)
    demand = Demand("all", (40, 30), "<f4", steps)
    assert demand.sizes.tolist() == [int(step.selection.size) for step in steps]
    for place, step in enumerate(steps):
        if isinstance(step.selection, Points):
            assert demand.boxes.starts[place].tolist() == [0, 0]
            assert demand.boxes.lengths[place].tolist() == [40, 30]
        else:
            assert demand.boxes.starts[place].tolist() == list(step.selection.start)


def drawn_program(rng: np.random.Generator, count: int) -> list[Step]:
    """Reads, writes, growth and openings, in any order."""
    box = Hyperslab((0, 0), (1, 1), (1, 1), (1, 1))
    selections = [box, Points(np.array([[3, 4], [39, 29]]))]
    return [
        Step(
            ("read", "write")[int(rng.random() < 0.3)],
            selections[int(rng.random() < 0.2)],
            None,
            40 + place if rng.random() < 0.1 else None,
            bool(rng.random() < 0.1),
            float(rng.random()),
            bool(rng.random() < 0.2),
            float(rng.random()),
        )
        for place in range(count)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_what_is_said_of_all_calls_at_once_is_what_each_of_them_says(seed: int) -> None:
    rng = np.random.default_rng(seed)
    steps = drawn_program(rng, int(rng.integers(1, 60)))
    if seed % 3 == 0:
        steps = [step._replace(operation="read") for step in steps]
    positions = np.flatnonzero(rng.random(len(steps)) < 0.5)
    whole = StepList(steps)
    for listed, plain in ((whole, steps), (whole.take(positions), [steps[place] for place in positions.tolist()])):
        columns = columns_of(listed)
        assert columns.is_write.tolist() == [step.operation == "write" for step in plain]
        assert columns.reopens.tolist() == [step.reopens for step in plain]
        assert columns.reopens_array.tolist() == [step.reopens_array for step in plain]
        assert columns.grows.tolist() == [step.length is not None for step in plain]
        assert columns.compute_seconds.tolist() == [step.compute_seconds for step in plain]
        assert columns.shared.tolist() == [step.shared for step in plain]
        kinds = dict.fromkeys((step.operation, isinstance(step.selection, Points)) for step in plain)
        assert listed.kinds == list(kinds)
    runs: list[list[Step]] = []
    writes = any(step.operation == "write" for step in steps)
    for step in steps:
        is_apart = step.reopens or step.length is not None or (writes and step.reopens_array)
        if not runs or is_apart or step.operation != runs[-1][0].operation:
            runs.append([])
        runs[-1].append(step)
    assert [steps[start:stop] for start, stop in _runs(steps)] == runs


def test_many_layouts_are_priced_and_the_calls_are_taken_apart_once(
    profile: StoreProfile, monkeypatch: pytest.MonkeyPatch
) -> None:
    counted, original = [], step_forms._forms

    def forms(steps: Sequence[Step]) -> StepForms:
        counted.append(len(steps))
        return original(steps)

    monkeypatch.setattr(step_forms, "_forms", forms)
    demand = Demand("all", (40, 30), "<f4", drawn_calls(np.random.default_rng(5), 300))
    pricer = Pricer(profile, [demand])
    for length in range(1, 30):
        for touches in (50.0, 1e9):
            price = pricer.price(Candidate("hdf5", "hdf5", Layout((length, 5))), touches)
            assert price.predictions, price.unknown
    assert counted == [300]
