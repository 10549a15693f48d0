"""Journals keep everything that is finished, whatever a kill leaves of the last line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hyperslab.errors import UsageError
from hyperslab.lab.journal import Journal, load_lines
from hyperslab.lab.room import check_room
from hyperslab.lab.statistics import interval_of_ratio

Record = dict[str, Any]


def opened(path: Path, header: Record | None = None) -> Journal[Record]:
    return Journal(path, dict, dict, lambda record: record["of"], header)


@pytest.mark.parametrize("header", [None, {"asked": 1}])
def test_records_outlive_a_kill(header: Record | None, tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with opened(path, header) as journal:
        for number in range(3):
            journal.append({"of": number % 2, "is": number})
        assert (len(journal), len(journal.of(0)), journal.of("other")) == (3, 2, [])
    with open(path, "a") as torn:
        torn.write('{"of": 1, "i')
    assert len(load_lines(path)) == 3 + (header is not None)
    with opened(path, header) as journal:
        assert [record["is"] for record in journal.of(0)] == [0, 2]
        journal.append({"of": 0, "is": 3})
    assert load_lines(path)[-1] == {"of": 0, "is": 3}
    assert load_lines(path)[:1] == [header or {"of": 0, "is": 0}]


def test_room(tmp_path: Path) -> None:
    check_room("a study", 1e3, 1e3, tmp_path, 10**9, "smaller")
    check_room("a study", 1e3, 1e18, tmp_path, None, "smaller")
    with pytest.raises(UsageError, match=r"a study needs 1,000 PB of disk below .*; smaller"):
        check_room("a study", 1e18, 1, tmp_path, 10**9, "smaller")
    with pytest.raises(UsageError, match="held three times"):
        check_room("a study", 1, 4e8, tmp_path, 10**9, "smaller")


def test_pairs_tell_more_than_figures_that_drift_apart() -> None:
    """Both sides are slow and fast at the same time: in pairs their ratio is exact, without pairs it is unknown."""
    ours = [1.0, 9.0, 2.0, 7.0, 3.0, 5.0, 4.0]
    theirs = [2 * each for each in ours]
    assert interval_of_ratio(ours, theirs, paired=True) == (2.0, 2.0)
    low, high = interval_of_ratio(ours, theirs) or (2.0, 2.0)
    assert low < 1.5
    assert high > 2.5
    assert interval_of_ratio(ours[:5], theirs[:5], paired=True) is None
