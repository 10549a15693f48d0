"""Between its calls a program does something else, and the device brings meanwhile what is read ahead."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from made_up import made_up_store_profile

import hyperslab as hs
from hyperslab.advise.counsel import today_of
from hyperslab.advise.pricing import Pricer
from hyperslab.advise.traced_demands import open_trace, traced_array, traced_demand
from hyperslab.trace.openings import idle_before

sys.path.append(str(Path(__file__).parents[1] / "trace"))
from made_traces import array_of, made_trace

ROWS = array_of((64, 1 << 18), None)


def rows_read(seconds: float) -> hs.Trace:
    """Half of so many seconds goes by in each call, and half between it and the next one."""
    plain = replace(ROWS, filters=(), layout="contiguous")
    return made_trace([np.s_[k] for k in range(64)], plain, seconds)


def test_pauses_are_those_in_which_no_access_was_made() -> None:
    trace = rows_read(0.01)
    assert np.diff(idle_before(trace)).tolist() == [5_000_000] * 63
    one = open_trace(trace)
    demand = traced_demand(one, one.summaries[0], traced_array(one.summaries[0]))
    assert [step.compute_seconds for step in demand.steps] == pytest.approx([0.005] * 63 + [0])
    trace.columns["duration_ns"][:] = 20_000_000  # two threads at the same time: nothing is idle
    assert not np.diff(idle_before(trace)).any()


def test_a_program_that_pauses_waits_less_and_its_pauses_are_no_part_of_the_price(tmp_path: Path) -> None:
    profile = made_up_store_profile(tmp_path)
    prices = []
    for seconds in (2e-6, 2e-2):
        one = open_trace(rows_read(seconds))
        stored = traced_array(one.summaries[0])
        demand = traced_demand(one, one.summaries[0], stored)
        prices.append(Pricer(profile, [demand]).price(today_of(stored, [demand], profile)))
    hurried, slow = prices
    assert slow.predictions[0].variables["read"].s_exposed < hurried.predictions[0].variables["read"].s_exposed
    assert slow.phases["computing"] == 0
    assert slow.seconds <= hurried.seconds
