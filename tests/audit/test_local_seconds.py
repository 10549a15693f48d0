"""Seconds on this machine are those that `predict` says of the same accesses."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import h5py
import numpy as np
import pytest

from hyperslab.advise.usual_reads import compare_layouts, find_array
from hyperslab.audit.judging import Question, audit_file

sys.path.append(str(Path(__file__).parents[1] / "model"))
from made_up import made_up_store_profile, with_codecs


@pytest.mark.parametrize("name", ["a.h5", "a.nc"])
def test_they_are_those_of_predict(tmp_path: Path, name: str) -> None:
    profile = with_codecs(made_up_store_profile(tmp_path, ("hdf5", "zarr", "hyperslab")), "deflate")
    values = np.random.default_rng(1).normal(size=(48, 60, 70)).round(1).astype("f4")
    with h5py.File(tmp_path / name, "w") as made:
        made.create_dataset("sst", data=values, chunks=(4, 30, 70), compression="gzip", shuffle=True)
    audit = audit_file(str(tmp_path / name), Question(profile=profile))
    told = {cost.access: cost.local_seconds for cost in audit.accesses}
    predicted = compare_layouts(find_array(str(tmp_path / name)), profile)
    assert set(told) == {row.access for row in predicted.rows}
    for row in predicted.rows:
        assert row.seconds[0] == pytest.approx(told[row.access], rel=0.1), row.access
    assert audit.local_seconds == pytest.approx(sum(filter(None, told.values())))


def test_there_are_none_without_a_store_profile_or_with_that_of_a_server(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as made:
        made["x"] = np.ones((8, 8))
    far = replace(made_up_store_profile(tmp_path, ("hyperslab",)), is_far=True)
    for profile in (None, far):
        audit = audit_file(str(tmp_path / "a.h5"), Question(profile=profile))
        assert audit.local_seconds is None
        assert {cost.local_seconds for cost in audit.accesses} == {None}
