"""What was measured on a busy machine says so, and its predictions have wider intervals."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path

from made_up import made_up_store_profile

from hyperslab.lab.other_load import OtherLoad
from hyperslab.model.fit import REPEATED, fit, repeated_on
from hyperslab.model.measuring import CellTimings
from hyperslab.model.store_profile import load_store_profile

MODULE = import_module("hyperslab.model.calibrating")


def test_what_was_measured_on_a_busy_machine_has_wider_intervals(tmp_path: Path) -> None:
    quiet = made_up_store_profile(tmp_path)
    assert repeated_on(0.0) == REPEATED < repeated_on(0.2) < repeated_on(0.5) < repeated_on(1.0) < 2
    (narrow, wide) = (fit(quiet.cells, "hdf5", "read", repeated=repeated_on(share)) for share in (0.0, 0.5))
    assert wide.spread > 2 * narrow.spread
    replace(quiet, busy_share=0.5).save(tmp_path / "profile.json")
    assert load_store_profile(tmp_path / "profile.json").busy_share == 0.5


def test_a_calibration_records_that_the_machine_was_busy(tmp_path: Path, monkeypatch) -> None:
    class Busy(OtherLoad):
        def share(self) -> float:
            return 0.4

    def measured(cells, *_, **__):
        for number, cell in enumerate(cells):
            yield CellTimings(cell, ({"access": 0.001 * (1 + number % 7)},) * 6)

    monkeypatch.setattr(MODULE, "OtherLoad", Busy)
    monkeypatch.setattr(MODULE, "measure", measured)
    made = MODULE.calibrate(tmp_path, "quick", ["flat"])
    assert made.busy_share == 0.4
    assert any("other programs used 40 % of the processors meanwhile" in note for note in made.notes)
    made.save(tmp_path / "profile.json")
    assert load_store_profile(tmp_path / "profile.json").fits[0].spread > 0.25
