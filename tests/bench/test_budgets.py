"""Rounds go where a decision is open: which cells a round has, until when, and the same after an interruption."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hyperslab.bench.budgets import RULES, Budget, TimeLimit, looks_of, rule_of
from hyperslab.bench.operations import Operation
from hyperslab.bench.records import Cell
from hyperslab.lab.looks import MOST_ROUNDS, Looks
from hyperslab.lab.rounds import Rounds, Tally, trial_count


@dataclass(frozen=True)
class Request:
    scale: str = "quick"
    trials: int | None = None
    until_decided: bool = False


def cell(name: str, cache: str = "warm") -> Cell:
    return Cell("mine", "fair", "matched", name, Operation(name="read-all"), (64,), 1, cache)


class Machine:
    """Formats with their paces, measured in rounds by the budget."""

    def __init__(self, pace: dict[str, float], spread: float, seed: int = 1) -> None:
        self.cells = [cell(name) for name in pace]
        self.pace = pace
        self.seconds: dict[str, dict[int, float]] = {each.key: {} for each in self.cells}
        self.round = 0
        self._random, self._spread = np.random.default_rng(seed), spread

    def run(self, request: Request) -> dict[str, int]:
        looks, rule = looks_of(request), rule_of(request)
        budget = Budget(self.cells, looks, lambda each: self.seconds[each.key])

        def select(pending):
            self.round += 1
            return budget.select(pending)

        def make(each: Cell) -> None:
            took = self.pace[each.format] * self._random.lognormal(0, self._spread)
            self.seconds[each.key][self.round] = took

        rounds = Rounds(rule, 1, lambda *_: None, trial_count(len(self.cells), rule))
        rounds.run(self.cells, make, lambda each: Tally(list(self.seconds[each.key].values())), select=select)
        return {each.format: len(self.seconds[each.key]) for each in self.cells}


def test_who_is_far_behind_stops_after_three_rounds_and_the_rest_after_six() -> None:
    made = Machine({"hdf5": 1.0, "zarr3": 1.6, "csv": 30.0, "null": 0.001}, 0.02).run(Request())
    assert made == {"hdf5": 6, "zarr3": 6, "csv": 3, "null": 6}


def test_an_open_race_gets_more_rounds_and_the_others_none() -> None:
    made = Machine({"hdf5": 1.0, "netcdf4": 1.01, "zarr3": 2.0}, 0.1).run(Request("small"))
    assert made == {"hdf5": 15, "netcdf4": 15, "zarr3": 6}


def test_until_decided_ends_with_a_decision_or_gives_up() -> None:
    decided = Machine({"hdf5": 1.0, "netcdf4": 1.08}, 0.05).run(Request(until_decided=True))
    assert 6 <= decided["hdf5"] < MOST_ROUNDS
    assert set(Machine({"hdf5": 1.0, "netcdf4": 1.02}, 0.5).run(Request(until_decided=True)).values()) == {MOST_ROUNDS}


def test_a_finished_run_goes_on_where_it_was_open_only() -> None:
    machine = Machine({"hdf5": 1.0, "netcdf4": 1.01, "csv": 30.0}, 0.1)
    assert machine.run(Request()) == {"hdf5": 6, "netcdf4": 6, "csv": 3}
    longer = machine.run(Request(until_decided=True))
    assert longer["hdf5"] == longer["netcdf4"] > 6
    assert longer["csv"] == 3


def test_an_exact_number_of_trials_is_one_look() -> None:
    assert looks_of(Request(trials=9)) == Looks(9, 9)
    assert rule_of(Request(trials=9)).most == 9
    assert all(RULES[scale].least >= 6 for scale in RULES), "fewer than six rounds decide nothing"


class Clock:
    """Seconds that pass only if a test says so."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_a_group_has_its_share_of_the_time_and_what_others_left() -> None:
    clock = Clock()
    limit, looks = TimeLimit(2, [10, 10, 20], clock), Looks(6, 50)
    limit.begin(0)  # 30 of 120 s
    clock.now = 29
    assert limit.allows(10, looks)
    clock.now = 31
    assert not limit.allows(6, looks)
    assert limit.allows(5, looks), "the rounds of the first look are made in any case"
    limit.begin(1)  # a third of 89 s
    clock.now = 31 + 29
    assert limit.allows(10, looks)
    clock.now = 31 + 31
    assert not limit.allows(10, looks)
    limit.begin(2)
    assert limit.allows(10, looks)
    assert not limit.is_over()
    clock.now = 120
    assert limit.is_over()


def test_without_a_limit_all_may_go_on() -> None:
    clock = Clock()
    limit = TimeLimit(None, [1], clock)
    limit.begin(0)
    clock.now = 1e9
    assert limit.allows(10, Looks(6, 50))
    assert not limit.is_over()


def test_no_trial_begins_when_the_time_is_over() -> None:
    clock, made = Clock(), []
    limit = TimeLimit(1, [3], clock)
    rule = rule_of(Request(trials=2))
    rounds = Rounds(rule, 1, lambda *_: None, trial_count(3, rule), is_over=limit.is_over)

    def make(point: str) -> None:
        made.append(point)
        clock.now += 25

    rounds.run(["a", "b", "c"], make, lambda point: Tally([1.0] * made.count(point)))
    assert len(made) == 3, "one began at 0, 25 and 50 s, and none after 60"
