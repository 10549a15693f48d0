"""The loop: which points get another trial, in which order, when they have enough, and what is reported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import pytest

from hyperslab.lab.rounds import MOST_REJECTED, Rounds, StopRule, Tally, exactly, trial_count

SEVEN = (1.0, 1.01, 0.99, 1.0, 1.02, 0.98, 1.0)


@pytest.mark.parametrize(
    ("rule", "tally", "is_met"),
    [
        (StopRule(2, 5), Tally((1.0,) * 4), False),
        (StopRule(2, 5), Tally((1.0,) * 5), True),
        (StopRule(2, 5), Tally((1.0,) * 2, MOST_REJECTED + 2), False),
        (StopRule(2, 5), Tally((1.0,) * 2, MOST_REJECTED + 3), True),
        (StopRule(2, 5), Tally((), 0, is_over=True), True),
        (StopRule(2, 5, most_seconds=1.5), Tally((1.0,)), False),
        (StopRule(2, 5, most_seconds=1.5), Tally((1.0,) * 2), True),
        (StopRule(6, 9, precision=0.05), Tally(SEVEN), True),
        (StopRule(6, 9, precision=0.001), Tally(SEVEN), False),
        (StopRule(6, 9), Tally(SEVEN), False),
        (StopRule(2, 9, precision=0.05), Tally((1.0,) * 5), False),  # no interval below six
    ],
)
def test_the_stop_rule(rule: StopRule, tally: Tally, is_met: bool) -> None:
    assert rule.is_met(tally) == is_met


class Bench:
    """Points with every second trial rejected, and a point that fails at once."""

    def __init__(self) -> None:
        self.made: list[str] = []
        self.warmed: list[str] = []

    def tally(self, point: str) -> Tally:
        count = self.made.count(point)
        return Tally((1.0,) * ((count + 1) // 2), count // 2, is_over=point == "broken" and count > 0)


def run(points: list[str], rule: StopRule, seed: int, told: Callable[[str, int, int], None] = lambda *_: None) -> Bench:
    bench = Bench()
    rounds = Rounds(rule, seed, told, trial_count(len(points), rule))
    cold = {"ice", "snow"}.__contains__
    rounds.run(points, bench.made.append, bench.tally, warm_up=bench.warmed.append, is_cold=cold)
    return bench


def test_rounds_give_each_point_its_trials() -> None:
    bench = run(["a", "b", "broken"], exactly(3), 1)
    assert bench.warmed == ["a", "b", "broken"]
    assert Counter(bench.made) == {"a": 5, "b": 5, "broken": 1}
    assert set(bench.made[:3]) == {"a", "b", "broken"}, "a round gives each point one trial"
    assert bench.made == run(["a", "b", "broken"], exactly(3), 1).made, "the seed is the order"
    assert any(bench.made != run(["a", "b", "broken"], exactly(3), seed).made for seed in range(9))


@pytest.mark.parametrize(("wanted", "counts"), [(None, {3}), (100, {3}), (31, {1, 2, 3}), (8, {1, 3})])
def test_a_run_that_is_late_gives_fewer_trials(
    monkeypatch: pytest.MonkeyPatch, wanted: float | None, counts: set[int]
) -> None:
    """Forty groups of a point; each trial, and the one to warm up, takes a quarter of a second of a made-up clock."""
    bench, now, rule = Bench(), [0.0], StopRule(2, 3, run_seconds=wanted)
    monkeypatch.setattr("time.monotonic", lambda: now[0])

    def make(point: str) -> None:
        now[0] += 0.25
        bench.made.append(point)

    def tally(point: str) -> Tally:
        return Tally((1.0,) * bench.made.count(point))

    rounds = Rounds(rule, 1, lambda *_: None, trial_count(40, rule))
    for number in range(40):
        rounds.run([f"{number}"], make, tally, warm_up=lambda _: now.__setitem__(0, now[0] + 0.25))
    assert set(Counter(bench.made).values()) == counts
    assert now[0] <= max(wanted or 40, 23.5)


def test_cold_trials_of_a_round_follow_each_other() -> None:
    points = ["ice", "snow", "a", "b"]
    places = []
    for seed in range(20):
        first = run(points, exactly(1), seed).made[:4]
        cold = [point in ("ice", "snow") for point in first]
        assert cold in ([True, True, False, False], [False, False, True, True])
        places.append(cold[0])
    assert set(places) == {True, False}


def test_what_is_known_is_not_made_again() -> None:
    made: list[str] = []
    rule = exactly(2)
    known = {"a": Tally((1.0, 1.0)), "b": Tally((1.0,))}
    Rounds(rule, 1, lambda *_: None, 6, made=3).run(
        ["a", "b"], made.append, lambda point: Tally((*known[point].seconds, *(1.0 for each in made if each == point)))
    )
    assert made == ["b"]


def test_whoever_watches_is_told_before_each_trial() -> None:
    told: list[tuple[str, int, int]] = []
    run(["a", "b"], exactly(2), 1, lambda *said: told.append(said))
    assert [done for _, done, _ in told] == sorted(done for _, done, _ in told)
    assert all(done < expected == 6 for _, done, expected in told)
