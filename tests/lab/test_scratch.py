"""Folders for measured files: whenever Ctrl-C arrives, none stays behind."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from hyperslab.scratch import NOTE_FILE, scratch_below


@contextmanager
def ctrl_c_at(call: int) -> Iterator[list[int]]:
    """Ctrl-C where a function begins, or one of C begins or ends: there Python looks for signals. Yields how many."""
    calls = [0]

    def count(_: object, event: str, __: object) -> None:
        calls[0] += event != "return"
        if calls[0] == call and event != "return":
            raise KeyboardInterrupt

    gc.disable()  # an exception in what it calls would be lost
    sys.setprofile(count)
    try:
        yield calls
    finally:
        sys.setprofile(None)
        gc.enable()


@pytest.mark.parametrize("is_of_a_run", [False, True])
def test_ctrl_c_at_any_call_leaves_nothing(tmp_path: Path, is_of_a_run: bool) -> None:
    parent, run = tmp_path / "parent", tmp_path / "run"
    parent.mkdir()
    run.mkdir()

    def measure() -> None:
        with scratch_below(parent, run if is_of_a_run else None) as scratch:
            (scratch / "measured").touch()

    with ctrl_c_at(0) as made:
        measure()
    assert made[0] > 50
    for call in range(1, made[0]):
        # shutil.rmtree of Python 3.11 closes a folder twice if Ctrl-C comes after the first time.
        with suppress(KeyboardInterrupt, OSError), ctrl_c_at(call):
            measure()
        assert not list(parent.iterdir()), f"call {call} of {made[0]}"
        (run / NOTE_FILE).unlink(missing_ok=True)  # it leads nowhere: the next run ignores it
