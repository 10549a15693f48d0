"""However a calibration ends, its measurements are kept, it can be resumed, and it leaves nothing else behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

from hyperslab.cli import app
from hyperslab.errors import UsageError
from hyperslab.model import load_store_profile
from hyperslab.model.calibration_journal import journal_beside
from hyperslab.model.measuring import CellTimings

pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")

# The command, with a quick design that takes a few seconds. Unless it goes on, it waits after some more cells than the
# tests wait for: it never ends before they stop it.
COMMAND = """
import signal, sys, time
from dataclasses import replace
from hyperslab.cli import main
from hyperslab.lab.journal import Journal
from hyperslab.model.training import SIZES, smaller

append = Journal.append

def leashed(self, record):
    append(self, record)
    if len(self) >= 12:
        time.sleep(600)

if "--resume" not in sys.argv:
    Journal.append = leashed

tiny = smaller(SIZES["quick"], 64)
shapes = dict(wide_shape=(64, 2048), wide_chunks=((16, 256),), encoded_chunks=(), large_chunks=())
shapes |= dict(drawn=replace(tiny.drawn, arrays=3, patterns=3, layouts=1))
SIZES["quick"] = replace(tiny, doublings=(0, 7), **shapes)
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # whoever runs the tests by nohup has it ignored
main()
"""


class Calibration:
    """A calibration of a few seconds, run as a user runs it."""

    def __init__(self, folder: Path) -> None:
        self.measured, self.profile = folder / "measured", folder / "profile.json"
        self.journal = journal_beside(self.profile)
        self.measured.mkdir()

    def begin(self, *options: str) -> subprocess.Popen[str]:
        asked = ["calibrate", "--dir", str(self.measured), "-o", str(self.profile), "--libraries", "hdf5"]
        asked.append("--no-wait")  # for other tests, which keep the machine busy
        command = [sys.executable, "-c", COMMAND, *asked, *options]
        return subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def begin_and_wait(self) -> subprocess.Popen[str]:
        """Start it and wait until a few cells are measured."""
        process = self.begin()
        deadline = time.monotonic() + 200
        while len(self.cells()) < 3:
            assert process.poll() is None, process.communicate()
            assert time.monotonic() < deadline
            time.sleep(0.01)
        return process

    def finish(self) -> None:
        process = self.begin("--resume")
        _, said = process.communicate(timeout=240)
        assert process.returncode == 0, said

    def cells(self) -> list[str]:
        return self.journal.read_text().splitlines()[1:] if self.journal.exists() else []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_a_signal_leaves_the_journal_alone(number: signal.Signals, tmp_path: Path) -> None:
    begun = Calibration(tmp_path)
    process = begun.begin_and_wait()
    process.send_signal(number)
    _, said = process.communicate(timeout=200)
    assert process.returncode == 128 + number, said
    assert "--resume" in said
    assert list(begun.measured.iterdir()) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["measured", "profile.json.measured.jsonl"]
    if number == signal.SIGTERM:
        another_request_is_not_gone_on_with(begun)


def another_request_is_not_gone_on_with(begun: Calibration) -> None:
    process = begun.begin("--resume", "--libraries", "hyperslab")
    _, said = process.communicate(timeout=200)
    assert process.returncode == 2
    assert "belongs to a calibration that differs (asked)" in said


@pytest.mark.slow
def test_a_killed_one_goes_on(tmp_path: Path) -> None:
    begun = Calibration(tmp_path)
    process = begun.begin_and_wait()
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    assert list(begun.measured.iterdir()), "the kill should have left measured files behind"
    with open(begun.journal, "a") as journal:
        journal.write('{"workload": {"array": {"sha')  # what a kill during a write leaves
    before = begun.cells()[:-1]

    begun.finish()

    made = load_store_profile(begun.profile)
    assert any(note.startswith(f"{len(before)} of ") for note in made.notes), made.notes
    medians = {CellTimings.from_dict(json.loads(line)).median_seconds for line in before}
    assert medians <= {cell.seconds for cell in made.cells}, "a measured cell was lost, or measured again"
    assert list(begun.measured.iterdir()) == []
    assert not begun.journal.exists()


def test_what_cannot_go_on(tmp_path: Path) -> None:
    begun = Calibration(tmp_path)
    options = ["calibrate", "--dir", str(begun.measured), "-o", str(begun.profile)]

    def refused(*more: str) -> str:
        error = CliRunner().invoke(app, [*options, *more]).exception
        assert isinstance(error, UsageError)
        return str(error)

    assert "there is nothing to continue" in refused("--resume")
    begun.journal.write_text('{"version": "0", "asked": {}}\n')
    assert "not the journal of a calibration" in refused("--resume")
    begun.journal.write_text("[]\n{}\n")
    assert "not the journal of a calibration" in refused("--resume")
    assert "1 cells of a calibration that was interrupted" in refused()
    begun.journal.write_text("{\n")
    assert "remove it" in refused()
    begun.journal.unlink()
    begun.journal.mkdir()
    assert "remove it" in refused()
