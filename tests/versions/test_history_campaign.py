"""`benchmarks/history_campaign.py`: a few of its random histories, killed and failing at any moment, lose nothing."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

sys.path[:0] = [str(Path(__file__).parents[2] / "benchmarks")]

import history_campaign  # noqa: E402


@pytest.mark.parametrize("seed", [3_000_001, 3_000_004])
def test_a_history_loses_nothing(tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_campaign, "STEPS", 5)
    counts = Counter[str]()
    assert history_campaign.run(tmp_path, seed, counts) is None
    assert sum(counts.values()) == 5


def test_a_campaign_sees_what_is_lost(tmp_path: Path) -> None:
    history = history_campaign.History(tmp_path, 1)
    before = history_campaign.state_of(history.one)
    assert history_campaign.lost(history.one, before, before) is None
    changed = {**before, "versions": {"v0": before["versions"]["v0"] + 1}}
    assert history_campaign.lost(history.one, changed, changed) == "version v0 has other elements"
    more = {**before, "versions": {**before["versions"], "v1": before["versions"]["v0"]}}
    assert history_campaign.lost(history.one, more, more) == "versions ['v1'] are gone"
    tagged = {**before, "tags": {"t": "v0"}}
    assert history_campaign.lost(history.one, tagged, tagged) == "tags ['t'] are gone"
