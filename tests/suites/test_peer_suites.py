"""The module that runs the suites of other libraries finds differences, and stops runs that hang."""

from __future__ import annotations

from pathlib import Path

import peer_suites
import pytest
from peer_suites import Differences, Outcome

MADE = """
import time
import pytest

@pytest.fixture
def broken():
    yield
    raise ValueError("while cleaning up")

def test_passes(): pass
def test_fails(): assert 1 == 2
def test_skips(): pytest.skip("why")
def test_cannot_clean_up(broken): pass
def test_hangs(): time.sleep(100)
def test_never_begins(): pass
"""


def test_a_run_that_hangs_is_ended_and_keeps_what_it_had(tmp_path: Path) -> None:
    (tmp_path / "test_made.py").write_text(MADE)
    for seconds in (5, 60):  # a busy machine may not come to the test that hangs in a few
        folder = tmp_path / f"run-{seconds}"
        found, printed = peer_suites.run_pytest(folder, ["-n", "0", "test_made.py"], cwd=tmp_path, seconds=seconds)
        if "test_made.py::test_hangs" in found:
            break
    assert {name.split("::")[1]: one.ended for name, one in found.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_skips": "skipped",
        "test_cannot_clean_up": "failed",
        "test_hangs": "unfinished",
    }
    assert "1 == 2" in found["test_made.py::test_fails"].said
    assert f"ended after {seconds} s" in printed


LISTED = "a.py::f | differs for a good reason\nb.py | a whole file, for a good reason\n"


def test_differences_that_are_not_listed_and_lines_that_are_not_needed_are_named() -> None:
    theirs = {name: Outcome("passed") for name in ("a.py::f[1]", "a.py::fg", "a.py::h", "b.py::k", "c.py::x")}
    ours = {**theirs, "a.py::f[1]": Outcome("failed", "E"), "b.py::k": Outcome("skipped")}
    assert "2 end otherwise" in Differences(LISTED).check(theirs, ours, 3)
    with pytest.raises(AssertionError, match="4 passed"):
        Differences(LISTED.splitlines()[0]).check(theirs, theirs | {"a.py::f[1]": Outcome("failed")}, 5)
    with pytest.raises(AssertionError, match=r"a\.py::fg: passed with theirs, failed with ours: E"):
        Differences(LISTED).check(theirs, ours | {"a.py::fg": Outcome("failed", "E")}, 1)
    with pytest.raises(AssertionError, match=r"new\.py::y: absent with theirs, passed with ours"):
        Differences(LISTED).check(theirs, ours | {"new.py::y": Outcome("passed")}, 1)
    with pytest.raises(AssertionError, match=r"b\.py: listed as a difference, but each of its tests ended alike"):
        Differences(LISTED).check(theirs, ours | {"b.py::k": Outcome("passed")}, 1)
    with pytest.raises(AssertionError, match="a reason is missing"):
        Differences("a.py::f | why")
