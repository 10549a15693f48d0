"""Workloads that a seed draws: they depend on nothing else, and they are as varied as they claim to be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from math import prod

import numpy as np
import pytest

from hyperslab.model.cells import ModelCell
from hyperslab.model.generated.drawing import LARGE, PATTERNS, TINY, DrawnWorkload, draw, draw_on_arrays
from hyperslab.model.libraries import Hdf5, Zarr
from hyperslab.model.predict import why_not

SHOW = """
import json, sys
from hyperslab.model.generated.drawing import TINY, draw
print(json.dumps([[one.name, one.workload.model_dump(), list(map(str, one.layouts))] for one in draw(6, 11, TINY)]))
"""


def nbytes(one: DrawnWorkload) -> int:
    return prod(one.workload.array.shape) * one.workload.array.element_nbytes


@pytest.fixture(scope="module")
def many() -> list[DrawnWorkload]:
    return draw(44, 3)


def test_they_depend_on_the_seed_alone(tmp_path) -> None:
    shown = []
    for hash_seed, numpy_seed in (("1", 1), ("2", 2)):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        code = f"import numpy; numpy.random.seed({numpy_seed})\n{SHOW}"
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, cwd=tmp_path, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr
        shown.append(json.loads(done.stdout))
    assert shown[0] == shown[1]
    assert [name for name, *_ in shown[0]] == [one.name for one in draw(6, 11, TINY)]
    assert draw(3, 11, TINY) == draw(6, 11, TINY)[:3]
    assert draw(3, 12, TINY) != draw(3, 11, TINY)


def test_arrays_chunks_and_patterns_are_varied(many: list[DrawnWorkload]) -> None:
    assert {len(one.workload.array.shape) for one in many} == {1, 2, 3, 4, 5}
    assert set(PATTERNS) == {one.pattern for one in many}
    assert {one.cache for one in many} == {"cold", "page-warm", "new"}
    assert len({one.workload.array.dtype for one in many}) >= 4
    assert all(2e6 <= nbytes(one) <= 900e6 for one in many)
    assert np.median([nbytes(one) for one in many]) > 20e6
    chunks = [prod(layout.chunk_shape) * one.workload.array.element_nbytes for one in many for layout in one.layouts]
    for low, high in ((0, 1 << 20), (1 << 20, 8 << 20), (8 << 20, 48 << 20)):
        assert sum(low < each <= high for each in chunks) >= 10
    assert len({layout.codec for one in many for layout in one.layouts}) >= 4
    assert all(len(one.layouts) >= 2 for one in many)
    names = Counter(one.name for one in many)
    assert max(names.values()) == 1


def test_steps_orders_and_several_accesses_occur(many: list[DrawnWorkload]) -> None:
    stepped = [one for one in many if one.pattern == "read steps"]
    assert all(any(step > 1 for step in one.workload.steps()[0].selection.stride) for one in stepped)
    walks = [one for one in draw(110, 4) if one.pattern == "read walk"]
    starts = [[sum(step.selection.start) for step in one.workload.steps()] for one in walks]
    assert any(each == sorted(each) and len(each) > 2 for each in starts)
    assert any(each == sorted(each, reverse=True) and len(each) > 2 for each in starts)
    assert any(each not in (sorted(each), sorted(each, reverse=True)) for each in starts)
    assert any(len(one.workload.accesses) == 3 for one in many)
    assert any({access.operation for access in one.workload.accesses} == {"read", "write"} for one in draw(110, 4))


def test_each_can_be_done_by_both_libraries(many: list[DrawnWorkload]) -> None:
    for one in many:
        for candidate in one.candidates((Hdf5(), Zarr())):
            assert isinstance(candidate.cell, ModelCell)
            assert why_not(candidate.cell) is None, candidate


def test_a_pass_is_bounded(many: list[DrawnWorkload]) -> None:
    for one in many:
        steps = one.workload.steps()
        assert len(steps) <= 3 * LARGE.most_calls
        stepped = [step.selection.size for step in steps if max(step.selection.stride) > 1]
        assert max(stepped, default=0) <= LARGE.most_stepped_count
    limited = replace(LARGE, most_moved_nbytes=1.0)
    assert all(len(access.boxes or []) <= 3 for one in draw(22, 3, limited) for access in one.workload.accesses)


def test_workloads_that_share_arrays() -> None:
    drawn = draw_on_arrays(4, 11, TINY, 5, 2)
    assert len(drawn) == 20
    arrays = {one.workload.array.model_dump_json() for one in drawn}
    assert len(arrays) == 4
    assert {len(one.workload.array.shape) for one in drawn} <= {1, 2, 3, 4, 5}
    assert "several" not in {one.pattern for one in drawn}, "a calibration's cells only read or only write"
    assert len({one.pattern for one in drawn}) == len(PATTERNS) - 1
    assert all(layout.codec is None and 1 <= len(one.layouts) <= 2 for one in drawn for layout in one.layouts)
    others = {one.workload.array.model_dump_json() for one in draw(40, 11, TINY)}
    assert not arrays & others, "an evaluation with the same seed has other arrays"
