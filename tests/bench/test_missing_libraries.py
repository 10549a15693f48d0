"""What is not installed is said before anything is measured, with the extra that installs it."""

from __future__ import annotations

from pathlib import Path

import pytest

from hyperslab.bench import session
from hyperslab.bench.session import RunRequest, run_bench
from hyperslab.errors import MissingLibrary

NAMED = MissingLibrary("tiledb is not installed: pip install 'hyperslab[formats]'")


def _only_raw(name: str):
    return NAMED if name != "raw" else None


def test_formats_that_cannot_run_are_named_first(tmp_path: Path, study, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "availability", _only_raw)
    monkeypatch.setattr(session, "_measure", lambda *_: pytest.fail("measured") if not said else None)
    said: list[str] = []
    run_bench(RunRequest((str(study()),), tmp_path / "run", scale="quick"), say=said.append)
    assert said == ["left out: npy, because tiledb is not installed: pip install 'hyperslab[formats]'"]


def test_a_study_without_any_usable_format_ends_before_it_begins(tmp_path: Path, study, monkeypatch) -> None:
    monkeypatch.setattr(session, "availability", lambda _: NAMED)
    monkeypatch.setattr(session, "_measure", lambda *_: pytest.fail("measured"))
    with pytest.raises(MissingLibrary, match=r"pip install 'hyperslab\[formats\]'"):
        run_bench(RunRequest((str(study()),), tmp_path / "run", scale="quick"))
    assert not (tmp_path / "run" / "run.json").exists()


def test_histories_name_their_libraries_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "is_there", lambda library: library != "icechunk")
    monkeypatch.setattr(session, "_measure", lambda *_: None)
    said: list[str] = []
    run_bench(RunRequest(("versioned-histories",), tmp_path / "run", scale="quick"), say=said.append)
    assert any(line.startswith("left out: icechunk, because") and "hyperslab[icechunk]" in line for line in said)


def test_the_first_names_of_studies_still_work() -> None:
    assert [case.name for case in session.choose(["seed2-write"])] == ["formats-2002-write"]
    assert {case.name for case in session.choose(["seed0-*"])} == {
        case.name for case in session.choose(["common-io-*"])
    }
