"""A replay opens and closes the file and its array as the program did."""

from __future__ import annotations

import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from hyperslab._core import Hyperslab
from hyperslab.advise.candidate import Candidate
from hyperslab.advise.replaying import Calls, Replay, WriteFile, spec_of
from hyperslab.formats.hdf5 import Hdf5, Hdf5File
from hyperslab.lab.worker import Workbench
from hyperslab.model.libraries import Layout
from hyperslab.model.workload import Step

pytest.importorskip("h5py")


def test_calls_know_what_was_opened_before_them() -> None:
    whole = Hyperslab([0, 0], [1, 1], [4, 4], [1, 1])
    steps = [Step("read", whole), Step("read", whole, reopens=True)]
    assert Calls.of(steps, None).reopens == ("", "file")


def test_a_replay_opens_and_closes_as_the_program_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elements = np.arange(64, dtype="i4").reshape(8, 8)
    np.save(tmp_path / "elements.npy", elements)
    candidate = Candidate("hdf5", "hdf5", Layout((4, 4)))
    spec = spec_of(candidate, elements.shape, elements.dtype)
    path = tmp_path / "x.h5"
    WriteFile(candidate, spec, tmp_path / "elements.npy", path).run(Workbench())
    said: list[str] = []
    kept: list[weakref.ref[Any]] = []
    opens_file, opens_array = Hdf5.open, Hdf5File.open_array

    def open_file(self: Any, *given: Any) -> Any:
        said.append("file")
        return opens_file(self, *given)

    def open_array(self: Any, *given: Any) -> Any:
        assert all(one() is None for one in kept), "HDF5 keeps the chunks of an array that somebody has open"
        said.append("array")
        handle = opens_array(self, *given)
        kept.append(weakref.ref(handle))
        return handle

    monkeypatch.setattr(Hdf5, "open", open_file)
    monkeypatch.setattr(Hdf5File, "open_array", open_array)
    step = Step("read", Hyperslab([0, 0], [1, 1], [4, 4], [1, 1]))
    calls = replace(Calls.of([step] * 5, None), reopens=("", "array", "", "file", "array"))
    Replay(candidate, spec, path, tmp_path / "elements.npy", calls, is_new=False).run(Workbench())
    assert said == ["file", "array", "array", "file", "array", "array"]
